package model

import (
	"iter"
	"slices"
)

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
