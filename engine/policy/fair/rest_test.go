package fair

import (
	"cmp"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Rest is a run to rest: queues move until none can, the first in order with a move first.
type Rest struct {
	*State
	Steps, Plans, Evictions int
	// check is called around every move; nil for none.
	check *checker
}

// RunToRest lets queues move until none can.
func (s *State) RunToRest() *Rest {
	r := &Rest{State: s}
	for r.move() {
		r.Steps++
	}
	return r
}

// move makes the first move there is. Where the rest of a gang is passed over, so are the further tasks of its job.
func (r *Rest) move() bool {
	for _, q := range r.Order() {
		for _, job := range r.Blocks(q) {
			if len(job.Gang) > 0 {
				if r.serve(q, job.Gang) {
					return true
				}
				continue
			}
			for i := range job.Loose {
				if r.serve(q, job.Loose[i:i+1]) {
					return true
				}
			}
		}
	}
	return false
}

func (r *Rest) set(t model.TaskID, status model.Status, n model.NodeID) {
	from, was := r.v.Status(t), r.v.NodeOf(t)
	r.v.SetStatus(t, status, n)
	r.Moved(t, from, was)
}

// serve places a block where it may be and fits, or else evicts for it if its queue is entitled.
func (r *Rest) serve(q model.QueueID, block []model.TaskID) bool {
	if r.Allocatable(q, policy.Request{Tasks: block}, policy.InSession, nil, nil) {
		if nodes, ok := r.FirstFit(block); ok {
			r.check.allocate(r, q, block, func() { r.start(block, nodes) })
			return true
		}
	}
	if !r.Preemptive(q, policy.Request{Tasks: block}, nil, nil) {
		return false
	}
	plan := r.Plan(&policy.Claim{Tasks: block, Candidates: r.candidates(), Room: policy.Room{Kind: policy.AnyNodes}}, nil)
	if !plan.Made {
		return false
	}
	r.check.plan(r, block, &plan, func() {
		for _, v := range plan.Victims {
			r.set(v, model.Pending, model.None)
		}
		r.start(block, plan.Nodes)
	})
	r.Plans++
	r.Evictions += len(plan.Victims)
	return true
}

func (r *Rest) start(block []model.TaskID, nodes []model.NodeID) {
	for i, t := range block {
		n := model.NodeID(model.None)
		if i < len(nodes) {
			n = nodes[i]
		}
		r.set(t, model.Running, n)
	}
}

// candidates are all running tasks: those of lower priority first, then the younger.
func (s *State) candidates() []model.TaskID {
	var list []model.TaskID
	for t := range s.v.Tasks.All() {
		if s.v.Status(t) == model.Running {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(l, r model.TaskID) int {
		lt, rt := s.v.Tasks.At(l), s.v.Tasks.At(r)
		return cmp.Or(cmp.Compare(s.v.Jobs.At(lt.Job).Priority, s.v.Jobs.At(rt.Job).Priority), cmp.Compare(lt.Priority, rt.Priority),
			cmp.Compare(rt.CreateTime, lt.CreateTime), cmp.Compare(l, r))
	})
	return list
}

// checker checks properties 14 to 16 along a run. A nil checker checks nothing.
type checker struct {
	t    require.TestingT
	seen map[string]bool
}

// compare compares two potentials from the left.
func compare(l, r [lines]*big.Rat) int {
	for i := range l {
		if c := l[i].Cmp(r[i]); c != 0 {
			return c
		}
	}
	return 0
}

func (c *checker) allocate(r *Rest, _ model.QueueID, _ []model.TaskID, do func()) {
	if c == nil {
		do()
		return
	}
	before := r.Potential()
	c.look(r)
	do()
	after := r.Potential()
	for i := range before {
		require.LessOrEqual(c.t, after[i].Cmp(before[i]), 0, "an allocation raises no lack")
	}
}

func (c *checker) plan(r *Rest, block []model.TaskID, plan *policy.Plan, do func()) {
	if c == nil {
		do()
		return
	}
	c.requireNeeded(r, block, plan)
	before := r.Potential()
	fall, rise := plan.Potential()
	victims, division := plan.Victims, r.division.version
	c.look(r)
	do()
	after := r.Potential()
	if r.division.version != division {
		// A victim that does not count while it waits never comes back; without its demand the lines are others.
		return
	}
	require.Negative(c.t, compare(after, before), "a plan lowers the potential")
	for i := range before {
		want := new(big.Rat).Sub(new(big.Rat).Add(before[i], rise[i]), fall[i])
		require.Zero(c.t, want.Cmp(after[i]), "line %d: by as much as it says", i)
	}
	if len(block) > 1 {
		return
	}
	for _, v := range victims {
		back := r.Plan(&policy.Claim{Tasks: []model.TaskID{v}, Candidates: block, Room: policy.Room{Kind: policy.AnyNodes}}, nil)
		require.Empty(c.t, back.Victims, "a victim takes a task of the claimant")
	}
}

// look requires that the state was never seen before.
func (c *checker) look(r *Rest) {
	key := make([]byte, 0, 2*r.v.Tasks.Len())
	for t := range r.v.Tasks.All() {
		key = append(key, byte(r.v.Status(t)), byte(r.v.NodeOf(t)))
	}
	require.False(c.t, c.seen[string(key)], "a state repeats")
	c.seen[string(key)] = true
}

// requireNeeded requires that a plan does without none of its victims, that its claimant has room, and is within its limits.
func (c *checker) requireNeeded(r *Rest, block []model.TaskID, plan *policy.Plan) {
	require.True(c.t, r.carries(block, plan, model.None))
	for _, v := range plan.Victims {
		require.False(c.t, r.carries(block, plan, v), "victim %s is not needed", r.v.TaskUID(v))
	}
}

// carries reports whether a plan makes room for its claimant, within the limits, without one of its victims.
func (s *State) carries(block []model.TaskID, plan *policy.Plan, without model.TaskID) bool {
	need, gone := make([]int64, s.width), make([]int64, s.width)
	positive := s.sum(block, need)
	on := map[model.NodeID][]int64{}
	place := s.leafOf(s.v.Tasks.At(block[0]).Job)
	below := map[int]int64{}
	for i, t := range block {
		if i < len(plan.Nodes) {
			n := plan.Nodes[i]
			if on[n] == nil {
				on[n] = make([]int64, s.width)
			}
			addTimes(on[n], s.requestOf(t), -1)
		}
	}
	for _, v := range plan.Victims {
		if v == without {
			continue
		}
		addTimes(gone, s.requestOf(v), 1)
		if n := s.v.NodeOf(v); on[n] != nil {
			addTimes(on[n], s.requestOf(v), 1)
		}
		for p := s.leafOf(s.v.Tasks.At(v).Job); p != none; p = s.tree.parent[p] {
			for d, x := range s.requestOf(v).amount {
				below[int(p)*s.width+d] += x
			}
		}
	}
	for m := positive; m != 0; m = m.Rest() {
		d := m.First()
		if s.future(d)+gone[d] < need[d] {
			return false
		}
		for p := place; p != none; p = s.tree.parent[p] {
			if limit := s.limits[p].capability[d]; limit != unlimited && s.row(s.accounts.held, p)[d]-below[int(p)*s.width+d]+need[d] > limit {
				return false
			}
		}
	}
	for i, t := range block {
		if i >= len(plan.Nodes) {
			continue
		}
		n := plan.Nodes[i]
		for m := s.requestOf(t).positive; m != 0; m = m.Rest() {
			if d := m.First(); s.futureOn(n, d)+on[n][d] < 0 {
				return false
			}
		}
	}
	return true
}

// Properties 13 to 16, and at rest everything as if the state had been there from the beginning.
func TestPropertiesOfRunsToRest(t *testing.T) {
	plans := 0
	eachCluster(t, *runs, draw.busy, func(t require.TestingT, d draw, c *cluster) int {
		s := c.open(t)
		r := &Rest{State: s, check: &checker{t, map[string]bool{}}}
		for r.move() {
			r.Steps++
			require.Less(t, r.Steps, 10_000, "a run does not end")
			if d.chance(20) {
				s.requireAnew(t)
			}
		}
		s.requireAnew(t)
		if !c.plugin.ReserveGuarantee {
			s.requireRest(t)
		}
		plans += r.Plans
		return 1
	})
	t.Log(plans, "plans")
	require.Greater(t, plans, *runs/20)
}

// requireRest checks property 13: nothing that is open and within its limits fits.
func (s *State) requireRest(t require.TestingT) {
	for _, q := range s.Order() {
		p := s.tree.at[q]
		for _, job := range s.Blocks(q) {
			list := [][]model.TaskID{job.Gang}
			if len(job.Gang) == 0 {
				list = nil
				for i := range job.Loose {
					list = append(list, job.Loose[i:i+1])
				}
			}
			for _, block := range list {
				need := make([]int64, s.width)
				positive := s.sum(block, need)
				if a, _ := s.exceeded(p, need, positive); a != none {
					continue
				}
				_, fits := s.FirstFit(block)
				require.False(t, fits, "a block of %s waits though it fits", s.v.Queues[q].Name)
			}
		}
	}
}

// requireAnew checks that what events have kept is what a state opened now has, and what the plain twins find.
func (s *State) requireAnew(t require.TestingT) {
	claimed, aside := make([]int64, s.width), make([]int64, s.width)
	for q, want := range s.PlainClaims() {
		require.True(t, s.Claims(q, claimed, aside))
		require.Equal(t, want, claimed, "claims of %s", s.v.Queues[q].Name)
	}
	opened, err := s.plugin.Open(s.v)
	require.NoError(t, err)
	fresh := opened.(*State)
	require.Equal(t, fresh.accounts, s.accounts)
	for d := range s.width {
		require.Equal(t, fresh.division.columns[d].Share, s.division.columns[d].Share)
	}
	require.Equal(t, fresh.Order(), s.Order())
	for _, q := range s.Order() {
		mine, anew := s.Blocks(q), fresh.Blocks(q)
		require.Len(t, mine, len(anew))
		for i := range mine {
			require.Equal(t, anew[i], mine[i])
		}
		require.Equal(t, fresh.Wants(q), s.Wants(q))
		require.Equal(t, fresh.Overused(q, nil), s.Overused(q, nil))
	}
}

// TestClaimsAreThoseOfTheStateThatARollbackReturnsTo asks for claims between moves, marks and rollbacks.
func TestClaimsAreThoseOfTheStateThatARollbackReturnsTo(t *testing.T) {
	eachCluster(t, *runs/4, draw.busy, func(t require.TestingT, d draw, c *cluster) int {
		s := c.open(t)
		r := &Rest{State: s}
		claimed, aside := make([]int64, s.width), make([]int64, s.width)
		marks := []policy.Position{s.v.Journal.Mark()}
		for range 30 {
			switch {
			case d.IntN(4) == 0 && len(marks) < 4:
				marks = append(marks, s.v.Journal.Mark())
			case d.IntN(3) == 0:
				s.v.Journal.Rollback(marks[len(marks)-1])
				if len(marks) > 1 {
					s.v.Journal.Release()
					marks = marks[:len(marks)-1]
				}
			case s.v.Tasks.Len() > 0:
				n := model.NodeID(model.None)
				if len(c.nodes) > 0 {
					n = model.NodeID(d.IntN(len(c.nodes)))
				}
				r.set(model.TaskID(d.IntN(s.v.Tasks.Len())), model.Status(d.IntN(model.NumStatus)), n)
			}
			if d.IntN(3) > 0 {
				for q, want := range s.PlainClaims() {
					require.True(t, s.Claims(q, claimed, aside))
					require.Equal(t, want, claimed, "claims of %s", s.v.Queues[q].Name)
				}
			}
		}
		return 1
	})
}

func TestEverythingIsUndone(t *testing.T) {
	eachCluster(t, *runs/4, draw.busy, func(t require.TestingT, d draw, c *cluster) int {
		s := c.open(t)
		order := s.Order()
		before := s.Potential()
		mark := s.v.Journal.Mark()
		r := &Rest{State: s}
		for range 8 {
			if s.v.Tasks.Len() > 0 {
				n := model.NodeID(model.None)
				if len(c.nodes) > 0 {
					n = model.NodeID(d.IntN(len(c.nodes)))
				}
				r.set(model.TaskID(d.IntN(s.v.Tasks.Len())), model.Status(d.IntN(model.NumStatus)), n)
			}
			s.requireAnew(t)
		}
		s.v.Journal.Rollback(mark)
		s.v.Journal.Release()
		s.requireAnew(t)
		require.Equal(t, order, s.Order())
		require.Zero(t, compare(before, s.Potential()))
		return 1
	})
}
