package reference

import (
	"cmp"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// orders asks for the order of the queues that the policy keeps accounts of, and of all jobs.
func (p *plan) orders(keys ...string) {
	queues := &apportionv1.Selector{}
	if p.hasTree() {
		queues.Indices = make([]uint32, len(p.queueNames))
		for q := range queues.Indices {
			queues.Indices[q] = uint32(q)
		}
	}
	step := &apportionv1.OrderStep{Subject: &apportionv1.OrderStep_Queues{Queues: queues}, Pairs: true}
	p.ask(&apportionv1.Step{Step: &apportionv1.Step_Order{Order: step}}, at(append(slices.Clone(keys), "queueOrder")...), "",
		func(f *form, a *apportionv1.Answer) any { return orderOf(a.GetOrder(), f.queue) })
	step = &apportionv1.OrderStep{Subject: &apportionv1.OrderStep_Jobs{Jobs: &apportionv1.Selector{}}, Pairs: true}
	p.ask(&apportionv1.Step{Step: &apportionv1.Step_Order{Order: step}}, at(append(slices.Clone(keys), "jobOrder")...), "",
		func(f *form, a *apportionv1.Answer) any { return orderOf(a.GetOrder(), f.job) })
}

// victimQueues asks in which order queues lose tasks.
func (p *plan) victimQueues(questions []VictimQueues) {
	for _, question := range questions {
		queues := &apportionv1.Selector{}
		for _, name := range question.Queues {
			if q, ok := p.queues[name]; ok {
				queues.Indices = append(queues.Indices, q)
			} else {
				queues.Names = append(queues.Names, name)
			}
		}
		step := &apportionv1.OrderStep{
			Subject:  &apportionv1.OrderStep_Queues{Queues: queues},
			Claimant: &apportionv1.OrderStep_ClaimantQueueName{ClaimantQueueName: question.PreemptorQueue},
			Pairs:    true,
		}
		p.ask(&apportionv1.Step{Step: &apportionv1.Step_Order{Order: step}}, next("victimQueueOrder"), "",
			func(f *form, a *apportionv1.Answer) any { return orderOf(a.GetOrder(), f.queue) })
	}
}

// orderOf is an order in the recorded form: pairs by name, and, if there is an order, its items, and the groups of items that compare equal
// under all plugins.
func orderOf(order *apportionv1.OrderAnswer, name func(uint32) string) any {
	if order == nil {
		return unanswered
	}
	recorded := object{"pairs": pairsOf(order.Pairs, name)}
	if order.Intransitive {
		recorded["intransitive"] = true
		return recorded
	}
	sorted := list(order.Items, name)
	recorded["sorted"] = sorted
	groups, from := []any{}, 0
	for _, length := range order.Ties {
		to := min(from+int(length), len(sorted))
		groups, from = append(groups, sorted[from:to]), to
	}
	recorded["tieGroups"] = groups
	return recorded
}

// pairsOf lists the comparisons by name, each with the smaller name on the left.
func pairsOf(pairs []*apportionv1.Pair, name func(uint32) string) []any {
	type pair struct {
		l, r    string
		compare float64
		less    bool
	}
	byName := make([]pair, 0, len(pairs))
	for _, p := range pairs {
		q := pair{name(p.Left), name(p.Right), sign(float64(p.Compare)), p.Less}
		if q.l > q.r {
			q = pair{q.r, q.l, -q.compare, !q.less}
		}
		byName = append(byName, q)
	}
	slices.SortFunc(byName, func(a, b pair) int { return cmp.Or(strings.Compare(a.l, b.l), strings.Compare(a.r, b.r)) })
	recorded := make([]any, len(byName))
	for i, q := range byName {
		recorded[i] = object{"l": q.l, "r": q.r, "cmp": q.compare, "less": q.less}
	}
	return recorded
}

// reclaims asks which tasks of other queues a task may evict.
func (p *plan) reclaims(questions []Eviction) {
	for _, question := range questions {
		claimant, candidates := p.taskRefs(question.Task), p.taskRefs(p.known(question.Candidates)...)
		step := &apportionv1.ReclaimStep{Claimant: claimant, Candidates: candidates}
		p.ask(&apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: step}}, next("reclaims"), noTask,
			func(f *form, a *apportionv1.Answer) any { return victimsOf(f, a.GetReclaim()) })
		p.evictionOrder("reclaims", claimant, candidates)
	}
}

// preempts asks which tasks of its own queue a task may evict.
func (p *plan) preempts(questions []Eviction) {
	for _, question := range questions {
		claimant, candidates := p.taskRefs(question.Task), p.taskRefs(p.known(question.Candidates)...)
		step := &apportionv1.PreemptStep{Claimant: claimant, Candidates: candidates}
		p.ask(&apportionv1.Step{Step: &apportionv1.Step_Preempt{Preempt: step}}, next("preempts"), noTask,
			func(f *form, a *apportionv1.Answer) any { return victimsOf(f, a.GetPreempt()) })
		p.evictionOrder("preempts", claimant, candidates)
	}
}

// evictionOrder asks in which order all candidates would be evicted, chosen or not.
func (p *plan) evictionOrder(of string, claimant, candidates *apportionv1.Selector) {
	if len(claimant.Indices) == 0 {
		return
	}
	step := &apportionv1.OrderStep{
		Subject:  &apportionv1.OrderStep_Tasks{Tasks: candidates},
		Claimant: &apportionv1.OrderStep_ClaimantTask{ClaimantTask: claimant.Indices[0]},
	}
	p.ask(&apportionv1.Step{Step: &apportionv1.Step_Order{Order: step}}, inside(of, "victimPopOrder"), noTask,
		func(f *form, a *apportionv1.Answer) any { return list(a.GetOrder().GetItems(), f.task) })
}

func victimsOf(f *form, answer *apportionv1.VictimsAnswer) any {
	if answer == nil {
		return unanswered
	}
	victims := make([]any, len(answer.Victims))
	for i, v := range answer.Victims {
		victims[i] = f.task(v.Task)
	}
	byPlugin := object{}
	for _, p := range answer.Plugins {
		byPlugin[p.Plugin] = object{"vote": ballot(p.Vote), partVictims: list(p.Victims, f.task)}
	}
	return object{partVictims: victims, "byPlugin": byPlugin}
}

// ballot is Volcano's number of a vote (pkg/scheduler/plugins/util: Permit, Abstain, Reject).
func ballot(v apportionv1.Vote) any {
	switch v {
	case apportionv1.Vote_VOTE_PERMIT:
		return 1.0
	case apportionv1.Vote_VOTE_ABSTAIN:
		return 0.0
	case apportionv1.Vote_VOTE_REJECT:
		return -1.0
	case apportionv1.Vote_VOTE_UNSPECIFIED:
	}
	return unanswered
}
