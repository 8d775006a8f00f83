package reference

import (
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

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
func (p *plan) evictionOrder(of string, claimant, candidates *apportionv1.Tasks) {
	if len(claimant.Index) == 0 {
		return
	}
	step := &apportionv1.OrderStep{
		Subject:  &apportionv1.OrderStep_Tasks{Tasks: candidates},
		Claimant: &apportionv1.OrderStep_ClaimantTask{ClaimantTask: claimant.Index[0]},
	}
	p.ask(&apportionv1.Step{Step: &apportionv1.Step_Order{Order: step}}, inside(of, "victimPopOrder"), noTask,
		func(f *form, a *apportionv1.Answer) any { return list(a.GetOrder().GetSorted(), f.task) })
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
	for _, p := range answer.ByPlugin {
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
