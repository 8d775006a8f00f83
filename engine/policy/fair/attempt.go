package fair

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// A trial takes victims one at a time; before and after each of them the same holds:
//   - rise is what the victims so far raise the potential by, and is below fall, by which the claimant lowers it: the plan as a whole
//     lowers it, so that reclaim ends.
//   - Each victim's queue, and each place above it up to the branch of the claimant, held more than it keeps when the victim was taken.
//   - placedNodes and placed are what the tasks of the claimant take that have a node. giveBack and startAgain restore this state;
//     fillBack gives back all victims that the plan can do without.

// withinLimits evicts until the claimant's queue and its ancestors are within their limits with it, and returns the first place and
// dimension in which one is not nevertheless. Where no candidate helps it goes on to further limits: victims for these may help.
func (t *trial) withinLimits() (place, int) {
	s := t.s
	for a := t.queue; a != none; a = s.tree.parent[a] {
		for _, d := range s.dims {
			if !t.positive.Has(d) {
				continue
			}
			for i := range t.claim.Candidates {
				if !t.over(a, d) || t.halted() {
					break
				}
				if p := s.leafOf(s.v.Tasks.At(t.claim.Candidates[i]).Job); p == none || s.tree.isBelow(p, a) {
					t.consider(i, resource.Mask(0).With(d))
				}
			}
		}
	}
	for a := t.queue; a != none; a = s.tree.parent[a] {
		for _, d := range s.dims {
			if t.positive.Has(d) && t.over(a, d) {
				return a, d
			}
		}
	}
	return none, -1
}

// over reports whether a place would exceed its capability with the claimant.
func (t *trial) over(a place, d int) bool {
	limit := t.s.limits[a].capability[d]
	return limit != unlimited && t.held(a, d)+t.need[d] > limit
}

func (t *trial) overLimit(a place, d int) policy.Reason {
	return policy.Reason{
		Plugin: name, Code: policy.AboveLimit, Queue: t.s.tree.queue[a], Dimension: d,
		Have: float64(t.held(a, d)), Need: float64(t.need[d]), Limit: float64(t.s.limits[a].capability[d]),
	}
}

// makeRoom evicts until the claimant has room.
func (t *trial) makeRoom() bool {
	room := t.claim.Room
	switch {
	case room.Kind == policy.WholeCluster, len(t.s.v.NodeOrder) == 0:
		return t.clear(model.None, t.need, t.positive)
	case room.Kind == policy.OneNode:
		if !t.mayAllUse(room.Node) {
			return false
		}
		ok := t.clear(room.Node, t.need, t.positive)
		t.settleAllOn(room.Node)
		return ok
	case room.Kind == policy.GivenNodes:
		before := len(t.victims)
		if t.makeRoomOn(room.Nodes) {
			return true
		}
		t.startAgain(before)
		return t.makeRoomTogether(room.Nodes)
	}
	return t.houseAll()
}

// makeRoomOn evicts until each task has room on its node.
func (t *trial) makeRoomOn(nodes []model.NodeID) bool {
	for i, task := range t.claim.Tasks {
		v, r := t.s.v, t.s.requestOf(task)
		if i >= len(nodes) || !v.MayUse(task, nodes[i], v.AsOf) || !t.clearNear(nodes[i], r.amount, r.positive, 0) {
			return false
		}
		t.settleOn(nodes[i], r)
	}
	return true
}

// house finds a node for one task: the first that has room, or else the first on which enough can be evicted.
func (t *trial) house(task model.TaskID) bool {
	v, r := t.s.v, t.s.requestOf(task)
	if t.short(model.None, r.amount, r.positive) == 0 {
		for _, n := range v.NodeOrder {
			if t.halted() {
				return false
			}
			if t.short(n, r.amount, r.positive) == 0 && v.MayUse(task, n, v.AsOf) {
				t.settleOn(n, r)
				return true
			}
		}
	}
	for _, n := range v.NodeOrder {
		if t.halted() {
			return false
		}
		if !v.MayUse(task, n, v.AsOf) {
			continue
		}
		before := len(t.victims)
		if t.clearNear(n, r.amount, r.positive, 0) {
			t.settleOn(n, r)
			return true
		}
		t.giveBackAfter(before)
	}
	return false
}

// giveBackAfter gives back the victims after the first ones, the last first.
func (t *trial) giveBackAfter(victims int) {
	for k := len(t.victims) - 1; k >= victims; k-- {
		t.giveBack(t.victims[k])
	}
	t.victims = t.victims[:victims]
}

func (t *trial) settleOn(n model.NodeID, r *request) {
	t.nodes = append(t.nodes, n)
	t.place(n, r.amount, r.positive, 1)
}

// place adds times an amount to what the claimant takes of a node and of the cluster.
func (t *trial) place(n model.NodeID, amount []int64, positive resource.Mask, times int64) {
	row := t.s.roomOf(t.placedNodes, n)
	for m := positive; m != 0; m = m.Rest() {
		d := m.First()
		row[d] += times * amount[d]
		t.placed[d] += times * amount[d]
	}
}

// clear evicts candidates until an amount has room on a node, or in the cluster if that is model.None.
func (t *trial) clear(n model.NodeID, amount []int64, positive resource.Mask) bool {
	short := t.short(n, amount, positive)
	for i, v := range t.claim.Candidates {
		if short == 0 || t.halted() {
			break
		}
		if on := t.s.v.NodeOf(v); n != model.None && on != model.None && on != n {
			continue
		}
		if t.consider(i, short) {
			short = t.short(n, amount, positive)
		}
	}
	return short == 0
}

// short returns the dimensions in which an amount has no room.
func (t *trial) short(n model.NodeID, amount []int64, positive resource.Mask) resource.Mask {
	short := resource.Mask(0)
	for m := positive; m != 0; m = m.Rest() {
		d := m.First()
		if t.left(d) < amount[d] || n != model.None && t.leftOn(n, d) < amount[d] {
			short = short.With(d)
		}
	}
	return short
}

// consider evicts a candidate if it may be evicted for the dimensions that are short.
func (t *trial) consider(i int, short resource.Mask) bool {
	s, v, state := t.s, t.claim.Candidates[i], &t.states[i]
	p := s.leafOf(s.v.Tasks.At(v).Job)
	if state.taken || state.spared {
		return false
	}
	r := s.requestOf(v)
	shared := short & r.positive
	if shared == 0 {
		state.reason = t.because(i, policy.NoSharedDimension)
		return false
	}
	if reason, over := t.above(p, r, shared); !over {
		state.reason = reason
		return false
	}
	if reason, calm := t.calm(p, r, shared); !calm {
		state.reason = reason
		return false
	}
	t.rise, t.tried = t.tried, t.rise
	state.taken, state.reason = true, policy.Reason{}
	t.victims = append(t.victims, int32(i))
	t.release(v, 1)
	return true
}

// spare gives the reason of each candidate that is spared for any claimant. Among the candidates that choose found there is none.
func (t *trial) spare() {
	if t.brief {
		return
	}
	for i, v := range t.claim.Candidates {
		if code := t.spares(v, t.s.leafOf(t.s.v.Tasks.At(v).Job)); code != 0 {
			t.states[i] = candidate{spared: true, reason: t.because(i, code)}
		}
	}
}

// spares returns why a candidate is spared for any claimant.
func (t *trial) spares(v model.TaskID, p place) policy.Code {
	s := t.s
	switch {
	case p == none:
		return policy.HierarchyRefused
	case s.v.Status(v) != model.Running:
		return policy.NotRunning
	case !s.v.Tasks.At(v).Preemptable:
		return policy.NotPreemptable
	case s.requestOf(v).bestEffort():
		return policy.BestEffortVictim
	case !s.v.Queues[s.tree.queue[p]].Reclaimable:
		return policy.QueueNotReclaimable
	case p == t.queue:
		return policy.SameQueue
	}
	return 0
}

// above reports whether a candidate's queue and all its ancestors that are not the claimant's hold more than the lines in a shared
// dimension.
func (t *trial) above(p place, r *request, shared resource.Mask) (policy.Reason, bool) {
	s := t.s
	branch, _ := s.tree.branches(p, t.queue)
	var within policy.Reason
	for _, d := range s.dims {
		if !shared.Has(d) {
			continue
		}
		at := p
		for t.held(at, d) > t.keeps(at, d)+t.grace(r.amount[d]) {
			if at == branch {
				return policy.Reason{}, true
			}
			at = s.tree.parent[at]
		}
		if within.Code == 0 {
			within = policy.Reason{
				Plugin: name, Code: policy.WithinEntitlement, Queue: s.tree.queue[at], Dimension: d,
				Have: float64(t.held(at, d)), Need: float64(r.amount[d]), Limit: float64(t.keeps(at, d)),
			}
		}
	}
	return within, false
}

// keeps returns what nothing is taken of from a place: the line of the attempt and, unless it is the guarantee, the line with memory.
func (t *trial) keeps(p place, d int) int64 {
	line := t.s.line(t.line, p, d)
	if t.s.memory == nil || t.line == 0 {
		return line
	}
	return max(line, t.s.lineWithMemory(p, d))
}

// grace returns what a place must hold beyond the lines: with memory these move, so it must be above them even without the task, lest a
// share between two whole tasks moves one to and fro.
func (t *trial) grace(amount int64) int64 {
	if t.s.memory == nil || t.line == 0 {
		return 0
	}
	return amount
}

// calm reports whether evicting a candidate too raises the potential by less than the claimant lowers it, and leaves that rise in
// tried. The reason names the first dimension that is short and how much of it the candidate holds.
func (t *trial) calm(p place, r *request, shared resource.Mask) (policy.Reason, bool) {
	s := t.s
	t.tried.copyFrom(&t.rise)
	for m := r.positive; m != 0; m = m.Rest() {
		d := m.First()
		s.addLoss(&t.tried, p, d, t.held(p, d), r.amount[d])
	}
	c, at := s.compareLacks(&t.tried, &t.fall)
	if c < 0 {
		return policy.Reason{}, true
	}
	at = min(at, lines-1)
	reason := policy.Because(name, policy.NotCalm, s.tree.queue[p])
	reason.Have, reason.Limit = s.approximate(t.tried[at]), s.approximate(t.fall[at])
	reason.Dimension = s.dims[slices.IndexFunc(s.dims, shared.Has)]
	reason.Need = float64(r.amount[reason.Dimension])
	return reason, false
}

// fillBack puts victims back that the plan can do without, the last taken first.
func (t *trial) fillBack() {
	for k, i := range slices.Backward(t.victims) {
		v := t.claim.Candidates[i]
		t.release(v, -1)
		if t.lacksRoom(t.s.v.NodeOf(v)) || t.exceeds() {
			t.release(v, 1)
			continue
		}
		t.release(v, 1)
		t.giveBack(i)
		t.states[i] = candidate{reason: t.because(int(i), policy.NotNeeded)}
		t.victims = append(t.victims[:k], t.victims[k+1:]...)
	}
}

// giveBack puts a victim back.
func (t *trial) giveBack(i int32) {
	s, v := t.s, t.claim.Candidates[i]
	t.release(v, -1)
	p, r := s.leafOf(s.v.Tasks.At(v).Job), s.requestOf(v)
	for m := r.positive; m != 0; m = m.Rest() {
		d := m.First()
		held := t.held(p, d)
		for l := range t.rise {
			line := s.line(l, p, d)
			t.rise[l][d] -= max(0, line-held+r.amount[d]) - max(0, line-held)
		}
	}
	t.states[i] = candidate{}
}

// lacksRoom reports whether the claimant lacks room in the cluster, or on the given node if it takes any of it.
func (t *trial) lacksRoom(n model.NodeID) bool {
	onNodes := len(t.nodes) > 0
	for m := t.positive; m != 0; m = m.Rest() {
		d := m.First()
		left, need := t.left(d), t.need[d]
		if onNodes {
			need = 0
		}
		if left < need {
			return true
		}
		if onNodes && n != model.None && t.placedNodes[int(n)*t.s.width+d] > 0 && t.leftOn(n, d) < 0 {
			return true
		}
	}
	return false
}

// exceeds reports whether the claimant exceeds some limit on its path.
func (t *trial) exceeds() bool {
	for a := t.queue; a != none; a = t.s.tree.parent[a] {
		for m := t.positive & t.s.limits[a].limited; m != 0; m = m.Rest() {
			if t.over(a, m.First()) {
				return true
			}
		}
	}
	return false
}
