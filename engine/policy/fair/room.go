package fair

import "github.com/apportion/apportion/engine/model"

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
