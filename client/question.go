package client

import (
	"maps"
	"math"
	"slices"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// SharesQuestion requests the shares of queues.
type SharesQuestion struct {
	// Queues by name. Nil: all.
	Queues []string
	// Fields to return. Nil: all.
	Fields []apportionv1.ShareField
	// JobShares adds every job's share in DRF.
	JobShares bool
	// Tree adds the tree of hierarchical DRF.
	Tree bool
	// Explain adds the whole derivation.
	Explain bool
}

// EnqueueQuestion asks which jobs may enter their queues; each permit affects the next decision.
type EnqueueQuestion struct {
	// Jobs by uid, or namespace/name, in this order. Nil: all.
	Jobs []string
	// AsAction decides as Volcano's enqueue action does: pending jobs only, queue by queue in queue order.
	AsAction bool
}

// AllocatableQuestion asks whether the queues of tasks may use that much more.
type AllocatableQuestion struct {
	// Tasks by uid, or namespace/name.
	Tasks []string
	// Jointly checks all tasks together; they must belong to one queue.
	Jointly bool
	// Simulation uses only the numbers, regardless of the queue's state.
	Simulation bool
	// Preemptive also asks whether the queues may take the resources from others.
	Preemptive bool
	// Explain adds every comparison.
	Explain bool
}

// VictimsQuestion asks which tasks a task may evict.
type VictimsQuestion struct {
	// Claimant by uid, or namespace/name.
	Claimant string
	// With are further tasks of the claimant's job, by uid or namespace/name, that claim together with it. Only policies that reclaim by
	// plans support them.
	With []string
	// Room is where the claimants are to be placed. Only policies that reclaim by plans use it.
	Room apportionv1.ClaimRoom
	// Candidates by uid, or namespace/name, in this order. Nil: every task that Volcano's action would consider.
	Candidates []string
	// Preempt selects victims within the claimant's queue instead of other queues.
	Preempt bool
	// EligibleOnly first excludes the tasks that Volcano's action excludes.
	EligibleOnly bool
	// Explain adds every check.
	Explain bool
}

// NodesQuestion asks where tasks fit.
type NodesQuestion struct {
	// Tasks by uid, or namespace/name.
	Tasks []string
	// Nodes by name. Nil: all.
	Nodes []string
	// Top limits the answer to this number of best nodes for each task, best first. 0: all nodes in the order of the question.
	Top uint32
	// ByPlugin adds each plugin's score, Explain a reason for each node that does not fit.
	ByPlugin, Explain bool
	// Jointly adds whether all tasks have room at the same time.
	Jointly bool
}

// ExplainQuestion asks why jobs wait.
type ExplainQuestion struct {
	// Jobs by uid, or namespace/name. Nil: all waiting jobs, grouped by cause.
	Jobs []string
	// Filter selects among all waiting jobs. Nil: all. Not together with Jobs.
	Filter *apportionv1.PendingFilter
}

// ForecastQuestion asks when a job starts, by chance.
type ForecastQuestion struct {
	// Job by uid, or namespace/name.
	Job string
	// Runs is how many times the cluster is run forward, at most 1000. 0: 100.
	Runs uint32
	// Seed determines what is drawn.
	Seed uint64
	// Past are finished jobs, from which runtimes are drawn. Nil: the answer has bounds and no odds.
	Past *apportionv1.PastJobs
	// Remembered names a snapshot whose past jobs the server knows from its ledger; Past is nil then.
	Remembered string
	// Arrivals lets jobs like the past ones arrive.
	Arrivals bool
	// Started says since when running jobs run, in Unix nanoseconds, by their index in the snapshot.
	Started map[uint32]int64
	// Horizon is how far runs look ahead, in whole seconds, at most 366 days. 0: 30 days.
	Horizon time.Duration
}

func (q *ForecastQuestion) step() *apportionv1.ForecastStep {
	horizon := uint32(math.MaxUint32)
	if seconds := q.Horizon / time.Second; seconds >= 0 && seconds < math.MaxUint32 {
		horizon = uint32(seconds)
	}
	step := &apportionv1.ForecastStep{
		Job: &apportionv1.Jobs{Uids: []string{q.Job}}, Runs: q.Runs, Seed: q.Seed, Past: q.Past, Arrivals: q.Arrivals,
		Remembered: q.Remembered, Horizon: horizon,
	}
	for _, job := range slices.Sorted(maps.Keys(q.Started)) {
		step.RunningJobs, step.StartedUnixNanos = append(step.RunningJobs, job), append(step.StartedUnixNanos, q.Started[job])
	}
	return step
}

// RemediesQuestion asks for the smallest changes that would make a job run.
type RemediesQuestion struct {
	// Job by uid, or namespace/name.
	Job string
	// Kinds of changes to try. Nil: all.
	Kinds []apportionv1.RemedyKind
}

func (q *RemediesQuestion) step() *apportionv1.RemediesStep {
	return &apportionv1.RemediesStep{Job: &apportionv1.Jobs{Uids: []string{q.Job}}, Kinds: q.Kinds}
}

// PlanQuestion asks where a job can be placed, and which tasks must be evicted for it.
type PlanQuestion struct {
	// Job by uid, or namespace/name. Empty if Tasks are given.
	Job string
	// Tasks of one job by uid, or namespace/name, all to be placed. Nil: those that the gang of the job needs.
	Tasks []string
	// Means selects how the plan may make room. Unspecified: by any means.
	Means apportionv1.PlanMeans
	// MaxVictims limits the number of victims. 0: no limit.
	MaxVictims uint32
}

func (q *PlanQuestion) step() *apportionv1.PlanStep {
	step := &apportionv1.PlanStep{Means: q.Means, MaxVictims: q.MaxVictims}
	if q.Job != "" {
		step.Job = &apportionv1.Jobs{Uids: []string{q.Job}}
	}
	if q.Tasks != nil {
		step.Tasks = &apportionv1.Tasks{Uids: q.Tasks}
	}
	return step
}
