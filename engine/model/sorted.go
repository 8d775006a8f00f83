package model

import "slices"

// sorted finds entries by the text that identifies them, like index, but is built at once: a radix sort of a hundred thousand hashes takes
// a fraction of the time of as many random accesses to a table.
type sorted struct {
	// entries hold 32 bits of the hash above the position, in ascending order.
	entries, scratch []uint64
}

// texts returns the texts of positions to an index.
type texts interface {
	// tag returns 32 bits of the hash of a text, and whether there is one.
	tag(id int32) (uint32, bool)
	equal(l, r int32) bool
	is(id int32, key string) bool
}

// build indexes positions 0 … n-1 from first on; those without a text are left out. It calls clash for every position whose text a smaller
// position has already. If stop, which may be nil, returns true, the index is incomplete.
func (x *sorted) build(first, n int, of texts, stop func() bool, clash func(earlier, later int32)) {
	x.entries = slices.Grow(x.entries[:0], n)
	for i := first; i < first+n; i++ {
		if pollEach(stop, i) {
			return
		}
		if tag, ok := of.tag(int32(i)); ok {
			x.entries = append(x.entries, uint64(tag)<<32|uint64(uint32(i)))
		}
	}
	x.sort()
	x.findClashes(of, stop, clash)
}

// findClashes calls clash as build does.
func (x *sorted) findClashes(of texts, stop func() bool, clash func(earlier, later int32)) {
	var heads []int32
	for i, groups := 0, 0; i < len(x.entries); groups++ {
		if pollEach(stop, groups) {
			return
		}
		end := i + 1
		for end < len(x.entries) && x.entries[end]>>32 == x.entries[i]>>32 {
			end++
		}
		if end-i > 1 {
			heads = heads[:0]
			for _, e := range x.entries[i:end] {
				id := int32(uint32(e))
				k := slices.IndexFunc(heads, func(h int32) bool { return of.equal(h, id) })
				if k >= 0 {
					clash(heads[k], id)
					continue
				}
				heads = append(heads, id)
			}
		}
		i = end
	}
}

// pollEach calls stop for one of many steps.
func pollEach(stop func() bool, step int) bool {
	return stop != nil && step&(1<<13-1) == 1<<13-1 && stop()
}

// sort sorts entries by their hashes, least significant digit first; positions, which come in ascending, stay so among equals.
func (x *sorted) sort() {
	if len(x.entries) < digits {
		slices.Sort(x.entries)
		return
	}
	x.sortByDigits()
}

// Three digits cover the hash.
const digitBits, digits = 11, 1 << 11

// sortByDigits is separate from sort because its counts need a large stack frame.
func (x *sorted) sortByDigits() {
	x.scratch = slices.Grow(x.scratch[:0], len(x.entries))[:len(x.entries)]
	var counts [3][digits]uint32
	for _, e := range x.entries {
		counts[0][e>>32&(digits-1)]++
		counts[1][e>>(32+digitBits)&(digits-1)]++
		counts[2][e>>(32+2*digitBits)]++
	}
	for pass := range counts {
		at := uint32(0)
		for d, n := range &counts[pass] {
			counts[pass][d], at = at, at+n
		}
		shift := uint(32 + pass*digitBits)
		for _, e := range x.entries {
			d := e >> shift & (digits - 1)
			x.scratch[counts[pass][d]] = e
			counts[pass][d]++
		}
		x.entries, x.scratch = x.scratch, x.entries
	}
}

// find returns the position of a text.
func (x *sorted) find(key string, of texts) (int32, bool) {
	tag := uint64(tagOf(key))
	for i := x.first(tag); i < len(x.entries) && x.entries[i]>>32 == tag; i++ {
		if id := int32(uint32(x.entries[i])); of.is(id, key) {
			return id, true
		}
	}
	return None, false
}

// first returns the position of the first entry whose hash is not below tag. Hashes are evenly distributed, so the search begins at the
// interpolated position.
func (x *sorted) first(tag uint64) int {
	n, target := len(x.entries), tag<<32
	if n == 0 {
		return 0
	}
	from := int(tag * uint64(n) >> 32)
	to, step := from, 16
	if x.entries[from] < target {
		for to < n && x.entries[to] < target {
			from, to, step = to, min(to+step, n), 2*step
		}
	} else {
		for from > 0 && x.entries[from] >= target {
			to, from, step = from, max(from-step, 0), 2*step
		}
	}
	i, _ := slices.BinarySearch(x.entries[from:to], target)
	return from + i
}
