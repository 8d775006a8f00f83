// Package comparison finds what another policy, or another cluster, would change, queue by queue and job by job.
package comparison

import (
	"cmp"
	"iter"
	"slices"

	"github.com/apportion/apportion/contract/lookup"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Plan contains the questions to both policies.
type Plan struct {
	snapshot *lookup.Snapshot
	// waiting contains one waiting task of each job, claimants those whose evictions are compared.
	waiting, claimants []uint32
	// Omitted is the number of waiting jobs whose evictions are not compared.
	Omitted int
}

const (
	// maxClaimants is the maximum number of jobs whose evictions are compared.
	maxClaimants = 500
	// maxConsidered limits it further in large clusters: it is the number of tasks that are considered as victims, for all claimants
	// together.
	maxConsidered = 2_500_000
)

// New plans a comparison about a snapshot. If there are too many waiting jobs, evictions are compared for the first of each queue, then for
// the second of each, and so on.
func New(snapshot *lookup.Snapshot) *Plan {
	p := &Plan{snapshot: snapshot}
	seen, turns := map[*apportionv1.Job]bool{}, map[uint32]int{}
	perQueue := map[string]int{}
	for _, task := range snapshot.Tasks {
		if !task.Pending() || seen[task.Job] {
			continue
		}
		seen[task.Job] = true
		p.waiting = append(p.waiting, task.Number)
		turns[task.Number] = perQueue[task.Job.GetQueue()]
		perQueue[task.Job.GetQueue()]++
	}
	most := min(maxClaimants, maxConsidered/max(1, len(snapshot.Tasks)), len(p.waiting))
	p.claimants, p.Omitted = p.waiting, len(p.waiting)-most
	if p.Omitted > 0 {
		p.claimants = slices.Clone(p.waiting)
		slices.SortStableFunc(p.claimants, func(l, r uint32) int { return cmp.Compare(turns[l], turns[r]) })
		p.claimants = p.claimants[:most]
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
)

// Needed is the number of first steps whose answers every comparison needs.
const Needed = enqueueAt + 2

// Steps returns the questions about queues and jobs.
func (p *Plan) Steps() []*apportionv1.Step {
	return []*apportionv1.Step{
		{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}},
		{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}},
		{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Mode: apportionv1.EnqueueMode_ENQUEUE_MODE_ACTION}}},
		{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{}}},
		{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: &apportionv1.Tasks{Index: p.waiting}}}},
	}
}

// Claims yields the questions about evictions in batches. The answers to a batch are held together, and each may list every task.
func (p *Plan) Claims() iter.Seq[[]*apportionv1.Step] {
	const most, tasks = 8, 50_000
	together := min(most, max(1, tasks/max(1, len(p.snapshot.Tasks))))
	return func(yield func([]*apportionv1.Step) bool) {
		for some := range slices.Chunk(p.claimants, together) {
			var steps []*apportionv1.Step
			for _, task := range some {
				claimant := &apportionv1.Tasks{Index: []uint32{task}}
				reclaim := &apportionv1.ReclaimStep{Claimant: claimant, OmitNames: true}
				preempt := &apportionv1.PreemptStep{Claimant: claimant, OmitNames: true}
				steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: reclaim}},
					&apportionv1.Step{Step: &apportionv1.Step_Preempt{Preempt: preempt}})
			}
			if !yield(steps) {
				return
			}
		}
	}
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
