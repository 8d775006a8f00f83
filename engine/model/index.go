package model

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"

	"github.com/apportion/apportion/engine/resource"
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

// runs finds entries by the text that identifies them in a sequence that successive models extend: each run is an immutable index of the
// entries that one of them added. A run is at least four times as long as the next, so that there are few.
type runs struct{ list []sorted }

// find returns the position of a text among the entries that are still there.
func (x *runs) find(key string, of texts) (int32, bool) {
	if key == "" {
		return None, false
	}
	for i := len(x.list) - 1; i >= 0; i-- {
		if id, ok := x.list[i].find(key, of); ok {
			return id, true
		}
	}
	return None, false
}

// one returns the single run of an index that is built at once, and reuses the index's memory.
func (x *runs) one() *sorted {
	if len(x.list) != 1 {
		x.list = make([]sorted, 1)
	}
	return &x.list[0]
}

// with returns an index with another run. It merges runs that are not much longer, without the entries that gone reports.
func (x *runs) with(last sorted, gone func(id int32) bool) runs {
	if len(last.entries) == 0 {
		return *x
	}
	list, last := slices.Clip(x.list), sorted{entries: last.entries}
	for n := len(list); n > 0 && len(list[n-1].entries) < 4*len(last.entries); n = len(list) {
		last = merged(list[n-1], last, gone)
		list = slices.Clip(list[:n-1])
	}
	return runs{append(list, last)}
}

// merged returns one run of two, without the entries that gone reports.
func merged(l, r sorted, gone func(id int32) bool) sorted {
	entries := make([]uint64, 0, len(l.entries)+len(r.entries))
	for a, b := l.entries, r.entries; len(a)+len(b) > 0; {
		var e uint64
		if len(b) == 0 || len(a) > 0 && a[0] < b[0] {
			e, a = a[0], a[1:]
		} else {
			e, b = b[0], b[1:]
		}
		if !gone(int32(uint32(e))) {
			entries = append(entries, e)
		}
	}
	return sorted{entries: entries}
}

// bytes returns the memory of the entries.
func (x *runs) bytes() int64 {
	n := 0
	for i := range x.list {
		n += len(x.list[i].entries)
	}
	return 8 * int64(n)
}

// The texts of sorted indexes.
type (
	jobTexts  struct{ m *Model }
	taskTexts struct{ m *Model }
	// flatTexts identifies tasks that are not part of a model yet.
	flatTexts struct{ *flat }
	// requestTexts identifies requests by their amounts.
	requestTexts struct{ m *Model }
)

func (x jobTexts) tag(j int32) (uint32, bool) {
	uid := x.m.Jobs.At(JobID(j)).UID
	return tagOf(uid), uid != ""
}

func (x jobTexts) equal(l, r int32) bool { return x.is(l, x.m.Jobs.At(JobID(r)).UID) }

func (x jobTexts) is(j int32, key string) bool { return x.m.Jobs.At(JobID(j)).UID == key }

func (x jobTexts) gone(j int32) bool { return !x.m.HasJob(JobID(j)) }

func (x taskTexts) uid(t int32) []byte { return x.m.at(x.m.Tasks.At(TaskID(t)).uid) }

func (x taskTexts) tag(t int32) (uint32, bool) {
	uid := x.uid(t)
	return uint32(maphash.Bytes(seed, uid)), len(uid) > 0
}

func (x taskTexts) equal(l, r int32) bool { return bytes.Equal(x.uid(l), x.uid(r)) }

func (x taskTexts) is(t int32, key string) bool { return string(x.uid(t)) == key && !x.gone(t) }

func (x taskTexts) gone(t int32) bool { return !x.m.HasTask(TaskID(t)) }

func (x flatTexts) uid(t int32) []byte { return x.textAt(x.tasks[t].uid) }

func (x flatTexts) tag(t int32) (uint32, bool) {
	uid := x.uid(t)
	return uint32(maphash.Bytes(seed, uid)), len(uid) > 0
}

func (x flatTexts) equal(l, r int32) bool { return bytes.Equal(x.uid(l), x.uid(r)) }

func (x flatTexts) is(t int32, key string) bool { return string(x.uid(t)) == key }

func (x requestTexts) tag(r int32) (uint32, bool) {
	return uint32(maphash.Bytes(seed, requestKey(make([]byte, 0, maxKey), x.m.Requests[r]))), true
}

// equal is never called: no two requests of a model are equal except for absent cpu and memory.
func (x requestTexts) equal(int32, int32) bool { return false }

func (x requestTexts) is(r int32, key string) bool {
	return string(requestKey(make([]byte, 0, maxKey), x.m.Requests[r])) == key
}

// maxKey is the length of the longest key of a request.
const maxKey = 8 + 8*resource.MaxDimensions

// requestKey appends the key of a request: the set of its dimensions, and their amounts.
func requestKey(key []byte, request resource.Row) []byte {
	key = binary.LittleEndian.AppendUint64(key, uint64(request.Has))
	for m := request.Has; m != 0; m = m.Rest() {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(request.V[m.First()]))
	}
	return key
}
