package model

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// keys are random per process, so that a client cannot construct texts with equal hashes.
var keys = func() (k [4]uint64) {
	for i := range k {
		k[i] = maphash.Comparable(seed, i) | 1
	}
	return k
}()

// UIDHash is the hash of a task's uid, or NoUID. It differs from process to process.
type UIDHash uint64

// NoUID is the hash of an absent uid.
const NoUID UIDHash = 0

// HashUID returns the hash of a uid, and whether all of its bytes are ASCII: one pass over the uids of all tasks takes half the time of one
// for each. The library hashes uids below 16 bytes, which are rare.
//
// The hash is like wyhash: it reads sixteen bytes at a time, the last ones overlapping those before, and folds the halves of each product.
func HashUID(b []byte) (hash UIDHash, ascii bool) {
	if len(b) < 16 {
		return hashShort(b)
	}
	const highest = 0x8080808080808080
	last := b[len(b)-16:]
	x, y := binary.LittleEndian.Uint64(last), binary.LittleEndian.Uint64(last[8:])
	all, h := x|y, keys[0]^uint64(len(b))
	for ; len(b) > 16; b = b[16:] {
		u, v := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		all |= u | v
		h = fold(u^keys[1], v^h)
	}
	h = fold(x^keys[2], y^h)
	return max(UIDHash(fold(h^keys[3], keys[0])), NoUID+1), all&highest == 0
}

func hashShort(b []byte) (hash UIDHash, ascii bool) {
	if len(b) == 0 {
		return NoUID, true
	}
	all := byte(0)
	for _, c := range b {
		all |= c
	}
	return max(UIDHash(maphash.Bytes(seed, b)), NoUID+1), all < 0x80
}

// fold multiplies two numbers and folds the halves of the product.
func fold(x, y uint64) uint64 {
	high, low := bits.Mul64(x, y)
	return high ^ low
}
