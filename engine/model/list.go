package model

import (
	"iter"
	"slices"
)

// List is a paged sequence. The models of successive snapshots share equal pages, so that many models need little more memory than one.
type List[ID ~int32, T any] struct {
	pages [][]T
	n     int
	// shift is the binary logarithm of what a page holds. All pages but the last are full.
	shift uint8
}

// largePage is the binary logarithm of what a page holds of entries that are small and mostly appended.
const largePage = 6

// Len returns the number of entries, including removed ones.
func (l *List[ID, T]) Len() int { return l.n }

// At returns the entry at a position. Callers must not modify it.
func (l *List[ID, T]) At(id ID) *T {
	shift := l.shift & 31
	return &l.pages[uint32(id)>>shift][uint32(id)&(1<<shift-1)]
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
func (l *List[ID, T]) Copied() []T { return slices.Concat(l.pages...) }

// cut makes l the list of the given entries, whose memory it shares.
func (l *List[ID, T]) cut(entries []T, shift uint8) {
	l.pages, l.n, l.shift = l.pages[:0], len(entries), shift
	for size := 1 << shift; len(entries) > 0; {
		k := min(size, len(entries))
		l.pages = append(l.pages, entries[:k:k])
		entries = entries[k:]
	}
}

// edit is a list that differs from the one it began as, which stays as it is.
type edit[ID ~int32, T any] struct {
	List[ID, T]
	// own says which pages are not shared; nil while all are.
	own []bool
	// fresh counts the entries in pages of its own.
	fresh int
}

// begin makes e equal to l.
func (e *edit[ID, T]) begin(l *List[ID, T]) { *e = edit[ID, T]{List: *l} }

// detach makes the table of pages e's own.
func (e *edit[ID, T]) detach() {
	if e.own == nil {
		e.pages, e.own = slices.Clone(e.pages), make([]bool, len(e.pages))
	}
}

// change returns the entry at a position for writing.
func (e *edit[ID, T]) change(id ID) *T {
	e.detach()
	if p := int(uint32(id) >> e.shift); !e.own[p] {
		e.pages[p], e.own[p] = slices.Clone(e.pages[p]), true
		e.fresh += len(e.pages[p])
	}
	return e.At(id)
}

// add appends entries, whose memory it shares but for those that fill the last page up.
func (e *edit[ID, T]) add(entries ...T) {
	if len(entries) == 0 {
		return
	}
	e.detach()
	size := 1 << e.shift
	e.n += len(entries)
	e.fresh += len(entries)
	if last := len(e.pages) - 1; last >= 0 && len(e.pages[last]) < size {
		k := min(size-len(e.pages[last]), len(entries))
		if !e.own[last] {
			// A page that is shared must not be appended to in place.
			e.fresh += len(e.pages[last])
			e.pages[last], e.own[last] = append(make([]T, 0, size), e.pages[last]...), true
		}
		e.pages[last] = append(e.pages[last], entries[:k]...)
		entries = entries[k:]
	}
	for len(entries) > 0 {
		k := min(size, len(entries))
		e.pages, e.own = append(e.pages, entries[:k:k]), append(e.own, true)
		entries = entries[k:]
	}
}
