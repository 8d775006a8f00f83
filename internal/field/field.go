// Package field reads encoded protobuf messages field by field, for readers that cannot afford the messages of the library.
package field

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// How a field is written: the lower three bits of its tag. The number of the field is above them.
const (
	Varint    = uint32(protowire.VarintType)
	Fixed64   = uint32(protowire.Fixed64Type)
	Delimited = uint32(protowire.BytesType)
)

// At reads the field that begins at i. A varint and a fixed number of 64 bits have a value; the bytes of a delimited field lie between
// from and to; to is where the next field begins. Of fields that are written in other ways, which the contract does not use, there is the
// tag alone. Where the protobuf library fails, the tag is 0 and to negative.
//
// Almost all tags take one byte, and numbers and lengths one or two: these are read here, the rest costs three times as much.
func At(b []byte, i int) (tag uint32, value uint64, from, to int) {
	if from = i + 2; from < len(b) || from == len(b) && b[i+1] < 0x80 {
		tag, value = uint32(b[i]), uint64(b[i+1])
		if value >= 0x80 {
			value, from = value&0x7f|uint64(b[from])<<7, from+1
		}
		if value < 1<<14 {
			switch tag & (0x80 | 7) {
			case Varint:
				if tag >= 1<<3 {
					return tag, value, from, from
				}
			case Delimited:
				if to = from + int(value); tag >= 1<<3 && to <= len(b) {
					return tag, 0, from, to
				}
			}
		}
	}
	return atAny(b, i)
}

// atAny is At for fields in any encoding.
func atAny(b []byte, i int) (tag uint32, value uint64, from, to int) {
	x, from := uint64(b[i]), i+1
	if x >= 0x80 {
		x, from = NumberAt(b, i)
	}
	if from < 0 || x>>3 < uint64(protowire.MinValidNumber) || x>>3 > uint64(protowire.MaxValidNumber) {
		return 0, 0, 0, -1
	}
	switch tag = uint32(x); tag & 7 {
	case Varint:
		if value, to = NumberAt(b, from); to < 0 {
			return 0, 0, 0, -1
		}
		return tag, value, to, to
	case Fixed64:
		if to = from + 8; to > len(b) {
			return 0, 0, 0, -1
		}
		return tag, binary.LittleEndian.Uint64(b[from:]), to, to
	case Delimited:
		value, from = NumberAt(b, from)
		if from < 0 || value > uint64(len(b)-from) {
			return 0, 0, 0, -1
		}
		return tag, 0, from, from + int(value)
	}
	n := protowire.ConsumeFieldValue(protowire.Number(tag>>3), protowire.Type(tag&7), b[from:])
	if n < 0 {
		return 0, 0, 0, -1
	}
	return tag, 0, from + n, from + n
}

// NumberAt reads the varint that begins at i and returns where it ends, or -1.
func NumberAt(b []byte, i int) (value uint64, end int) {
	// Lengths of jobs and groups, and numbers of nodes, take two bytes.
	if i+1 < len(b) && b[i] >= 0x80 && b[i+1] < 0x80 {
		return uint64(b[i]&0x7f) | uint64(b[i+1])<<7, i + 2
	}
	value, n := protowire.ConsumeVarint(b[i:])
	if n < 0 {
		return 0, -1
	}
	return value, i + n
}

// Each calls do with the bytes of every delimited field of a tag, until it returns false. It returns whether it never did and the message
// is well formed.
func Each(b []byte, tag uint32, do func(data []byte) bool) bool {
	for i := 0; i < len(b); {
		t, _, from, to := At(b, i)
		if to < 0 || t == tag && !do(b[from:to]) {
			return false
		}
		i = to
	}
	return true
}
