package model

import (
	"hash/maphash"
	"slices"
)

// seed is the same for all models of a process. It determines the layout of tables and has no effect on answers.
var seed = maphash.MakeSeed()

// index finds entries by the text that identifies them. It is a hash table with open addressing that holds positions only: no
// pointers, no copies of the text, 16 bytes an entry at most.
type index struct {
	// slots hold 32 bits of the hash above the position + 1; 0 is free. Their number is a power of two.
	slots []uint64
	n     int
}

// find returns the position under which a text was added. at returns the text of a position.
func (x *index) find(key string, at func(int32) string) (int32, bool) {
	if x.n == 0 || key == "" {
		return None, false
	}
	i, ok := x.slot(tagOf(key), key, at)
	if !ok {
		return None, false
	}
	return position(x.slots[i]), true
}

// add adds a text. If it exists already, add returns its position and false.
func (x *index) add(key string, id int32, at func(int32) string) (int32, bool) {
	if 2*x.n >= len(x.slots) {
		x.grow()
	}
	tag := tagOf(key)
	i, ok := x.slot(tag, key, at)
	if ok {
		return position(x.slots[i]), false
	}
	x.slots[i] = uint64(tag)<<32 | uint64(uint32(id)+1)
	x.n++
	return id, true
}

// slot returns the slot of a text, or the free slot for it.
func (x *index) slot(tag uint32, key string, at func(int32) string) (int, bool) {
	mask := len(x.slots) - 1
	for i := int(tag) & mask; ; i = (i + 1) & mask {
		switch s := x.slots[i]; {
		case s == 0:
			return i, false
		case s>>32 == uint64(tag) && at(position(s)) == key:
			return i, true
		}
	}
}

func (x *index) grow() {
	old := x.slots
	x.slots = make([]uint64, max(64, 2*len(old)))
	mask := len(x.slots) - 1
	for _, s := range old {
		if s == 0 {
			continue
		}
		i := int(s>>32) & mask
		for x.slots[i] != 0 {
			i = (i + 1) & mask
		}
		x.slots[i] = s
	}
}

// clone returns an independent copy of x.
func (x *index) clone() index { return index{slices.Clone(x.slots), x.n} }

func (x *index) reset() {
	clear(x.slots)
	x.n = 0
}

func tagOf(key string) uint32 { return uint32(maphash.String(seed, key)) }

func position(slot uint64) int32 { return int32(uint32(slot) - 1) }
