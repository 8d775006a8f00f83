package fair

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// houseAll finds a node for each task, one after the other, or else one for all of them.
func (t *trial) houseAll() bool {
	before := len(t.victims)
	if !slices.ContainsFunc(t.claim.Tasks, func(task model.TaskID) bool { return !t.house(task) }) {
		return true
	}
	nodes := make([]model.NodeID, len(t.claim.Tasks))
	for _, n := range t.s.v.NodeOrder {
		for i := range nodes {
			nodes[i] = n
		}
		if t.takeBack(before); len(nodes) < 2 || t.halted() {
			break
		}
		if t.makeRoomTogether(nodes) {
			return true
		}
	}
	return false
}

// makeRoomTogether evicts until the tasks on each node have room there together. They may lack what each of them has, and a queue may have
// something taken in one dimension that is short and not in another.
func (t *trial) makeRoomTogether(nodes []model.NodeID) bool {
	v, tasks := t.s.v, t.claim.Tasks
	if len(nodes) < len(tasks) {
		return false
	}
	nodes = nodes[:len(tasks)]
	place := func(n model.NodeID, times int64) {
		for i, task := range tasks {
			if nodes[i] == n {
				r := t.s.requestOf(task)
				t.place(n, r.amount, r.positive, times)
			}
		}
	}
	var done []model.NodeID
	for _, n := range nodes {
		if slices.Contains(done, n) {
			continue
		}
		need, positive := make([]int64, t.s.width), resource.Mask(0)
		may := true
		for i, task := range tasks {
			if nodes[i] == n {
				r := t.s.requestOf(task)
				addTimes(need, r, 1)
				positive |= r.positive
				may = may && v.MayUse(task, n, v.AsOf)
			}
		}
		if !may || !t.clearNear(n, need, positive) {
			for _, before := range done {
				place(before, -1)
			}
			return false
		}
		place(n, 1)
		done = append(done, n)
	}
	t.nodes = append(t.nodes, nodes...)
	return true
}

// takeBack takes back what was evicted and placed after the first victims. It returns true.
func (t *trial) takeBack(victims int) bool {
	for k := len(t.victims) - 1; k >= victims; k-- {
		t.giveBack(t.victims[k])
	}
	t.victims = t.victims[:victims]
	for i, n := range t.nodes {
		r := t.s.requestOf(t.claim.Tasks[i])
		t.place(n, r.amount, r.positive, -1)
	}
	t.nodes = t.nodes[:0]
	return true
}
