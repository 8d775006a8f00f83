// Package comparison finds what another policy, or another cluster, would change, queue by queue and job by job.
package comparison

import (
	"github.com/apportion/apportion/contract/lookup"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Plan contains the questions to both policies.
type Plan struct {
	snapshot *lookup.Snapshot
	// claimants contains one waiting task of each job.
	claimants []uint32
	// Omitted is the number of waiting jobs without questions.
	Omitted int
}

// maxClaimants is the maximum number of jobs whose evictions are compared.
const maxClaimants = 500

// New plans a comparison about a snapshot.
func New(snapshot *lookup.Snapshot) *Plan {
	p := &Plan{snapshot: snapshot}
	seen := map[*apportionv1.Job]bool{}
	for _, task := range snapshot.Tasks {
		if !task.Pending() || seen[task.Job] {
			continue
		}
		seen[task.Job] = true
		if len(p.claimants) == maxClaimants {
			p.Omitted++
			continue
		}
		p.claimants = append(p.claimants, task.Number)
	}
	return p
}

// The positions of the answers.
const (
	sharesAt = iota
	_
	enqueueAt
	_
	allocatableAt
	firstClaimantAt
)

// Needed is the number of first steps whose answers every comparison needs.
const Needed = enqueueAt + 2

// Steps returns the questions.
func (p *Plan) Steps() []*apportionv1.Step {
	steps := []*apportionv1.Step{
		{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}},
		{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}},
		{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION}}},
		{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{}}},
		{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: &apportionv1.Tasks{Index: p.claimants}}}},
	}
	for _, task := range p.claimants {
		claimant := &apportionv1.Tasks{Index: []uint32{task}}
		steps = append(steps,
			&apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{Claimant: claimant, OmitNames: true}}},
			&apportionv1.Step{Step: &apportionv1.Step_Preempt{Preempt: &apportionv1.PreemptStep{Claimant: claimant, OmitNames: true}}})
	}
	return steps
}

// dividing returns the queues of the first plugin that divides among queues.
func dividing(a *apportionv1.SharesAnswer) []*apportionv1.QueueShare {
	for _, p := range a.GetPlugins() {
		if len(p.GetQueues()) > 0 {
			return p.GetQueues()
		}
	}
	return nil
}

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// wordOf returns a verdict as one word. ABSTAIN counts as a permit.
func wordOf(v *apportionv1.Verdict) string {
	switch {
	case v == nil:
		return "not asked"
	case v.GetVote() == apportionv1.Vote_VOTE_REJECT:
		return "no"
	default:
		return "yes"
	}
}

func verdictAt(a *apportionv1.Answer, i int) *apportionv1.Verdict {
	if tasks := a.GetAllocatable().GetTasks(); i < len(tasks) {
		return tasks[i].GetVerdict()
	}
	return nil
}
