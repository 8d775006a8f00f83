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
	// Names often have a common prefix. A radix sort by the eight bytes after it, the last four first, separates most names.
	common := len(commonPrefix(len(ids), func(i int) string { return name(ids[i]) }))
	// For so few names, comparing is faster than a radix sort.
	const few = 256
	if len(ids) <= few {
		compareNames(ids, name, common, stop)
		return
	}
	keys, x, last := make([]uint64, len(ids)), sorted{entries: make([]uint64, len(ids))}, make([]uint64, len(ids))
	for i, id := range ids {
		keys[i], _ = prefixKey(name(id)[common:])
		x.entries[i] = keys[i]<<32 | uint64(i)
	}
	x.sort()
	copy(last, x.entries)
	for i, e := range last {
		x.entries[i] = keys[uint32(e)]>>32<<32 | uint64(i)
	}
	x.sort()
	given, from := slices.Clone(ids), 0
	for i, e := range x.entries {
		at := uint32(last[uint32(e)])
		ids[i], last[uint32(e)] = given[at], keys[at]
		if i > 0 && keys[at] != last[uint32(x.entries[i-1])] {
			compareNames(ids[from:i], name, common, stop)
			from = i
		}
	}
	compareNames(ids[from:], name, common, stop)
}

// compareNames sorts positions whose names have a common prefix of this length.
func compareNames[ID ~int32](ids []ID, name func(ID) string, common int, stop func() bool) {
	if len(ids) == 1 {
		return
	}
	// The next sixteen bytes separate most names without another access to them.
	type entry struct {
		high, low uint64
		id        ID
	}
	entries := make([]entry, len(ids))
	for i, id := range ids {
		high, low := prefixKey(name(id)[common:])
		entries[i] = entry{high, low, id}
	}
	sortUnless(entries, stop, func(l, r entry) int {
		if l.high != r.high {
			return cmp.Compare(l.high, r.high)
		}
		if l.low != r.low {
			return cmp.Compare(l.low, r.low)
		}
		return cmp.Or(strings.Compare(name(l.id)[common:], name(r.id)[common:]), cmp.Compare(l.id, r.id))
	})
	for i, e := range entries {
		ids[i] = e.id
	}
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
