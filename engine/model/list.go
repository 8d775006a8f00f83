package model

import (
	"iter"
	"slices"
)

// List is a paged sequence. The models of successive snapshots share equal pages, so that many models need little more memory than one.
type List[ID ~int32, T any] struct {
	// pages and tail together are the table of pages. Successive models append to tail and share pages. Only the last page is not full.
	pages, tail [][]T
	n           int
	// shift is the binary logarithm of the page size.
	shift uint8
}

// largePage is the binary logarithm of the page size for small entries that are mostly appended.
const largePage = 6

// Len returns the number of entries, including removed ones.
func (l *List[ID, T]) Len() int { return l.n }

// At returns the entry at a position. Callers must not modify it.
func (l *List[ID, T]) At(id ID) *T {
	shift := l.shift & 31
	page, at := uint32(id)>>shift, uint32(id)&(1<<shift-1)
	if page < uint32(len(l.pages)) {
		return &l.pages[page][at]
	}
	return &l.tail[page-uint32(len(l.pages))][at]
}

// All returns all positions with their entries, including removed ones.
func (l *List[ID, T]) All() iter.Seq2[ID, *T] {
	return func(yield func(ID, *T) bool) {
		for id := range ID(l.n) {
			if !yield(id, l.At(id)) {
				return
			}
		}
	}
}

// Copied returns a contiguous copy of the entries.
func (l *List[ID, T]) Copied() []T { return slices.Concat(slices.Concat(l.pages, l.tail)...) }

// cut makes l the list of the given entries, whose memory it shares.
func (l *List[ID, T]) cut(entries []T, shift uint8) {
	l.pages, l.tail, l.n, l.shift = l.pages[:0], nil, len(entries), shift
	for size := 1 << shift; len(entries) > 0; {
		k := min(size, len(entries))
		l.pages = append(l.pages, entries[:k:k])
		entries = entries[k:]
	}
}

// edit is a modified copy of a list, which itself does not change.
type edit[ID ~int32, T any] struct {
	List[ID, T]
	// own and ownTail say which pages are not shared; nil while the table is.
	own, ownTail []bool
	// fresh counts the entries in pages of its own.
	fresh int
}

// begin makes e equal to l.
func (e *edit[ID, T]) begin(l *List[ID, T]) { *e = edit[ID, T]{List: *l} }

// change returns the entry at a position for writing.
func (e *edit[ID, T]) change(id ID) *T {
	if p := int(uint32(id) >> e.shift); p < len(e.pages) {
		e.pages, e.own = detached(e.pages, e.own)
		e.take(e.pages, e.own, p)
	} else {
		e.tail, e.ownTail = detached(e.tail, e.ownTail)
		e.take(e.tail, e.ownTail, p-len(e.pages))
	}
	return e.At(id)
}

// detached returns a table of pages that is not shared.
func detached[T any](pages [][]T, own []bool) ([][]T, []bool) {
	if own == nil {
		return slices.Clone(pages), make([]bool, len(pages))
	}
	return pages, own
}

// take copies a page unless e owns it.
func (e *edit[ID, T]) take(pages [][]T, own []bool, p int) {
	if !own[p] {
		pages[p], own[p] = slices.Clone(pages[p]), true
		e.fresh += len(pages[p])
	}
}

// add appends entries. It shares their memory, except for those that fill up the last page.
func (e *edit[ID, T]) add(entries ...T) {
	if len(entries) == 0 {
		return
	}
	e.openTail()
	size := 1 << e.shift
	e.n += len(entries)
	e.fresh += len(entries)
	if last := len(e.tail) - 1; last >= 0 && len(e.tail[last]) < size {
		k := min(size-len(e.tail[last]), len(entries))
		if !e.ownTail[last] {
			// A page that is shared must not be appended to in place.
			e.fresh += len(e.tail[last])
			e.tail[last], e.ownTail[last] = append(make([]T, 0, size), e.tail[last]...), true
		}
		e.tail[last] = append(e.tail[last], entries[:k]...)
		entries = entries[k:]
	}
	for len(entries) > 0 {
		k := min(size, len(entries))
		e.tail, e.ownTail = append(e.tail, entries[:k:k]), append(e.ownTail, true)
		entries = entries[k:]
	}
}

// openTail copies the tail unless e owns it, and ensures that its last page is not full. A long tail is moved to pages, so that each model
// copies little.
func (e *edit[ID, T]) openTail() {
	const least, part = 64, 4
	if len(e.tail) > least+len(e.pages)/part {
		e.pages, e.own = slices.Concat(e.pages, e.tail), append(ownOf(e.own, len(e.pages)), ownOf(e.ownTail, len(e.tail))...)
		e.tail, e.ownTail = nil, nil
	}
	e.tail, e.ownTail = detached(e.tail, e.ownTail)
	if last := len(e.pages) - 1; len(e.tail) == 0 && last >= 0 && len(e.pages[last]) < 1<<e.shift {
		e.tail, e.ownTail = append(e.tail, e.pages[last]), append(e.ownTail, e.own != nil && e.own[last])
		e.pages = e.pages[:last]
		if e.own != nil {
			e.own = e.own[:last]
		}
	}
}

// ownOf returns which of n pages are not shared.
func ownOf(own []bool, n int) []bool {
	if own == nil {
		return make([]bool, n)
	}
	return own
}

// ownPages counts the pages in the tables of its own.
func (e *edit[ID, T]) ownPages() int { return len(e.own) + len(e.ownTail) }

// Table is a List of large entries that are replaced individually. Its pages hold pointers, so that a change copies little besides the
// entries that it replaces.
type Table[ID ~int32, T any] struct {
	list List[ID, *T]
	// all is the memory for the pointers of the table that cut makes. It is reused.
	all []*T
}

// tablePage is the binary logarithm of the number of pointers in a page.
const tablePage = 5

// Len returns the number of entries, including removed ones.
func (t *Table[ID, T]) Len() int { return t.list.n }

// At returns the entry at a position. Callers must not modify it.
func (t *Table[ID, T]) At(id ID) *T { return *t.list.At(id) }

// All returns all positions with their entries, including removed ones.
func (t *Table[ID, T]) All() iter.Seq2[ID, *T] {
	return func(yield func(ID, *T) bool) {
		for id := range ID(t.list.n) {
			if !yield(id, t.At(id)) {
				return
			}
		}
	}
}

// Copied returns a contiguous copy of the entries.
func (t *Table[ID, T]) Copied() []T {
	entries := make([]T, 0, t.Len())
	for _, entry := range t.All() {
		entries = append(entries, *entry)
	}
	return entries
}

// cut makes t the table of the given entries, whose memory it shares.
func (t *Table[ID, T]) cut(entries []T) {
	t.all = slices.Grow(t.all[:0], len(entries))
	for i := range entries {
		t.all = append(t.all, &entries[i])
	}
	t.list.cut(t.all, tablePage)
}

// tableEdit is a modified copy of a table, which itself does not change.
type tableEdit[ID ~int32, T any] struct {
	Table[ID, T]

	pointers edit[ID, *T]
	// fresh counts the entries of its own.
	fresh int
}

// begin makes e equal to t.
func (e *tableEdit[ID, T]) begin(t *Table[ID, T]) {
	e.pointers.begin(&t.list)
	e.list = t.list
}

// replace replaces an entry, or appends one.
func (e *tableEdit[ID, T]) replace(id ID, entry *T) {
	if int(id) < e.Len() {
		*e.pointers.change(id) = entry
	} else {
		e.pointers.add(entry)
	}
	e.list = e.pointers.List
	e.fresh++
}

// change returns a copy of an entry in its place, for writing.
func (e *tableEdit[ID, T]) change(id ID) *T {
	entry := *e.At(id)
	e.replace(id, &entry)
	return &entry
}

// ownBytes returns the memory of its own pages.
func (e *tableEdit[ID, T]) ownBytes() int { return 8 * e.pointers.fresh }
