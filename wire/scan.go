package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"unicode/utf8"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// errMalformed is returned for bytes that are no message of the contract, exactly where the protobuf library fails too.
var errMalformed = errors.New("the bytes are not a valid protobuf message")

// field is one field of an encoded message. Which of its parts mean something depends on kind.
type field struct {
	number int32
	kind   kind
	// value of a varint or a fixed number.
	value uint64
	// data of a length-delimited field.
	data []byte
}

// kind is a wire type of protobuf that the contract uses.
type kind = uint8

const (
	varint    = kind(protowire.VarintType)
	fixed64   = kind(protowire.Fixed64Type)
	delimited = kind(protowire.BytesType)
)

// scanner reads the fields of an encoded message one after the other. It allocates nothing.
type scanner struct {
	rest []byte
	bad  bool
}

// next reads a field into f; false at the end and at a fault, which bad tells apart. Fields that are neither varint, fixed nor
// length-delimited are passed over.
//
// Almost all tags take one byte, and lengths two at most; these are read here.
func (s *scanner) next(f *field) bool {
	b := s.rest
	if len(b) < 3 || b[0] < 1<<3 || b[0] >= 0x80 {
		return s.any(f)
	}
	x, from := int(b[1]), 2
	if x >= 0x80 {
		if b[2] >= 0x80 {
			return s.any(f)
		}
		x, from = x&0x7f|int(b[2])<<7, 3
	}
	switch f.number, f.kind = int32(b[0]>>3), b[0]&7; f.kind {
	case delimited:
		if x > len(b)-from {
			return s.fail()
		}
		f.data, s.rest = b[from:from+x], b[from+x:]
		return true
	case varint:
		f.value, s.rest = uint64(x), b[from:]
		return true
	}
	return s.any(f)
}

// any does what next does, however the field is written.
func (s *scanner) any(f *field) bool {
	for len(s.rest) > 0 {
		tag := uint64(s.rest[0])
		n := 1
		if tag >= 0x80 {
			tag, n = protowire.ConsumeVarint(s.rest)
			if n < 0 {
				return s.fail()
			}
		}
		f.number, f.kind = int32(tag>>3), kind(tag&7)
		if tag>>3 > uint64(protowire.MaxValidNumber) || f.number < int32(protowire.MinValidNumber) {
			return s.fail()
		}
		switch f.kind {
		case delimited:
			return s.bytes(f, n)
		case varint:
			return s.varint(f, n)
		case fixed64:
			if len(s.rest) < n+8 {
				return s.fail()
			}
			f.value = binary.LittleEndian.Uint64(s.rest[n:])
			s.rest = s.rest[n+8:]
			return true
		default:
			size := protowire.ConsumeFieldValue(protowire.Number(f.number), protowire.Type(f.kind), s.rest[n:])
			if size < 0 {
				return s.fail()
			}
			s.rest = s.rest[n+size:]
		}
	}
	return false
}

func (s *scanner) fail() bool {
	s.bad, s.rest = true, nil
	return false
}

func (s *scanner) bytes(f *field, at int) bool {
	if at < len(s.rest) && s.rest[at] < 0x80 {
		from := at + 1
		to := from + int(s.rest[at])
		if to > len(s.rest) {
			return s.fail()
		}
		f.data = s.rest[from:to]
		s.rest = s.rest[to:]
		return true
	}
	data, n := protowire.ConsumeBytes(s.rest[at:])
	if n < 0 {
		return s.fail()
	}
	f.data = data
	s.rest = s.rest[at+n:]
	return true
}

func (s *scanner) varint(f *field, at int) bool {
	if at < len(s.rest) && s.rest[at] < 0x80 {
		f.value = uint64(s.rest[at])
		s.rest = s.rest[at+1:]
		return true
	}
	v, n := protowire.ConsumeVarint(s.rest[at:])
	if n < 0 {
		return s.fail()
	}
	f.value = v
	s.rest = s.rest[at+n:]
	return true
}

// text returns the field as a string, or fails if it is not UTF-8, which proto3 asks for. The string is the bytes themselves: it is valid
// as long as they are, and a caller that keeps it copies it.
func (s *scanner) text(f *field) string {
	if !utf8.Valid(f.data) {
		s.fail()
		return ""
	}
	return unsafe.String(unsafe.SliceData(f.data), len(f.data)) //nolint:gosec // G103: lent, not kept; see above.
}

// doubles appends the field, packed or not, to a list of doubles.
func (s *scanner) doubles(f *field, to []float64) []float64 {
	switch f.kind {
	case fixed64:
		return append(to, math.Float64frombits(f.value))
	case delimited:
		if len(f.data)%8 != 0 {
			s.fail()
			return to
		}
		for b := f.data; len(b) >= 8; b = b[8:] {
			to = append(to, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
	}
	return to
}

// uint32s appends the field, packed or not, to a list of numbers.
func (s *scanner) uint32s(f *field, to []uint32) []uint32 {
	switch f.kind {
	case varint:
		return append(to, uint32(f.value))
	case delimited:
		for b := f.data; len(b) > 0; {
			if b[0] < 0x80 {
				to, b = append(to, uint32(b[0])), b[1:]
				continue
			}
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				s.fail()
				return to
			}
			to, b = append(to, uint32(v)), b[n:]
		}
	}
	return to
}
