package checker

import (
	"math/big"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// search looks for a plan as docs/fair.md says under Taking back: candidates in order, all or nothing, and what is not needed is put back.
type search struct {
	*check

	queue, line int
	claim       []*task
	need        []int64
	// room is the one node on which the claimant is to be placed, root for the cluster, anywhere for any nodes.
	room       int
	candidates []*task
	// fall is what the claimant lowers the potential by, rise what the victims raise it by.
	fall, rise [3]*big.Rat
	// taken are positions of victims in the order taken; why has the reason of each other candidate that was looked at.
	taken []int
	why   []*apportionv1.Reason
	// gone is what victims held by queue and node, placed what the claimant takes of nodes and, under root, of the cluster.
	gone, freed, placed map[int][]int64
	nodes               []int
}

// anywhere is the room of a claimant that may be placed on any nodes.
const anywhere = -3

// found is what a search finds: a plan if there is no refusal. Why has a reason for each candidate that is not a victim.
type found struct {
	refusal    *apportionv1.Reason
	line       int
	victims    []*task
	nodes      []int
	fall, rise [3]*big.Rat
	why        map[*task]*apportionv1.Reason
}

// find searches under the entitlement, the fair share and the guarantee, each only for a claimant within the same line of its own queue. If
// there is no plan, the reasons are those of the first search.
func (c *check) find(claim, candidates []*task, room int) *found {
	var best *found
	for line := 2; line >= 0; line-- {
		s := c.newSearch(claim, candidates, room, line)
		if !c.entitled(s.queue, line, s.need, make([]int64, len(s.need))) {
			continue
		}
		f := s.attempt()
		if best == nil || f.refusal == nil {
			best = f
		}
		if f.refusal == nil {
			break
		}
	}
	return best
}

func (c *check) newSearch(claim, candidates []*task, room, line int) *search {
	s := &search{
		check: c, queue: claim[0].leaf, line: line, claim: claim, need: sum(claim, len(c.dims)), room: room, candidates: candidates,
		why: make([]*apportionv1.Reason, len(candidates)), gone: map[int][]int64{}, freed: map[int][]int64{}, placed: map[int][]int64{},
	}
	with := slices.Clone(c.held[s.queue])
	add(with, s.need, 1)
	for i := range s.fall {
		s.fall[i], s.rise[i] = new(big.Rat).Sub(c.lack(s.queue, c.held[s.queue], i), c.lack(s.queue, with, i)), new(big.Rat)
	}
	for i, v := range candidates {
		if code := c.spares(v, s.queue); code != 0 {
			s.why[i] = because(code, c.jobs[v.job].queue)
		}
	}
	return s
}

// attempt searches under one line: first victims for the limits, then for the room.
func (s *search) attempt() *found {
	f := &found{line: s.line, fall: s.fall, why: map[*task]*apportionv1.Reason{}}
	code := apportionv1.ReasonCode_REASON_CODE_NOT_NEEDED
	if a, d := s.limits(); d >= 0 {
		f.refusal = compared(apportionv1.ReasonCode_REASON_CODE_ABOVE_LIMIT, a, d, s.holds(a)[d], s.need[d], s.capability[a][d])
	} else if !s.makeRoom() {
		f.refusal = because(apportionv1.ReasonCode_REASON_CODE_NO_PLAN, s.queue)
	} else {
		s.fillBack()
	}
	if f.refusal != nil {
		code, s.taken = apportionv1.ReasonCode_REASON_CODE_NO_PLAN, nil
	}
	for _, i := range s.taken {
		f.victims = append(f.victims, s.candidates[i])
	}
	for i, v := range s.candidates {
		if f.why[v] = s.why[i]; f.why[v] == nil && !slices.Contains(s.taken, i) {
			f.why[v] = because(code, s.jobs[v.job].queue)
		}
	}
	f.nodes, f.rise = s.nodes, s.rise
	return f
}

// spares returns why a candidate is spared for any claimant of a queue; 0 if it is not.
func (c *check) spares(v *task, queue int) apportionv1.ReasonCode {
	switch {
	case v.leaf == aside:
		return apportionv1.ReasonCode_REASON_CODE_HIERARCHY_REFUSED
	case v.status != apportionv1.TaskStatus_TASK_STATUS_RUNNING:
		return apportionv1.ReasonCode_REASON_CODE_NOT_RUNNING
	case !v.preemptable:
		return apportionv1.ReasonCode_REASON_CODE_NOT_PREEMPTABLE
	case within(v.request, make([]int64, len(v.request))):
		return apportionv1.ReasonCode_REASON_CODE_BEST_EFFORT_VICTIM
	case !c.reclaimable(v.leaf):
		return apportionv1.ReasonCode_REASON_CODE_QUEUE_NOT_RECLAIMABLE
	case v.leaf == queue:
		return apportionv1.ReasonCode_REASON_CODE_SAME_QUEUE
	}
	return 0
}

func (c *cluster) reclaimable(q int) bool {
	return c.GetQueues()[q].Reclaimable == nil || c.GetQueues()[q].GetReclaimable()
}

// holds is what a queue holds without its victims.
func (s *search) holds(q int) []int64 {
	row := slices.Clone(s.held[q])
	add(row, s.gone[q], -1)
	return row
}

// limits takes victims until the claimant's queue and those above it are within their limits with the claimant, and returns where they are
// not; dimension -1 if they are.
func (s *search) limits() (queue, dimension int) {
	over := func(a, d int) bool {
		return s.need[d] > 0 && s.capability[a][d] != unlimited && s.holds(a)[d]+s.need[d] > s.capability[a][d]
	}
	for _, a := range s.path(s.queue) {
		for d := range s.need {
			for i := 0; i < len(s.candidates) && over(a, d); i++ {
				if v := s.candidates[i]; v.leaf == aside || slices.Contains(s.path(v.leaf), a) {
					s.consider(i, []int{d})
				}
			}
		}
	}
	for _, a := range s.path(s.queue) {
		for d := range s.need {
			if over(a, d) {
				return a, d
			}
		}
	}
	return root, -1
}

// makeRoom takes victims until the claimant has room, and reports whether it has.
func (s *search) makeRoom() bool {
	switch {
	case s.room == root || len(s.GetNodes()) == 0:
		return s.clear(root, s.need)
	case s.room != anywhere:
		for _, t := range s.claim {
			if !s.mayUse(s.room, t) {
				return false
			}
			s.nodes = append(s.nodes, s.room)
		}
		ok := s.clear(s.room, s.need)
		s.place(s.room, s.need)
		return ok
	}
	for _, t := range s.claim {
		n := s.house(t)
		if n < 0 {
			return false
		}
		s.nodes = append(s.nodes, n)
		s.place(n, t.request)
	}
	return true
}

// house returns the first node that has room for a task, or else the first on which victims make it; -1 if there is none.
func (s *search) house(t *task) int {
	for _, n := range s.byName {
		if len(s.short(n, t.request)) == 0 && s.mayUse(n, t) {
			return n
		}
	}
	for _, n := range s.byName {
		if !s.mayUse(n, t) {
			continue
		}
		before := len(s.taken)
		if s.clear(n, t.request) {
			return n
		}
		for _, i := range slices.Backward(s.taken[before:]) {
			s.evict(i, -1)
			s.why[i] = nil
		}
		s.taken = s.taken[:before]
	}
	return -1
}

func (s *search) place(n int, request []int64) {
	for _, at := range []int{n, root} {
		s.placed[at] = s.row0(s.placed[at])
		add(s.placed[at], request, 1)
	}
}

// row0 is a row, or zeros.
func (s *search) row0(row []int64) []int64 {
	if row == nil {
		row = make([]int64, len(s.dims))
	}
	return row
}

// remains is what will be free of a node, or of the cluster, without the victims and with what is placed of the claimant.
func (s *search) remains(n, d int) int64 {
	return s.future[n][d] + s.row0(s.freed[n])[d] - s.row0(s.placed[n])[d]
}

// short lists the dimensions in which a request has no room on a node, or in the cluster.
func (s *search) short(n int, request []int64) []int {
	var list []int
	for d, x := range request {
		if x > 0 && (s.remains(root, d) < x || s.remains(n, d) < x) {
			list = append(list, d)
		}
	}
	return list
}

// clear takes victims that are on a node, or on none, until a request has room there.
func (s *search) clear(n int, request []int64) bool {
	short := s.short(n, request)
	for i, v := range s.candidates {
		if len(short) == 0 {
			break
		}
		if (n == root || v.node == nil || int(*v.node) == n) && s.consider(i, short) {
			short = s.short(n, request)
		}
	}
	return len(short) == 0
}

// consider takes a candidate as a victim if it may be evicted for the dimensions that are short, and reports whether it is.
func (s *search) consider(i int, short []int) bool {
	v := s.candidates[i]
	if slices.Contains(s.taken, i) || s.spares(v, s.queue) != 0 {
		return false
	}
	shared := slices.DeleteFunc(slices.Clone(short), func(d int) bool { return v.request[d] <= 0 })
	switch {
	case len(shared) == 0:
		s.why[i] = because(apportionv1.ReasonCode_REASON_CODE_NO_SHARED_DIMENSION, v.leaf)
		return false
	case s.above(v, shared) != nil:
		s.why[i] = s.above(v, shared)
		return false
	}
	after := s.after(v)
	if line := lexical(after, s.fall); line >= 0 {
		s.why[i] = because(apportionv1.ReasonCode_REASON_CODE_NOT_CALM, v.leaf)
		s.why[i].Dimension, s.why[i].Need = new(uint32(shared[0])), float64(v.request[shared[0]])
		s.why[i].Have, _ = after[line].Float64()
		s.why[i].Limit, _ = s.fall[line].Float64()
		return false
	}
	s.evict(i, 1)
	s.taken, s.why[i] = append(s.taken, i), nil
	return true
}

// lexical returns the line that decides that one change of the potential is not less than another; -1 if it is less.
func lexical(rise, fall [3]*big.Rat) int {
	for line := range rise {
		switch rise[line].Cmp(fall[line]) {
		case -1:
			return -1
		case 1:
			return line
		}
	}
	return len(rise) - 1
}

// above returns nil if a candidate's queue, and all above it that are not the claimant's, hold more than the line in a shared dimension;
// else the first that does not.
func (s *search) above(v *task, shared []int) *apportionv1.Reason {
	mine := s.path(s.queue)
	var within *apportionv1.Reason
	for _, d := range shared {
		over := true
		for _, a := range s.path(v.leaf) {
			if slices.Contains(mine, a) {
				break
			}
			if limit, more := s.keeps(a, d, v.request[d]); s.holds(a)[d] <= limit+more {
				if over = false; within == nil {
					within = compared(apportionv1.ReasonCode_REASON_CODE_WITHIN_ENTITLEMENT, a, d, s.holds(a)[d], v.request[d], limit)
				}
				break
			}
		}
		if over {
			return nil
		}
	}
	return within
}

// after is the rise of the potential with one more victim.
func (s *search) after(v *task) [3]*big.Rat {
	now := s.holds(v.leaf)
	then := slices.Clone(now)
	add(then, v.request, -1)
	var after [3]*big.Rat
	for i := range after {
		after[i] = new(big.Rat).Sub(s.lack(v.leaf, then, i), s.lack(v.leaf, now, i))
		after[i].Add(after[i], s.rise[i])
	}
	return after
}

// evict takes what a candidate holds from its queues and its node, or with -1 gives it back.
func (s *search) evict(i int, times int64) {
	v := s.candidates[i]
	if times > 0 {
		s.rise = s.after(v)
	}
	for _, a := range s.path(v.leaf) {
		s.gone[a] = s.row0(s.gone[a])
		add(s.gone[a], v.request, times)
	}
	if times < 0 {
		for line, x := range s.after(v) {
			s.rise[line] = new(big.Rat).Sub(new(big.Rat).Add(s.rise[line], s.rise[line]), x)
		}
	}
	places := []int{root}
	if v.node != nil {
		places = append(places, int(*v.node))
	}
	for _, n := range places {
		s.freed[n] = s.row0(s.freed[n])
		add(s.freed[n], v.request, times)
	}
}

// fillBack puts victims back that the plan does without, the last taken first.
func (s *search) fillBack() {
	for k, i := range slices.Backward(s.taken) {
		s.evict(i, -1)
		if s.lacks(s.candidates[i].node) {
			s.evict(i, 1)
			continue
		}
		s.why[i] = because(apportionv1.ReasonCode_REASON_CODE_NOT_NEEDED, s.candidates[i].leaf)
		s.taken = slices.Delete(s.taken, k, k+1)
	}
}

// lacks reports whether the claimant lacks room in the cluster or on a node, or exceeds a limit.
func (s *search) lacks(node *uint32) bool {
	for d, x := range s.need {
		if x <= 0 {
			continue
		}
		if len(s.nodes) == 0 && s.remains(root, d) < x || len(s.nodes) > 0 && s.remains(root, d) < 0 {
			return true
		}
		if node != nil && s.row0(s.placed[int(*node)])[d] > 0 && s.remains(int(*node), d) < 0 {
			return true
		}
		for _, a := range s.path(s.queue) {
			if s.capability[a][d] != unlimited && s.holds(a)[d]+x > s.capability[a][d] {
				return true
			}
		}
	}
	return false
}

// lack returns the amount by which held is below a line of a queue, as a share of the cluster summed over the dimensions.
func (c *check) lack(q int, held []int64, line int) *big.Rat {
	all := new(big.Rat)
	for d, x := range held {
		if total := c.all[d] / c.unit[d] * c.unit[d]; total > 0 {
			all.Add(all, big.NewRat(max(0, c.lines[q][d][line]*c.unit[d]-x), total))
		}
	}
	return all
}
