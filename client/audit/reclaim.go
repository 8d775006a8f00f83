package audit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/apportion/apportion/contract/lookup"
	"github.com/apportion/apportion/contract/text"
	"github.com/apportion/apportion/cycle"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// times says how often in words.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return text.Count(n, "time")
}

// Evict evicts for a block that may take from others, and starts it. The limit of candidates applies once victims were sought for all that
// waits.
func (s *state) Evict(block []uint32, _ cycle.Action) (bool, error) {
	switch {
	case s.tries >= triesPerMove*s.limits.Moves:
		s.report.Partial = fmt.Sprintf("victims were sought for the first %d gangs and single tasks only", s.tries)
		return false, nil
	case s.plansVictims && s.considered >= s.limits.Candidates:
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
	if s.moves++; s.moves >= s.limits.Moves {
		s.report.Partial = fmt.Sprintf("only the first %d moves were tried", s.limits.Moves)
	}
	return true, nil
}

// settled ends the evictions if a state repeats, or where not everything was tried.
func (s *state) settled() bool {
	if before, seen := s.seen[s.running]; seen {
		s.circle(s.plans[before:])
		return true
	}
	s.seen[s.running] = len(s.plans)
	return s.report.Partial != ""
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

// evictFor evicts for a block, all of it or nothing, and starts it. Without plans, blocks of one queue that ask for the same with the same
// priority are alike: if one finds no victims, the others are not tried until something moves.
func (s *state) evictFor(block []uint32) (bool, error) {
	like := s.like(block)
	if s.hopeless[like] {
		return false, nil
	}
	answers, err := s.ask(
		&apportionv1.Step{Step: &apportionv1.Step_Preemptive{Preemptive: &apportionv1.PreemptiveStep{
			Tasks: &apportionv1.Tasks{Index: block}, Jointly: true,
		}}},
		&apportionv1.Step{Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{
			Jobs: &apportionv1.Jobs{Index: []uint32{s.of[block[0]].index}}, OmitNames: true,
		}}})
	if err != nil || answers[0].GetPreemptive().GetTasks()[0].GetVerdict().GetVote() == apportionv1.Vote_VOTE_REJECT {
		return false, err
	}
	starving := answers[1].GetJobs().GetJobs()[0].GetStarving().GetVote() == apportionv1.Vote_VOTE_PERMIT
	if s.tries > 0 && !s.plansVictims && !starving {
		return false, nil
	}
	s.tries++
	if s.tries == 1 {
		s.considered += len(s.tasks)
		if answers, err = s.ask(reclaimStep(block[:1], nil)); err != nil {
			return false, err
		}
		s.plansVictims = answers[0].GetReclaim().GetPlan() != nil
	}
	moved := false
	switch {
	case s.plansVictims:
		moved, err = s.carryOut(block)
	case starving:
		moved, err = s.oneByOne(block)
	}
	s.hopeless[like] = !moved
	return moved, err
}

// like describes what a block asks for, of which queue and with which priority.
func (s *state) like(block []uint32) string {
	j := s.of[block[0]]
	key := fmt.Appendf(nil, "%d %d", j.queue, j.GetPriority())
	for _, t := range block {
		key = fmt.Appendf(key, " %d %v", s.snapshot.Tasks[t].GetPriority(), s.request[t])
	}
	return string(key)
}

// reclaimStep asks which tasks a claimant may evict; without candidates, of all tasks.
func reclaimStep(claimant, candidates []uint32) *apportionv1.Step {
	step := &apportionv1.ReclaimStep{
		Claimant: &apportionv1.Tasks{Index: claimant}, EligibleOnly: true, OmitNames: true, Room: apportionv1.ClaimRoom_CLAIM_ROOM_ANY_NODES,
	}
	if candidates != nil {
		step.Candidates = &apportionv1.Tasks{Index: candidates}
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

// carryOut asks for a plan for a block and carries it out.
func (s *state) carryOut(block []uint32) (bool, error) {
	s.considered += len(s.tasks)
	answers, err := s.ask(reclaimStep(block, nil))
	if err != nil {
		return false, err
	}
	answer := answers[0].GetReclaim()
	if !answer.GetPlan().GetMade() || len(answer.GetPlan().GetNode()) != len(block) {
		return false, nil
	}
	var victims []uint32
	for _, v := range answer.GetVictims() {
		victims = append(victims, v.GetTask())
	}
	if len(victims) > 0 {
		if err := s.evict(victims); err != nil {
			return false, err
		}
	}
	s.plans = append(s.plans, plan{block[0], victims})
	return true, s.start(block, answer.GetPlan().GetNode())
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
			if order, ok := s.enough(n, task, answers[i].GetReclaim().GetEvictionOrder()); ok {
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

// guarantees finds queues that wait for a part of their guarantee although tasks run that the policy protects and that exceed the guarantee
// of their own queue. It reports one block for each queue.
func (s *state) guarantees() error {
	blocks, err := s.waiting()
	if err != nil || s.report.Partial != "" {
		return err
	}
	held, said := s.held(), map[string]bool{}
	clear(s.hopeless)
	s.considered = 0
	for _, block := range blocks {
		task := s.snapshot.Tasks[block[0]]
		queue := task.Job.GetQueue()
		d := s.guaranteed(queue, block, held)
		if d < 0 || said[queue] || s.limited(queue, block, held) {
			continue
		}
		like := s.like(block)
		if s.hopeless[like] {
			continue
		}
		if len(block) == 1 {
			s.considered += len(s.tasks)
		}
		if s.considered > s.limits.Candidates {
			s.report.Partial = "whether guarantees can be had was not tried for all that waits"
			return nil
		}
		others, why, err := s.withheld(block, held, d)
		if err != nil {
			return err
		}
		if s.hopeless[like] = others == ""; others == "" {
			continue
		}
		said[queue] = true
		due := s.written(s.queueNamed(queue).GetGuarantee(), d)
		s.add(Breach{
			Property: GuaranteesHold, Queue: queue, Job: lookup.JobName(task.Job),
			Dimension: s.names.Dimensions[d], Given: held[queue][d], Due: due,
		}, "queue %s holds %s of its guarantee of %s %s; %s asks for %s and waits, while %s what is beyond a guarantee: %s",
			queue, s.short(d, held[queue][d]), s.short(d, due), s.names.Dimensions[d], s.who(block), s.asks(block), others, why)
	}
	return nil
}

func (a *auditor) queueNamed(name string) *apportionv1.Queue {
	index, err := a.snapshot.Queue(name)
	if err != nil {
		return nil
	}
	return a.snapshot.GetQueues()[index]
}

// guaranteed returns the first dimension of a block that is within its queue's guarantee in all that it asks for; -1 if it is not.
func (s *state) guaranteed(queue string, block []uint32, held map[string][]float64) int {
	first := -1
	for d, x := range s.sum(block) {
		g := s.written(s.queueNamed(queue).GetGuarantee(), d)
		switch within := held[queue][d]+x <= g; {
		case x <= 0 || s.names.Dimensions[d] == pods:
		case !within:
			return -1
		case first < 0:
			first = d
		}
	}
	return first
}

// withheld names the queues above their guarantee whose tasks the dividing plugin does not let a block evict, and says why; "" if no node
// would have room without these tasks. A victim that would cost more than it brings is a known limit of fair, not a breach.
func (s *state) withheld(block []uint32, held map[string][]float64, d int) (others, why string, err error) {
	if len(block) > 1 {
		return "", "", nil
	}
	answers, err := s.ask(
		&apportionv1.Step{Step: &apportionv1.Step_Preemptive{Preemptive: &apportionv1.PreemptiveStep{
			Tasks: &apportionv1.Tasks{Index: block}, Jointly: true,
		}}},
		reclaimStep(block, nil))
	if err != nil {
		return "", "", err
	}
	k := keeping{state: s, held: held, dimension: d, above: map[string]float64{}, byNode: map[int][]uint32{}}
	answer := answers[1].GetReclaim()
	if verdict := answers[0].GetPreemptive().GetTasks()[0].GetVerdict(); verdict.GetVote() == apportionv1.Vote_VOTE_REJECT {
		k.why = text.Reasons(s.names, verdict.GetReasons())
		for _, v := range answer.GetVictims() {
			k.add(v.GetTask(), "")
		}
	}
	for _, spared := range answer.GetSpared() {
		if reason := spared.GetReasons()[0]; reason.GetPlugin() == s.divider && !known(reason.GetCode()) {
			k.add(spared.GetTask(), text.Reason(s.names, reason))
		}
	}
	for n, tasks := range k.byNode {
		if s.fits(n, block[0], tasks) {
			return k.queues(), k.why, nil
		}
	}
	return "", "", nil
}

// keeping gathers running tasks whose queues could lose them without falling below their guarantee.
type keeping struct {
	*state

	held      map[string][]float64
	dimension int
	// above is the sum over the tasks of each queue.
	above  map[string]float64
	byNode map[int][]uint32
	why    string
}

// add adds a task, once, with the reason why it keeps its place.
func (k *keeping) add(task uint32, why string) {
	queue, node := k.snapshot.Tasks[task].Job.GetQueue(), k.tasks[task].node
	if slices.Contains(k.byNode[node], task) {
		return
	}
	g := k.written(k.queueNamed(queue).GetGuarantee(), k.dimension)
	if math.IsNaN(g) {
		g = 0
	}
	x := k.request[task][k.dimension]
	if x <= 0 || x > k.held[queue][k.dimension]-g-k.above[queue] {
		return
	}
	k.above[queue] += x
	k.byNode[node] = append(k.byNode[node], task)
	if k.why == "" {
		k.why = why
	}
}

// queues names the queues of the tasks.
func (k *keeping) queues() string {
	var names []string
	for _, q := range k.snapshot.GetQueues() {
		if k.above[q.GetName()] > 0 {
			names = append(names, q.GetName())
		}
	}
	if len(names) == 1 {
		return "queue " + names[0] + " keeps"
	}
	return "queues " + few(names) + " keep"
}

// known are refusals of plans that docs/fair.md lists among the known limits.
func known(code apportionv1.ReasonCode) bool {
	switch code {
	case apportionv1.ReasonCode_REASON_CODE_NOT_CALM, apportionv1.ReasonCode_REASON_CODE_NO_PLAN,
		apportionv1.ReasonCode_REASON_CODE_NOT_NEEDED:
		return true
	default:
		return false
	}
}
