package fair

import (
	"math/big"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Plan finds the first plan among those that take from queues above their entitlement, above their fair share, and above their guarantee,
// each only for a claimant within the same line of its own queue.
func (s *State) Plan(c *policy.Claim, g *policy.Grounds) policy.Plan { return s.plan(c, nil, g) }

// plan is Plan; with lists it is PlanBriefly.
func (s *State) plan(c *policy.Claim, lists []policy.QueueTasks, g *policy.Grounds) policy.Plan {
	t := &s.scratch.trial
	p, refusal, refused := s.beginPlan(t, c)
	if refused {
		return policy.Plan{Refusal: refusal}
	}
	if lists != nil {
		t.considered = 0
	}
	for m := t.positive; m != 0; m = m.Rest() {
		d := m.First()
		s.addLoss(&t.fall, p, d, s.row(s.accounts.held, p)[d]+t.need[d], t.need[d])
	}
	var best policy.Plan
	for i := lines - 1; i >= 0; i-- {
		if !s.within(p, i, t.need, t.positive) {
			continue
		}
		t.line = i
		if lists != nil {
			t.reset()
			t.choose(lists)
		}
		plan := t.attempt()
		if plan.Made || i == lines-1 {
			best = plan
			t.keep()
		}
		if plan.Made || t.stopped {
			break
		}
	}
	t.reset()
	if best.Considered = t.considered; t.stopped {
		return policy.Plan{Stopped: true}
	}
	if lists != nil {
		return best
	}
	for i, v := range c.Candidates {
		if !best.Made || !t.kept[i].taken {
			g.Protect(v, t.kept[i].reason)
		}
	}
	return best
}

// beginPlan makes a trial one of a claim, and returns the claimant's place, or why there is no plan whatever the candidates are.
func (s *State) beginPlan(t *trial, c *policy.Claim) (place, policy.Reason, bool) {
	q := s.v.QueueOf(c.Tasks[0])
	p, refusal := s.serving(q)
	switch {
	case p == none:
		return none, refusal, true
	case !s.tree.open[p]:
		return none, policy.Because(name, policy.QueueNotOpen, q), true
	}
	s.settle()
	s.openRooms()
	t.begin(s, c, p)
	if t.positive == 0 {
		return none, policy.Because(name, policy.BestEffortClaimant, q), true
	}
	if d := s.unentitled(p, t.need, t.positive, (*State).takingLine); d >= 0 {
		return none, s.aboveLine(p, d, t.need[d], s.takingLine(p, d)), true
	}
	if t.beside != nil && s.disturbsPath(t.beside, p, t.need, t.positive) {
		return none, s.becauseReserved(t.beside), true
	}
	return p, policy.Reason{}, false
}

// trial is one search for a plan. Every number is meant with the victims so far evicted.
type trial struct {
	s     *State
	claim *policy.Claim
	queue place
	line  int
	// need is the sum of the requests of the claimant's tasks.
	need     []int64
	positive resource.Mask
	// fall is by how much the claimant lowers the potential, rise by how much the victims raise it.
	fall, rise, tried lacks
	states, kept      []candidate
	// victims are positions of candidates, in the order taken.
	victims []int32
	// gone has a row for each place: what its victims held.
	gone []int64
	// released is what victims leave to the cluster and, by node, to nodes; placed is what tasks of the claimant take of it.
	released, placed           []int64
	releasedNodes, placedNodes []int64
	nodes                      []model.NodeID
	near                       near
	// beside is the reservation that the claimant must leave room for, nil if there is none. later has what victims that would run beyond
	// its begin leave to the cluster, and laterNodes to its nodes.
	beside     *reservation
	later      []int64
	laterNodes map[model.NodeID][]int64
	// own, chosen, calmOf and round serve choose; brief says that no reasons are recorded, considered counts the candidates looked at.
	own        policy.Claim
	chosen     []model.TaskID
	calmOf     []uint64
	round      uint64
	brief      bool
	considered int
	// steps counts the candidates and nodes looked at; stopped says that the view asked to stop.
	steps   int
	stopped bool
}

// candidate is the state of one candidate.
type candidate struct {
	// taken is a victim, spared one that never can be.
	taken, spared bool
	reason        policy.Reason
}

// begin makes the trial one of a claim.
func (t *trial) begin(s *State, c *policy.Claim, queue place) {
	if t.gone == nil {
		t.s = s
		t.need, t.released, t.placed = make([]int64, s.width), make([]int64, s.width), make([]int64, s.width)
		t.fall, t.rise, t.tried = newLacks(s.width), newLacks(s.width), newLacks(s.width)
		t.gone = make([]int64, s.tree.len()*s.width)
		cells := make([]int64, 2*len(s.v.Nodes)*s.width)
		t.releasedNodes, t.placedNodes = cells[:len(cells)/2], cells[len(cells)/2:]
	}
	t.claim, t.queue = c, queue
	t.positive = s.sum(c.Tasks, t.need)
	t.fall.clear()
	t.near.known, t.steps, t.stopped, t.considered, t.brief = false, 0, false, len(c.Candidates), false
	if t.beside = s.reservationBefore(c.Tasks); t.beside != nil {
		t.later, t.laterNodes = make([]int64, s.width), map[model.NodeID][]int64{}
	}
	t.states = append(t.states[:0], make([]candidate, len(c.Candidates))...)
	t.kept = append(t.kept[:0], t.states...)
}

// halted counts a step and reports whether the plan is no longer needed.
func (t *trial) halted() bool {
	t.steps++
	t.stopped = t.stopped || t.s.v.Stopped(t.steps)
	return t.stopped
}

// keep keeps the reasons of this attempt.
func (t *trial) keep() {
	if !t.brief {
		copy(t.kept, t.states)
	}
}

// reset takes everything back that an attempt has done.
func (t *trial) reset() {
	for _, i := range t.victims {
		t.states[i].taken = false
		t.release(t.claim.Candidates[i], -1)
	}
	for i, n := range t.nodes {
		addTimes(t.s.roomOf(t.placedNodes, n), t.s.requestOf(t.claim.Tasks[i]), -1)
	}
	clear(t.states)
	clear(t.placed)
	t.rise.clear()
	t.victims, t.nodes = t.victims[:0], t.nodes[:0]
}

// release adds n times a victim to what is gone.
func (t *trial) release(v model.TaskID, n int64) {
	s := t.s
	r := s.requestOf(v)
	for p := s.leafOf(s.v.Tasks.At(v).Job); p != none; p = s.tree.parent[p] {
		addTimes(s.row(t.gone, p), r, n)
	}
	addTimes(t.released, r, n)
	if node := s.v.NodeOf(v); node != model.None {
		addTimes(s.roomOf(t.releasedNodes, node), r, n)
	}
	if t.beside != nil && s.ends.of[s.v.Tasks.At(v).Job] > t.beside.from {
		t.releaseLater(v, r, n)
	}
}

func (t *trial) held(p place, d int) int64 {
	at := int(p)*t.s.width + d
	return t.s.accounts.held[at] - t.gone[at]
}

// attempt searches a plan under the line and leaves each candidate's reason.
func (t *trial) attempt() policy.Plan {
	t.reset()
	t.spare()
	q := t.s.tree.queue[t.queue]
	if a, d := t.withinLimits(); a != none {
		return t.fail(t.overLimit(a, d))
	}
	if !t.makeRoom() {
		return t.fail(policy.Because(name, policy.NoPlan, q))
	}
	t.fillBack()
	plan := policy.Plan{Made: true, Line: t.line, Potential: t.potential()}
	for _, i := range t.victims {
		plan.Victims = append(plan.Victims, t.claim.Candidates[i])
	}
	plan.Nodes = append(plan.Nodes, t.nodes...)
	t.fill(policy.NotNeeded)
	return plan
}

// potential returns the amounts from which the plan's change of the potential follows, even when the trial is over.
func (t *trial) potential() func() (fall, rise [lines]*big.Rat) {
	s, falling, rising := t.s, newLacks(t.s.width), newLacks(t.s.width)
	falling.copyFrom(&t.fall)
	rising.copyFrom(&t.rise)
	totals := make([]int64, s.width)
	for d := range totals {
		totals[d] = s.divided(d)
	}
	return func() (fall, rise [lines]*big.Rat) { return fractions(&falling, totals), fractions(&rising, totals) }
}

func (t *trial) fail(refusal policy.Reason) policy.Plan {
	t.fill(policy.NoPlan)
	return policy.Plan{Refusal: refusal}
}

// fill sets the reason of every candidate that has none.
func (t *trial) fill(code policy.Code) {
	if t.brief {
		return
	}
	for i := range t.states {
		if state := &t.states[i]; state.reason.Code == 0 {
			state.reason = t.because(i, code)
		}
	}
}

func (t *trial) because(i int, code policy.Code) policy.Reason {
	return policy.Because(name, code, t.s.v.QueueOf(t.claim.Candidates[i]))
}
