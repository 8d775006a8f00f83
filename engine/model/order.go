package model

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// orderUnless returns positions 0 … n-1 sorted by name; equal names, which no valid model has, keep their order. The result is unsorted if
// stop, which may be nil, returned true.
func orderUnless[ID ~int32](n int, name func(ID) string, stop func() bool) []ID {
	ids := make([]ID, n)
	sorted := true
	for i := range ids {
		ids[i] = ID(i)
		sorted = sorted && (i == 0 || name(ID(i-1)) <= name(ID(i)))
	}
	if sorted {
		return ids
	}
	orderNames(ids, name, stop)
	return ids
}

// orderNames sorts positions by name; there must be at least one.
func orderNames[ID ~int32](ids []ID, name func(ID) string, stop func() bool) {
	// Names often have a common prefix. The sixteen bytes after it separate most names without another access to them.
	common := len(commonPrefix(len(ids), func(i int) string { return name(ids[i]) }))
	entries := make([]named[ID], len(ids))
	for i, id := range ids {
		high, low := prefixKey(name(id)[common:])
		entries[i] = named[ID]{high, low, id}
	}
	// For so few names, comparing is faster than a radix sort.
	const few = 256
	if len(ids) > few {
		entries = orderHigh(entries)
	}
	for from, to := 0, 1; from < len(entries); from, to = to, to+1 {
		for to < len(entries) && (len(ids) <= few || entries[to].high == entries[from].high) {
			to++
		}
		orderEqual(entries[from:to], name, common, stop)
	}
	for i, e := range entries {
		ids[i] = e.id
	}
}

// named is a name to be sorted: the position that has it, and sixteen of its bytes as two numbers.
type named[ID ~int32] struct {
	high, low uint64
	id        ID
}

// orderHigh returns entries in the order of their high numbers, by a radix sort of the lower halves and then the upper ones.
func orderHigh[ID ~int32](entries []named[ID]) []named[ID] {
	x := sorted{entries: make([]uint64, len(entries))}
	for i := range entries {
		x.entries[i] = entries[i].high<<32 | uint64(i)
	}
	x.sort()
	last := slices.Clone(x.entries)
	for i, e := range last {
		x.entries[i] = entries[uint32(e)].high>>32<<32 | uint64(i)
	}
	x.sort()
	out := make([]named[ID], len(entries))
	for i, e := range x.entries {
		out[i] = entries[uint32(last[uint32(e)])]
	}
	return out
}

// orderEqual sorts entries whose names have a common prefix of this length.
func orderEqual[ID ~int32](entries []named[ID], name func(ID) string, common int, stop func() bool) {
	if len(entries) == 1 {
		return
	}
	sortUnless(entries, stop, func(l, r named[ID]) int {
		if l.high != r.high {
			return cmp.Compare(l.high, r.high)
		}
		if l.low != r.low {
			return cmp.Compare(l.low, r.low)
		}
		return cmp.Or(strings.Compare(name(l.id)[common:], name(r.id)[common:]), cmp.Compare(l.id, r.id))
	})
}

// commonPrefix returns the common prefix of n > 0 names.
func commonPrefix(n int, name func(int) string) string {
	prefix := name(0)
	for i := 1; i < n && prefix != ""; i++ {
		other := name(i)
		k := 0
		for k < min(len(prefix), len(other)) && prefix[k] == other[k] {
			k++
		}
		prefix = prefix[:k]
	}
	return prefix
}

// prefixKey returns the first sixteen bytes of s as two numbers in the same order; missing bytes are 0.
func prefixKey(s string) (high, low uint64) {
	var b [16]byte
	copy(b[:], s)
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}

// sortUnless sorts list; if stop, which may be nil, returns true, the order is undefined. compare never returns 0.
//
// The pieces that it sorts and then merges are small enough for stop to be asked every few milliseconds.
func sortUnless[T any](list []T, stop func() bool, compare func(l, r T) int) {
	const piece = 8 << 10
	if stop == nil || len(list) <= piece {
		slices.SortFunc(list, compare)
		return
	}
	for from := 0; from < len(list); from += piece {
		if stop() {
			return
		}
		slices.SortFunc(list[from:min(from+piece, len(list))], compare)
	}
	given, scratch := list, make([]T, len(list))
	for width := piece; width < len(list); width *= 2 {
		for from := 0; from < len(list); from += 2 * width {
			middle, to := min(from+width, len(list)), min(from+2*width, len(list))
			if !merge(scratch[from:to], list[from:middle], list[middle:to], stop, compare) {
				return
			}
		}
		list, scratch = scratch, list
	}
	if &list[0] != &given[0] {
		copy(given, list)
	}
}

// merge merges two sorted lists, or returns false if stop returns true.
func merge[T any](into, l, r []T, stop func() bool, compare func(l, r T) int) bool {
	for i := range into {
		if pollEach(stop, i) {
			return false
		}
		if len(r) == 0 || len(l) > 0 && compare(l[0], r[0]) <= 0 {
			into[i], l = l[0], l[1:]
		} else {
			into[i], r = r[0], r[1:]
		}
	}
	return true
}
