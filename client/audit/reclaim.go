package audit

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// times says how often in words.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return text.Count(n, "time")
}

// evictAndStart evicts for a block that may take from others, and starts it. Where no plans are made, which look at every task, the limit
// of candidates applies once victims were sought for all that waits.
func (s *state) evictAndStart(block []uint32) (bool, error) {
	switch {
	case s.tries >= triesPerMove*s.limits.Moves, s.plansVictims && s.considered >= s.limits.Candidates:
		s.report.Partial = fmt.Sprintf("victims were sought for the first %d gangs and single tasks only", s.tries)
		return false, nil
	case s.rounds > 0 && s.considered >= s.limits.Candidates:
		s.report.Partial = fmt.Sprintf("victims were sought for all that waits, and again %s; more evictions may follow", times(s.rounds))
		return false, nil
	}
	moved, err := s.evictFor(block)
	if err != nil || !moved {
		return false, err
	}
	s.reopen()
	clear(s.hopeless)
	s.moves++
	s.tooManyMoves()
	return true, nil
}

// settled ends the evictions if a state repeats, or where not everything was tried.
func (s *state) settled() bool {
	before, seen := s.seen[s.running]
	if seen {
		s.circle(s.plans[before:])
	}
	s.seen[s.running] = len(s.plans)
	s.ended = seen || s.report.Partial != ""
	return s.ended
}

// triesPerMove bounds how often victims are sought, for each move that may be made.
const triesPerMove = 4

// circle reports plans that lead back to the state in which they began.
func (s *state) circle(plans []plan) {
	var parts []string
	victims := 0
	for _, p := range plans {
		names := make([]string, len(p.victims))
		for i, v := range p.victims {
			names[i] = s.snapshot.Tasks[v].Name()
		}
		victims += len(names)
		parts = append(parts, fmt.Sprintf("%s evicts %s", s.who([]uint32{p.claimant}), few(names)))
	}
	s.add(Breach{Property: NoCircles, Given: float64(victims)},
		"after %d evictions the same tasks run on the same nodes as before: %s", victims, few(parts))
}

// evictFor evicts for a block, all of it or nothing, and starts it. Blocks of one queue and owner that ask for the same with the same
// priority are alike: if one finds no victims, the others are not tried until something moves.
func (s *state) evictFor(block []uint32) (bool, error) {
	like := s.like(block)
	if s.hopeless[like] {
		return false, nil
	}
	answers, err := s.ask(
		&apportionv1.Step{Step: &apportionv1.Step_Preemptive{Preemptive: &apportionv1.PreemptiveStep{
			Tasks: &apportionv1.Selector{Indices: block}, Jointly: true,
		}}},
		&apportionv1.Step{Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{
			Jobs: &apportionv1.Selector{Indices: []uint32{s.of[block[0]].index}},
		}}})
	if err != nil || answers[0].GetPreemptive().GetTasks()[0].GetVerdict().GetVote() != apportionv1.Vote_VOTE_PERMIT {
		return false, err
	}
	starving := answers[1].GetJobs().GetJobs()[0].GetStarving().GetVote() == apportionv1.Vote_VOTE_PERMIT
	if s.tries > 0 && !s.plansVictims && !starving {
		return false, nil
	}
	if s.tries++; s.tries == 1 {
		if s.plansVictims, err = s.plansFor(block[0]); err != nil {
			return false, err
		}
	}
	moved := false
	switch {
	case s.plansVictims:
		moved, err = s.carryOut(block)
	case starving:
		moved, err = s.oneByOne(block)
	}
	s.hopeless[like] = !moved && (s.plansVictims || starving)
	return moved, err
}

// plansFor asks whether the policy reclaims by plans: then it answers whether a claim has one, and otherwise that it makes none. That costs
// far less than an answer about each candidate, which only servers are asked for that are older than this question.
func (s *state) plansFor(task uint32) (bool, error) {
	s.considered += len(s.tasks)
	answers, err := s.session.Do(s.ctx, planStep([]uint32{task}))
	switch {
	case err != nil:
		return false, err
	case answers[0].GetError().GetCode() == int32(codes.InvalidArgument):
		return false, nil
	case answers[0].GetEvictable().GetPlan() != nil:
		return true, nil
	}
	answers, err = s.ask(reclaimStep([]uint32{task}, nil))
	return err == nil && answers[0].GetReclaim().GetPlan() != nil, err
}

// like describes what a block asks for, of which queue and owner, on which nodes and with which priority.
func (s *state) like(block []uint32) string {
	j := s.of[block[0]]
	key := fmt.Appendf(nil, "%d %d %q", j.queue, j.GetPriority(), j.GetOwner())
	for _, t := range block {
		task := s.snapshot.Tasks[t]
		key = fmt.Appendf(key, " %d %d %q", task.GetPriority(), s.shape[t], cmp.Or(task.GetDetail().GetNodeSet(), task.Group.GetNodeSet()))
	}
	return string(key)
}

// planStep asks which plan is made for a claimant.
func planStep(claimant []uint32) *apportionv1.Step {
	return &apportionv1.Step{Step: &apportionv1.Step_Evictable{Evictable: &apportionv1.EvictableStep{
		Claimants: &apportionv1.Selector{Indices: claimant}, Jointly: true, Room: apportionv1.ClaimRoom_CLAIM_ROOM_ANY_NODES,
	}}}
}

// reclaimStep asks which tasks a claimant may evict; without candidates, of all tasks.
func reclaimStep(claimant, candidates []uint32) *apportionv1.Step {
	step := &apportionv1.ReclaimStep{
		Claimant: &apportionv1.Selector{Indices: claimant}, EligibleOnly: true,
		Room: apportionv1.ClaimRoom_CLAIM_ROOM_ANY_NODES,
	}
	if candidates != nil {
		step.Candidates = &apportionv1.Selector{Indices: candidates}
	}
	return &apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: step}}
}

// runningOn lists the tasks that run on a node, those of lower priority first, then the younger.
func (s *state) runningOn(node int) []uint32 {
	list := slices.Clone(s.on[node])
	slices.SortFunc(list, func(l, r uint32) int {
		lt, rt := s.snapshot.Tasks[l], s.snapshot.Tasks[r]
		return cmp.Or(cmp.Compare(lt.Job.GetPriority(), rt.Job.GetPriority()), cmp.Compare(lt.GetPriority(), rt.GetPriority()),
			cmp.Compare(rt.GetCreateTime(), lt.GetCreateTime()), cmp.Compare(l, r))
	})
	return list
}

// occupied lists the first nodes on which tasks run, as many as the limits say.
func (s *state) occupied() []int {
	var nodes []int
	for n := range s.on {
		if len(s.on[n]) > 0 && len(nodes) < s.limits.Nodes {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// planShare is the part of the tasks that a plan counts as considered: most queues hold nothing that a plan may take, and are left out.
const planShare = 100

// planFor asks for a plan for a block: its victims, and the nodes of the tasks of the block. nil: there is none.
func (s *state) planFor(block []uint32) (victims []uint32, made *apportionv1.ReclaimPlan, err error) {
	if !s.fullAnswers {
		answers, err := s.ask(planStep(block))
		if err != nil {
			return nil, nil, err
		}
		if found := answers[0].GetEvictable(); found.GetPlan() != nil {
			s.considered += len(s.tasks)/planShare + 1
			return found.GetReclaimVictims(), found.GetPlan(), nil
		}
		// The server is older than this question.
		s.fullAnswers = true
	}
	s.considered += len(s.tasks)
	answers, err := s.ask(reclaimStep(block, nil))
	if err != nil {
		return nil, nil, err
	}
	for _, v := range answers[0].GetReclaim().GetVictims() {
		victims = append(victims, v.GetTask())
	}
	return victims, answers[0].GetReclaim().GetPlan(), nil
}

// carryOut asks for a plan for a block and carries it out.
func (s *state) carryOut(block []uint32) (bool, error) {
	victims, made, err := s.planFor(block)
	if err != nil || !made.GetMade() || len(made.GetNodes()) != len(block) {
		return false, err
	}
	if len(victims) > 0 {
		if err := s.evict(victims); err != nil {
			return false, err
		}
	}
	s.plans = append(s.plans, plan{block[0], victims})
	return true, s.start(block, made.GetNodes())
}

// oneByOne makes room for each task of a block as a scheduler does: on the first node where enough may be evicted.
func (s *state) oneByOne(block []uint32) (bool, error) {
	mark, err := s.ask(&apportionv1.Step{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}})
	if err != nil {
		return false, err
	}
	plans := len(s.plans)
	s.journal = s.journal[:0]
	for _, task := range block {
		done, err := s.one(task)
		if err != nil {
			return false, err
		}
		if !done {
			s.plans = s.plans[:plans]
			s.undo()
			_, err := s.ask(&apportionv1.Step{Step: &apportionv1.Step_Rollback{
				Rollback: &apportionv1.RollbackStep{Mark: mark[0].GetMark().GetMark()},
			}})
			return false, err
		}
	}
	return true, nil
}

// one makes room for one task.
func (s *state) one(task uint32) (bool, error) {
	const together = 8
	for nodes := range slices.Chunk(s.occupied(), together) {
		steps := make([]*apportionv1.Step, len(nodes))
		for i, n := range nodes {
			candidates := s.runningOn(n)
			s.considered += len(candidates)
			steps[i] = reclaimStep([]uint32{task}, candidates)
		}
		answers, err := s.ask(steps...)
		if err != nil {
			return false, err
		}
		for i, n := range nodes {
			if order, ok := s.enough(n, task, answers[i].GetReclaim().GetEvictions()); ok {
				return true, s.replace(n, task, order)
			}
		}
	}
	return false, nil
}

// enough returns the first tasks of an order without which a node has room for a task.
func (s *state) enough(node int, task uint32, order []uint32) ([]uint32, bool) {
	for k := range len(order) + 1 {
		if s.fits(node, task, order[:k]) {
			return order[:k], true
		}
	}
	return nil, false
}

// replace evicts tasks of a node and starts another one there.
func (s *state) replace(node int, task uint32, victims []uint32) error {
	if len(victims) > 0 {
		if err := s.evict(victims); err != nil {
			return err
		}
		s.plans = append(s.plans, plan{task, slices.Clone(victims)})
	}
	return s.start([]uint32{task}, []uint32{uint32(node)})
}
