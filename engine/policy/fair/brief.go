package fair

import (
	"slices"

	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// PlanBriefly returns what Plan returns for the candidates of the lists, one list after the other, without reasons. Queues that hold
// nothing above a line, which most are, cost no visit to their tasks.
func (s *State) PlanBriefly(c *policy.Claim, lists []policy.QueueTasks) policy.Plan {
	if lists == nil {
		lists = []policy.QueueTasks{}
	}
	return s.plan(c, lists, nil)
}

// choose makes those of the lists the candidates of an attempt that it may take. The others it never takes, whatever it has taken before:
// the more is taken, the less a queue holds above the lines, and the more it lacks under them without another task.
func (t *trial) choose(lists []policy.QueueTasks) {
	s := t.s
	t.own, t.brief, t.near.known = *t.claim, true, false
	t.claim = &t.own
	if t.calmOf == nil {
		t.calmOf = make([]uint64, len(s.requests))
	}
	chosen := t.chosen[:0]
	for i := range lists {
		tasks := lists[i].Tasks
		if s.v.Yield(i); len(tasks) == 0 {
			continue
		}
		p := s.leafOfQueue(lists[i].Queue)
		if p == none || p == t.queue {
			continue
		}
		above := t.aboveIn(p)
		if above == 0 {
			continue
		}
		t.round += 2
		if !s.v.Work.Use(len(tasks), 1) {
			break
		}
		for _, v := range tasks {
			r := s.v.Tasks.At(v).Request
			if s.requests[r].positive&above != 0 && t.calmAlone(p, r) && t.spares(v, p) == 0 {
				chosen = append(chosen, v)
			}
		}
	}
	t.considered += len(chosen)
	t.chosen, t.own.Candidates = chosen, chosen
	t.states = slices.Grow(t.states[:0], len(chosen))[:len(chosen)]
	clear(t.states)
}

// aboveIn returns the dimensions that the claimant needs in which a leaf, and all its ancestors that are not the claimant's, hold more than
// the lines.
func (t *trial) aboveIn(p place) resource.Mask {
	branch, _ := t.s.tree.branches(p, t.queue)
	above := resource.Mask(0)
	for m := t.positive; m != 0; m = m.Rest() {
		d := m.First()
		at := p
		for at != branch && t.held(at, d) > t.keeps(at, d) {
			at = t.s.tree.parent[at]
		}
		if at == branch && t.held(at, d) > t.keeps(at, d) {
			above = above.With(d)
		}
	}
	return above
}

// calmAlone reports whether the plan is calm that evicts one task of a leaf alone, which has request r. In one round the leaf is the same.
func (t *trial) calmAlone(p place, r int32) bool {
	if known := &t.calmOf[r]; *known|1 != t.round|1 {
		*known = t.round
		request := &t.s.requests[r]
		if _, calm := t.calm(p, request, request.positive); calm {
			*known |= 1
		}
	}
	return t.calmOf[r]&1 != 0
}

// Steadily is true unless jobs are ordered by their owners too, whose shares depend on the division among queues.
func (s *State) Steadily() bool { return s.owned == nil }
