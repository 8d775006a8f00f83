package decode

import (
	"bytes"
	"encoding/binary"
	"math"
)

// memo remembers the positions of requests in the model by the bytes that they were found by: jobs name few different ones. A few bytes
// that lie together are read faster than what the model has of each.
type memo struct {
	base  []byte
	known [512]known
}

// known is the place where bytes were kept, and their position.
type known struct{ from, to, id int32 }

func (m *memo) reset() {
	m.base = m.base[:0]
	// In place: a value to assign would make the frame of the caller so large that the stack has to grow for it.
	clear(m.known[:])
}

// at returns where bytes are remembered.
func (m *memo) at(b []byte) *known {
	h := uint64(len(b))
	for ; len(b) >= 8; b = b[8:] {
		h = (h ^ binary.LittleEndian.Uint64(b)) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	for _, c := range b {
		h = h<<8 ^ uint64(c)
	}
	return &m.known[h*0x9e3779b97f4a7c15>>55]
}

// is reports whether the memo holds these bytes.
func (m *memo) is(at *known, b []byte) bool {
	return at.to > at.from && bytes.Equal(m.base[at.from:at.to], b)
}

func (m *memo) keep(at *known, b []byte, id int32) {
	if from := len(m.base); from+len(b) <= math.MaxInt32 {
		m.base = append(m.base, b...)
		*at = known{int32(from), int32(from + len(b)), id}
	}
}
