package fair

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
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
		if t.clearJointly(n, t.need, t.positive) && t.mayAllUse(n) {
			t.settleAllOn(n)
			return true
		}
		t.startAgain(before)
	}
	return false
}

// clearJointly is clearNear for the sum of what several tasks ask for. If the first search finds no room and chose a victim that holds
// nothing of a dimension that is short, it searches again with candidates first that hold some of every such dimension. A queue may lose a
// task with more than one dimension only while one of them is short, so that victims of that dimension alone can use up that right.
func (t *trial) clearJointly(n model.NodeID, amount []int64, positive resource.Mask) bool {
	before, short := len(t.victims), t.short(n, amount, positive)
	if t.clearNear(n, amount, positive, 0) {
		return true
	}
	if t.stopped || !slices.ContainsFunc(t.victims[before:], func(i int32) bool {
		return short&^t.s.requestOf(t.claim.Candidates[i]).positive != 0
	}) {
		return false
	}
	t.giveBackAfter(before)
	return t.clearNear(n, amount, positive, short) || t.clearNear(n, amount, positive, 0)
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

// makeRoomTogether evicts until the tasks that are given the same node have room there together. Where it fails, nothing is placed.
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
	for i, n := range order {
		sum := sums[n]
		if !t.clearJointly(n, sum.amount, sum.positive) {
			for _, placed := range order[:i] {
				t.place(placed, sums[placed].amount, sums[placed].positive, -1)
			}
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
