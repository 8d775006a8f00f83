package audit

import (
	"math"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

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
			Tasks: &apportionv1.Selector{Indices: block}, Jointly: true,
		}}},
		reclaimStep(block, nil))
	if err != nil {
		return "", "", err
	}
	k := keeping{state: s, held: held, dimension: d, above: map[string]float64{}, byNode: map[int][]uint32{}}
	answer := answers[1].GetReclaim()
	if verdict := answers[0].GetPreemptive().GetTasks()[0].GetVerdict(); verdict.GetVote() != apportionv1.Vote_VOTE_PERMIT {
		k.why = text.Reasons(s.names, verdict.GetCauses())
		for _, v := range answer.GetVictims() {
			k.add(v.GetTask(), "")
		}
	}
	for _, spared := range answer.GetProtections() {
		if spared.GetPlugin() == s.divider && !known(spared.GetCode()) {
			k.add(spared.GetTask(), text.Reason(s.names, spared))
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
func known(code apportionv1.CauseCode) bool {
	switch code {
	case apportionv1.CauseCode_CAUSE_CODE_NOT_CALM, apportionv1.CauseCode_CAUSE_CODE_NO_PLAN,
		apportionv1.CauseCode_CAUSE_CODE_NOT_NEEDED:
		return true
	default:
		return false
	}
}
