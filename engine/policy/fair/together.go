package fair

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
)

// Tasks that find no nodes one after the other may find one together: they may lack what each of them has, and a queue may have something
// taken in one dimension that is short and not in another.

// houseAll finds a node for each task, one after the other, or else one for all of them.
func (t *trial) houseAll() bool {
	before := len(t.victims)
	if !slices.ContainsFunc(t.claim.Tasks, func(task model.TaskID) bool { return !t.house(task) }) {
		return true
	}
	t.startAgain(before)
	if len(t.claim.Tasks) < 2 {
		return false
	}
	for _, n := range t.s.v.NodeOrder {
		if t.halted() {
			return false
		}
		// Few nodes could hold all of them, and each of these is asked then for each task.
		if t.clearNear(n, t.need, t.positive) && t.mayAllUse(n) {
			t.settleAllOn(n)
			return true
		}
		t.startAgain(before)
	}
	return false
}

// mayAllUse reports whether each task may use a node.
func (t *trial) mayAllUse(n model.NodeID) bool {
	v := t.s.v
	return !slices.ContainsFunc(t.claim.Tasks, func(task model.TaskID) bool { return !v.MayUse(task, n, v.AsOf) })
}

func (t *trial) settleAllOn(n model.NodeID) {
	for range t.claim.Tasks {
		t.nodes = append(t.nodes, n)
	}
	t.place(n, t.need, t.positive, 1)
}

// makeRoomTogether evicts until the tasks that are given the same node have room there together.
func (t *trial) makeRoomTogether(nodes []model.NodeID) bool {
	v, tasks := t.s.v, t.claim.Tasks
	if len(nodes) < len(tasks) {
		return false
	}
	sums, order := map[model.NodeID]*request{}, []model.NodeID(nil)
	for i, task := range tasks {
		n, r := nodes[i], t.s.requestOf(task)
		if !v.MayUse(task, n, v.AsOf) {
			return false
		}
		sum := sums[n]
		if sum == nil {
			sum = &request{amount: make([]int64, t.s.width)}
			sums[n], order = sum, append(order, n)
		}
		addTimes(sum.amount, r, 1)
		sum.positive |= r.positive
	}
	for _, n := range order {
		sum := sums[n]
		if !t.clearNear(n, sum.amount, sum.positive) {
			return false
		}
		t.place(n, sum.amount, sum.positive, 1)
	}
	t.nodes = append(t.nodes, nodes[:len(tasks)]...)
	return true
}

// startAgain takes back all that was placed, and what was evicted after the first victims.
func (t *trial) startAgain(victims int) {
	t.giveBackAfter(victims)
	for i, n := range t.nodes {
		r := t.s.requestOf(t.claim.Tasks[i])
		t.place(n, r.amount, r.positive, -1)
	}
	t.nodes = t.nodes[:0]
}
