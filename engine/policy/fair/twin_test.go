package fair

import (
	"github.com/apportion/apportion/engine/model"
)

// plainRoom is the free room of the cluster and of each node.
type plainRoom struct {
	cluster []int64
	nodes   map[model.NodeID][]int64
}

func (s *State) plainRoom() *plainRoom {
	s.openRooms()
	r := &plainRoom{make([]int64, s.width), map[model.NodeID][]int64{}}
	for d := range r.cluster {
		r.cluster[d] = s.free(d)
	}
	for _, n := range s.v.NodeOrder {
		r.nodes[n] = make([]int64, s.width)
		s.fillFree(r.nodes[n], n)
	}
	return r
}

// take puts each task on the first node that has room for it, all of them or none, and returns the nodes.
func (r *plainRoom) take(s *State, tasks []model.TaskID) ([]model.NodeID, bool) {
	amount := make([]int64, s.width)
	if positive := s.sum(tasks, amount); !covers(r.cluster, amount, positive) {
		return nil, false
	}
	nodes := []model.NodeID{}
	for i, t := range tasks {
		n := model.NodeID(model.None)
		for _, each := range s.v.NodeOrder {
			if q := s.requestOf(t); s.v.Takes(each, s.setOf(t)) && covers(r.nodes[each], q.amount, q.positive) {
				n = each
				break
			}
		}
		if n == model.None && len(s.v.NodeOrder) > 0 {
			for k, placed := range nodes {
				addTimes(r.nodes[placed], s.requestOf(tasks[k]), 1)
			}
			return nil, false
		}
		if n != model.None {
			addTimes(r.nodes[n], s.requestOf(tasks[i]), -1)
		}
		nodes = append(nodes, n)
	}
	for _, t := range tasks {
		addTimes(r.cluster, s.requestOf(t), -1)
	}
	return nodes, true
}

// FirstFit puts each task on the first node that is free for it, all of them or none.
func (s *State) FirstFit(tasks []model.TaskID) ([]model.NodeID, bool) {
	return s.plainRoom().take(s, tasks)
}

// PlainClaims forms the claims of every queue one task at a time.
func (s *State) PlainClaims() map[model.QueueID][]int64 {
	claims := map[model.QueueID][]int64{}
	room := s.plainRoom()
	for _, q := range s.Order() {
		p := s.tree.at[q]
		claims[q] = make([]int64, s.width)
		claim := func(tasks []model.TaskID) bool {
			amount := make([]int64, s.width)
			positive := s.sum(tasks, amount)
			if positive == 0 {
				return true
			}
			add(amount, claims[q])
			if !s.entitled(p, amount, positive) {
				return false
			}
			if a, _ := s.exceeded(p, amount, positive); a != none {
				return false
			}
			if _, ok := room.take(s, tasks); !ok {
				return false
			}
			claims[q] = amount
			return true
		}
		saved := false
		save := func(tasks []model.TaskID) bool {
			if !saved && s.plainlySavable(room, p, claims[q], tasks) {
				saved = true
				amount := make([]int64, s.width)
				s.sum(tasks, amount)
				add(claims[q], amount)
				return true
			}
			return false
		}
		for _, b := range s.Blocks(q) {
			if len(b.Gang) > 0 && !claim(b.Gang) && !save(b.Gang) {
				continue
			}
			for i := range b.Loose {
				_ = claim(b.Loose[i:i+1]) || save(b.Loose[i:i+1])
			}
		}
	}
	return claims
}

// PlainOrder returns the queues without children as they are served, sorted anew.
func (s *State) PlainOrder() []model.QueueID {
	s.order.known = false
	return s.Order()
}

// plainlySavable reports whether room may be saved for a block, as the rules say it one by one. claimed is what its leaf claims.
func (s *State) plainlySavable(room *plainRoom, p place, claimed []int64, tasks []model.TaskID) bool {
	if s.memory == nil || s.plugin.Memory.NoSaving {
		return false
	}
	amount := make([]int64, s.width)
	positive := s.sum(tasks, amount)
	with := make([]int64, s.width)
	add(with, amount)
	add(with, claimed)
	if positive == 0 || covers(room.cluster, amount, positive) || !s.entitled(p, with, positive) || s.within(p, 2, with, positive) {
		return false
	}
	if a, _ := s.exceeded(p, with, positive); a != none {
		return false
	}
	empty := &plainRoom{make([]int64, s.width), map[model.NodeID][]int64{}}
	for d := range empty.cluster {
		empty.cluster[d] = s.total(d)
	}
	for _, n := range s.v.NodeOrder {
		empty.nodes[n] = make([]int64, s.width)
		for d := range empty.nodes[n] {
			empty.nodes[n][d] = atMost(s.v.Nodes[n].Allocatable.V[d]) - atLeast(s.v.Nodes[n].UsedByOthers.V[d])
		}
	}
	_, fits := empty.take(s, tasks)
	return fits
}
