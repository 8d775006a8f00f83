package fair

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// rooms are what is idle, being released and promised on each node, in raw amounts; filled in when they are first needed.
type rooms struct {
	idle, releasing, pipelined []int64
}

// open fills in the rooms.
func (s *State) openRooms() {
	r, v := &s.rooms, s.v
	if r.idle != nil {
		return
	}
	n := len(v.Nodes) * s.width
	cells := make([]int64, 3*n+1)
	r.idle, r.releasing, r.pipelined = cells[:n:n], cells[n:2*n:2*n], cells[2*n:]
	for i := range v.Nodes {
		row := s.idleOf(model.NodeID(i))
		for d := range row {
			row[d] = atMost(v.Nodes[i].Allocatable.V[d]) - atLeast(v.Nodes[i].UsedByOthers.V[d])
		}
	}
	for _, j := range v.Present() {
		job, aside := v.Jobs.At(j), s.leafOf(j) == none
		for t := job.FirstTask; t < job.EndTask; t++ {
			s.bookRoom(v.NodeOf(t), v.Status(t), aside, s.requestOf(t), 1)
		}
	}
}

func (s *State) idleOf(n model.NodeID) []int64 { return s.roomOf(s.rooms.idle, n) }

func (s *State) roomOf(table []int64, n model.NodeID) []int64 {
	return table[int(n)*s.width : (int(n)+1)*s.width : (int(n)+1)*s.width]
}

// bookRoom adds n tasks to what a node is used for. What a task that is set aside releases is not counted on.
func (s *State) bookRoom(node model.NodeID, status model.Status, aside bool, r *request, n int64) {
	if node == model.None {
		return
	}
	if status.Occupies() {
		addTimes(s.idleOf(node), r, -n)
	}
	switch {
	case aside:
	case status == model.Releasing:
		addTimes(s.roomOf(s.rooms.releasing, node), r, n)
	case status == model.Pipelined:
		addTimes(s.roomOf(s.rooms.pipelined, node), r, n)
	}
	s.changed(node)
}

// futureOn is what of a node can be given once everything that is being released is free.
func (s *State) futureOn(n model.NodeID, d int) int64 {
	return s.idleOf(n)[d] + s.roomOf(s.rooms.releasing, n)[d] - s.roomOf(s.rooms.pipelined, n)[d]
}

// left and leftOn return the future room of the cluster and of a node, beside a reservation, less the amounts that the claimant has taken.
func (t *trial) left(d int) int64 {
	left := t.s.future(d) + t.released[d]
	if t.beside != nil {
		left = min(left, t.beside.left[d]+t.later[d])
	}
	return left - t.placed[d]
}

func (t *trial) leftOn(n model.NodeID, d int) int64 {
	at := int(n)*t.s.width + d
	left := t.s.futureOn(n, d) + t.releasedNodes[at]
	if t.beside == nil {
		return left - t.placedNodes[at]
	}
	if spare := t.s.spareOn(t.beside, n); spare != nil {
		then := spare[d]
		if later := t.laterNodes[n]; later != nil {
			then += later[d]
		}
		left = min(left, then)
	}
	return left - t.placedNodes[at]
}

// releaseLater adds n times a victim to what a reservation has at its begin without it.
func (t *trial) releaseLater(v model.TaskID, r *request, n int64) {
	addTimes(t.later, r, n)
	node := t.s.v.NodeOf(v)
	if t.s.spareOn(t.beside, node) == nil {
		return
	}
	if t.laterNodes[node] == nil {
		t.laterNodes[node] = make([]int64, t.s.width)
	}
	addTimes(t.laterNodes[node], r, n)
}

// shelf holds what nodes have free, in order of their names: in slots of which each is that of a node.
type shelf struct {
	*resource.Stock[int64]
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
	if h.Stock != nil {
		return
	}
	h.slots, h.slot = map[model.NodeSetID][]int32{}, make([]int32, len(s.v.Nodes))
	h.Stock = resource.NewStock(len(s.v.NodeOrder), s.width, 0, func(slot int, row []int64) {
		n := s.v.NodeOrder[slot]
		h.slot[n] = int32(slot)
		s.fillSlot(row, n)
	})
}

// fillSlot makes everything free that a node has free. One that takes no new tasks, or is reserved as a whole, has no room for any.
func (s *State) fillSlot(row []int64, n model.NodeID) {
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
	if h := &s.claims.nodes; h.Stock != nil {
		slot := int(h.slot[n])
		s.fillSlot(h.Row(slot), n)
		h.Changed(slot)
	}
}

// refill gives back what was taken since the last refill, beyond the first n takings.
func (h *shelf) refill(n int) {
	for _, t := range h.taken[n:] {
		addTimes(h.Row(t.slot), t.request, t.n)
		h.Changed(t.slot)
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

// take takes n times a request from a slot.
func (h *shelf) take(slot int, r *request, n int64) {
	addTimes(h.Row(slot), r, -n)
	h.Changed(slot)
	h.taken = append(h.taken, placement{slot, r, n})
}

// times returns how many times a slot has room for a request, which asks for something.
func (h *shelf) times(slot int, r *request) int64 {
	row, n := h.Row(slot), int64(unlimited)
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
	slot, _ := h.First(h.Leaf(from), r.amount, r.positive)
	return slot
}
