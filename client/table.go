package client

// tablePage is the number of entries in a page of a table.
const tablePage = 64

// table is a list with empty slots. Copies of a table share its pages, so a copy is cheap, and the time to find the difference of two
// copies depends on the size of the difference.
type table[T any] struct {
	pages []*page[T]
	// writer may change the list of pages in place.
	writer uint64
}

// page is a part of a table that its writer may change in place.
type page[T any] struct {
	writer  uint64
	entries [tablePage]*T
}

// at returns the entry in a slot, nil if the slot is empty.
func (t *table[T]) at(slot int) *T {
	if slot/tablePage >= len(t.pages) {
		return nil
	}
	return t.pages[slot/tablePage].entries[slot%tablePage]
}

// put puts an entry into a slot. Every slot before it has been used.
func (t *table[T]) put(writer uint64, slot int, entry *T) {
	if t.writer != writer {
		t.pages, t.writer = append(make([]*page[T], 0, len(t.pages)+1), t.pages...), writer
	}
	n := slot / tablePage
	if n == len(t.pages) {
		t.pages = append(t.pages, &page[T]{writer: writer})
	}
	if t.pages[n].writer != writer {
		t.pages[n] = &page[T]{writer: writer, entries: t.pages[n].entries}
	}
	t.pages[n].entries[slot%tablePage] = entry
}

// all calls do with every slot that is not empty, in order.
func (t *table[T]) all(do func(slot int, entry *T)) {
	for n, page := range t.pages {
		for i, entry := range &page.entries {
			if entry != nil {
				do(n*tablePage+i, entry)
			}
		}
	}
}

// pair is an entry of one table and its successor in another; nil where there is none.
type pair[T any] struct {
	was, is         *T
	wasSlot, isSlot int
}

// keyed has a key that is unique in its table.
type keyed[T any] interface {
	*T
	key() string
}

// difference returns the entries in which is differs from was, paired by key, removed entries first.
func difference[T any, P keyed[T]](was, is *table[T]) (gone, set []pair[T]) {
	for n := range max(len(was.pages), len(is.pages)) {
		var before, after *page[T]
		if n < len(was.pages) {
			before = was.pages[n]
		}
		if n < len(is.pages) {
			after = is.pages[n]
		}
		if before == after {
			continue
		}
		for i := range tablePage {
			p := pair[T]{wasSlot: n*tablePage + i, isSlot: n*tablePage + i}
			if before != nil {
				p.was = before.entries[i]
			}
			if after != nil {
				p.is = after.entries[i]
			}
			switch {
			case p.was == p.is:
			case p.was != nil && p.is != nil && P(p.was).key() == P(p.is).key():
				set = append(set, p)
			default:
				if p.was != nil {
					gone = append(gone, pair[T]{was: p.was, wasSlot: p.wasSlot})
				}
				if p.is != nil {
					set = append(set, pair[T]{is: p.is, isSlot: p.isSlot})
				}
			}
		}
	}
	return moved[T, P](gone, set)
}

// moved pairs an entry that is gone from one slot with the entry of the same key in another slot.
func moved[T any, P keyed[T]](gone, set []pair[T]) (stillGone, paired []pair[T]) {
	if len(gone) == 0 || len(set) == 0 {
		return gone, set
	}
	left := make(map[string]pair[T], len(gone))
	for _, p := range gone {
		left[P(p.was).key()] = p
	}
	for i := range set {
		p := &set[i]
		if p.was != nil {
			continue
		}
		if before, found := left[P(p.is).key()]; found {
			p.was, p.wasSlot = before.was, before.wasSlot
			delete(left, P(p.is).key())
		}
	}
	for _, p := range gone {
		if _, found := left[P(p.was).key()]; found {
			stillGone = append(stillGone, p)
		}
	}
	return stillGone, set
}

// slots allocates slots of a table, freed ones first.
type slots struct {
	free []int
	used int
}

func (s *slots) take() int {
	if n := len(s.free); n > 0 {
		slot := s.free[n-1]
		s.free = s.free[:n-1]
		return slot
	}
	s.used++
	return s.used - 1
}

func (s *slots) give(slot int) { s.free = append(s.free, slot) }
