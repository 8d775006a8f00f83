package fair

import (
	"math/bits"
	"slices"

	"github.com/apportion/apportion/engine/model"
)

// shelf holds what nodes have free, in order of their names, and finds the first that has room for a request: a binary tree over the slots,
// of which every vertex holds the greatest amounts below it.
type shelf struct {
	width int
	// leaves is a power of two; slot i is vertex leaves+i, vertex v is above 2v and 2v+1, and 1 is above all.
	leaves int
	most   []int64
	// slots are those of a node set that take new tasks; slot is that of a node.
	slots map[model.NodeSetID][]int32
	slot  []int32
	// taken lists the placements since the shelf was last full.
	taken []placement
}

// placement counts the tasks of a request that took room in a slot.
type placement struct {
	slot    int
	request *request
	n       int64
}

// openShelf puts on the shelf what nodes have free; from then on events keep it.
func (s *State) openShelf() {
	s.openRooms()
	h := &s.claims.nodes
	if h.leaves > 0 {
		return
	}
	h.width = s.width
	h.leaves = 1 << bits.Len(uint(max(len(s.v.NodeOrder), 1)-1))
	h.most, h.slots, h.slot = make([]int64, 2*h.leaves*h.width), map[model.NodeSetID][]int32{}, make([]int32, len(s.v.Nodes))
	for i := range h.leaves {
		if i < len(s.v.NodeOrder) {
			n := s.v.NodeOrder[i]
			h.slot[n] = int32(i)
			s.fillSlot(n)
			continue
		}
		for row, d := h.row(h.leaves+i), 0; d < h.width; d++ {
			row[d] = -1
		}
	}
	for vertex := h.leaves - 1; vertex > 0; vertex-- {
		h.raise(vertex)
	}
}

// fillSlot makes everything free that a node has free. One that takes no new tasks, or is reserved as a whole, has no room for any.
func (s *State) fillSlot(n model.NodeID) {
	h := &s.claims.nodes
	row := h.row(h.leaves + int(h.slot[n]))
	if s.v.Takes(n, model.AllNodes) && !s.v.Reserved(n) {
		s.fillFree(row, n)
		return
	}
	for d := range row {
		row[d] = -1
	}
}

// changed follows a change of what a node has free.
func (s *State) changed(n model.NodeID) {
	if h := &s.claims.nodes; h.leaves > 0 {
		s.fillSlot(n)
		h.raiseAbove(int(h.slot[n]))
	}
}

// refill gives back what was taken since the last refill, beyond the first n takings.
func (h *shelf) refill(n int) {
	for _, t := range h.taken[n:] {
		addTimes(h.row(h.leaves+t.slot), t.request, t.n)
		h.raiseAbove(t.slot)
	}
	h.taken = h.taken[:n]
}

func (s *State) fillFree(row []int64, n model.NodeID) {
	idle, releasing, pipelined := s.idleOf(n), s.roomOf(s.rooms.releasing, n), s.roomOf(s.rooms.pipelined, n)
	for d := range row {
		row[d] = min(idle[d], idle[d]+releasing[d]-pipelined[d])
	}
}

// slotsOf returns the slots of a node set, in order.
func (s *State) slotsOf(set model.NodeSetID) []int32 {
	h := &s.claims.nodes
	slots, known := h.slots[set]
	if !known {
		for i, n := range s.v.NodeOrder {
			if s.v.Takes(n, set) && !s.v.Reserved(n) {
				slots = append(slots, int32(i))
			}
		}
		h.slots[set] = slices.Clip(slots)
	}
	return slots
}

func (h *shelf) row(vertex int) []int64 {
	return h.most[vertex*h.width : (vertex+1)*h.width : (vertex+1)*h.width]
}

// raise makes a vertex hold the greatest amounts of the two below it, and reports whether that changed it.
func (h *shelf) raise(vertex int) (changed bool) {
	row, left, right := h.row(vertex), h.row(2*vertex), h.row(2*vertex+1)
	for d := range row {
		if most := max(left[d], right[d]); row[d] != most {
			row[d], changed = most, true
		}
	}
	return changed
}

// raiseAbove corrects the vertices above a slot that has changed, up to the first one that stays as it is: those above it are right then.
func (h *shelf) raiseAbove(slot int) {
	for vertex := (h.leaves + slot) / 2; vertex > 0 && h.raise(vertex); {
		vertex /= 2
	}
}

// take takes n times a request from a slot.
func (h *shelf) take(slot int, r *request, n int64) {
	addTimes(h.row(h.leaves+slot), r, -n)
	h.raiseAbove(slot)
	h.taken = append(h.taken, placement{slot, r, n})
}

// times returns how many times a slot has room for a request, which asks for something.
func (h *shelf) times(slot int, r *request) int64 {
	row, n := h.row(h.leaves+slot), int64(unlimited)
	for m := r.positive; m != 0; m = m.Rest() {
		d := m.First()
		if row[d] < r.amount[d] {
			return 0
		}
		n = min(n, row[d]/r.amount[d])
	}
	return n
}

// first returns the first slot, not before the one given, that has room for a request; -1 if there is none.
func (h *shelf) first(r *request, from int) int {
	// Down to the left where there may be room, up and to the right where there is none.
	for vertex := h.leaves + from; ; {
		switch {
		case !covers(h.row(vertex), r.amount, r.positive):
			for vertex&1 == 1 {
				vertex /= 2
			}
			if vertex == 0 {
				return -1
			}
			vertex++
		case vertex >= h.leaves:
			return vertex - h.leaves
		default:
			vertex *= 2
		}
	}
}
