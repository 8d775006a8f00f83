package resource

import (
	"math/bits"
	"slices"
)

// Stock is what slots, such as nodes in their order, have free. It is a binary tree over the slots in which every vertex holds the greatest
// amounts below it, so that the first slot with room for a request is found without a look at most others.
//
// A slot that may take nothing has -1 of everything. Whoever changes a row says so (Changed) before it is searched again.
type Stock[A int64 | float64] struct {
	width int
	// leaves is a power of two; slot i is vertex leaves+i, vertex v is above 2v and 2v+1, and 1 is above all.
	leaves int
	most   []A
	slack  A
}

// NewStock returns the stock of so many slots, of which fill sets the rows: before, each has -1 of everything. A request may ask for slack
// more than is free: nothing where amounts are whole numbers, little where they are sums that may differ in their last digits.
func NewStock[A int64 | float64](slots, width int, slack A, fill func(slot int, row []A)) *Stock[A] {
	s := &Stock[A]{width: width, leaves: 1 << bits.Len(uint(max(slots, 1)-1)), slack: slack}
	s.most = slices.Repeat([]A{-1}, 2*s.leaves*width)
	for i := range slots {
		fill(i, s.Row(i))
	}
	for vertex := s.leaves - 1; vertex > 0; vertex-- {
		s.raise(vertex)
	}
	return s
}

// Clone returns a copy that shares nothing with s.
func (s *Stock[A]) Clone() *Stock[A] {
	c := *s
	c.most = slices.Clone(s.most)
	return &c
}

// Row is what a slot has free.
func (s *Stock[A]) Row(slot int) []A { return s.row(s.leaves + slot) }

func (s *Stock[A]) row(vertex int) []A {
	return s.most[vertex*s.width : (vertex+1)*s.width : (vertex+1)*s.width]
}

// raise makes a vertex hold the greatest amounts of the two below it, and reports whether that changed it.
func (s *Stock[A]) raise(vertex int) (changed bool) {
	row, left, right := s.row(vertex), s.row(2*vertex), s.row(2*vertex+1)
	for d := range row {
		if most := max(left[d], right[d]); row[d] != most {
			row[d], changed = most, true
		}
	}
	return changed
}

// Changed corrects the vertices above a slot whose row has changed, up to the first one that stays as it is: those above it are right then.
func (s *Stock[A]) Changed(slot int) {
	for vertex := (s.leaves + slot) / 2; vertex > 0 && s.raise(vertex); {
		vertex /= 2
	}
}

// Height is the number of vertices above a slot.
func (s *Stock[A]) Height() int { return bits.Len(uint(s.leaves)) - 1 }

// Covers reports whether a slot has room for an amount, of which the positive dimensions count.
func (s *Stock[A]) Covers(slot int, amount []A, positive Mask) bool {
	return s.covers(s.Row(slot), amount, positive)
}

func (s *Stock[A]) covers(row, amount []A, positive Mask) bool {
	for m := positive; m != 0; m = m.Rest() {
		if d := m.First(); amount[d] > row[d]+s.slack {
			return false
		}
	}
	return true
}

// Top is where a search of all slots begins, Leaf one of a slot and those that follow it, and After one of those that follow it; After
// returns 0 if none does.
const Top = 1

// Leaf is the vertex of a slot.
func (s *Stock[A]) Leaf(slot int) int { return s.leaves + slot }

// After is the vertex after that of a slot.
func (s *Stock[A]) After(slot int) int { return after(s.leaves + slot) }

// after returns the vertex to the right of the lowest one above a vertex that has one.
func after(vertex int) int {
	for vertex&1 == 1 {
		vertex /= 2
	}
	if vertex == 0 {
		return 0
	}
	return vertex + 1
}

// First returns the first slot from a vertex on that has room for an amount, of which the positive dimensions count, and how many vertices
// it has looked at; -1 if there is none. If no dimension counts, it may return a slot beyond the last one.
func (s *Stock[A]) First(vertex int, amount []A, positive Mask) (slot, seen int) {
	// Down to the left where there may be room, up and to the right where there is none.
	for seen = 1; ; seen++ {
		switch {
		case !s.covers(s.row(vertex), amount, positive):
			if vertex = after(vertex); vertex == 0 {
				return -1, seen
			}
		case vertex >= s.leaves:
			return vertex - s.leaves, seen
		default:
			vertex *= 2
		}
	}
}
