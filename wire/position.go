package wire

import (
	"encoding/binary"
	"unicode/utf8"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// fieldAt reads the field that begins at i: a number has a value, a text or a message lies between from and to, and to is where the next
// field begins. Fields of other kinds, and those whose tag takes more than a byte, have the tag 0; to is negative at a fault, and where a
// tag is longer than it has to be.
func fieldAt(b []byte, i int) (tag byte, value uint64, from, to int) {
	if i+1 < len(b) && b[i+1] < 0x80 {
		tag, from = b[i], i+2
		x := int(b[i+1])
		if tag&(0x80|7) == varint && tag >= 1<<3 {
			return tag, uint64(x), from, from
		}
		if tag&(0x80|7) == delimited && tag >= 1<<3 && x <= len(b)-from {
			return tag, 0, from, from + x
		}
	}
	return longFieldAt(b, i)
}

// longFieldAt is fieldAt for every field.
func longFieldAt(b []byte, i int) (tag byte, value uint64, from, to int) {
	if tag = b[i]; tag >= 1<<3 && tag < 0x80 {
		switch tag & 7 {
		case varint:
			value, to = numberAt(b, i+1)
			return tag, value, to, to
		case delimited:
			value, from = numberAt(b, i+1)
			if from < 0 || value > uint64(len(b)-from) {
				return 0, 0, 0, -1
			}
			return tag, value, from, from + int(value)
		}
	}
	number, _, n := protowire.ConsumeField(b[i:])
	if n < 0 || tag >= 0x80 && number < 1<<4 {
		return 0, 0, 0, -1
	}
	return 0, 0, i + n, i + n
}

// shortNumberAt reads a tag of one byte and the varint behind it, and returns where that ends, or -1.
func shortNumberAt(b []byte, i int) (tag byte, value uint64, end int) {
	if i+1 < len(b) && b[i+1] < 0x80 {
		return b[i], uint64(b[i+1]), i + 2
	}
	value, end = numberAt(b, i+1)
	return b[i], value, end
}

// numberAt reads a varint and returns where it ends, or -1.
func numberAt(b []byte, i int) (value uint64, end int) {
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

// lent returns bytes as a string that is valid as long as they are.
func lent(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // G103: lent as scanner.text lends.
}

// isText reports whether bytes are a text that is not too long.
func (c *compiler) isText(b []byte) bool {
	if limit := c.limits.TextBytes; len(b) > shortestText && limit > 0 && int64(len(b)) > limit {
		return false
	}
	return isASCII(b) || utf8.Valid(b)
}

// areTexts reports whether all are texts that are not too long.
func (c *compiler) areTexts(list ...[]byte) bool {
	for _, b := range list {
		if len(b) > 0 && !c.isText(b) {
			return false
		}
	}
	return true
}

// isASCII reports whether no byte has its highest bit set, eight at a time; the last eight may overlap those before.
func isASCII(b []byte) bool {
	const highest = 0x8080808080808080
	if len(b) < 8 {
		all := byte(0)
		for _, c := range b {
			all |= c
		}
		return all < 0x80
	}
	all := binary.LittleEndian.Uint64(b[len(b)-8:])
	for ; len(b) > 8; b = b[8:] {
		all |= binary.LittleEndian.Uint64(b)
	}
	return all&highest == 0
}
