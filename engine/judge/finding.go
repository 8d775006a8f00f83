package judge

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// CheckKind is a check that can block a job. The values are those of the contract's CheckKind.
type CheckKind uint8

// The checks, in the order in which they hold a job back.
const (
	// CheckAdmission asks whether the job, by itself, may enter its queue.
	CheckAdmission CheckKind = 1
	// CheckTasks asks whether the job has the tasks that its gang needs.
	CheckTasks CheckKind = 2
	// CheckQueue asks whether the queue is served.
	CheckQueue CheckKind = 3
	// CheckShare asks whether the queue may use what the gang needs.
	CheckShare CheckKind = 4
	// CheckNodes asks whether the nodes have room for what the gang needs.
	CheckNodes CheckKind = 5
	// CheckOrder asks whether the jobs that are served before leave enough.
	CheckOrder CheckKind = 6
	// CheckConstraints asks whether placement depends on what the snapshot does not express.
	CheckConstraints CheckKind = 7
	// CheckEviction asks which tasks could be evicted for the job.
	CheckEviction CheckKind = 8
	// CheckFeasibility asks whether the job could run if nothing else ran. It is a finding only where the job could not, before all others.
	CheckFeasibility CheckKind = 9
)

// Outcome is the outcome of a check. The values are those of the contract's CheckOutcome.
type Outcome uint8

// The outcomes.
const (
	// Passed: it does not block the job.
	Passed Outcome = 1
	// Failed: it blocks the job.
	Failed Outcome = 2
	// Noted: it is informative only.
	Noted Outcome = 3
	// NotKnown: it may block the job.
	NotKnown Outcome = 4
)

// Finding is one check of one job.
type Finding struct {
	Check   CheckKind
	Outcome Outcome
	// Reasons of a failed check: in CheckNodes those of nodes that have enough left first, then those of nodes that come
	// closest; in CheckEviction the most frequent first.
	Reasons []policy.Reason
	// Counts is the number of nodes (CheckNodes, CheckFeasibility) or tasks (CheckEviction) with each reason; otherwise nil.
	Counts []int
	// NodeCounts says in CheckNodes and CheckFeasibility why no node has room for Task, each node counted once; otherwise nil.
	NodeCounts []place.NodeCount
	// Task represents the tasks that the check is about; None: all.
	Task model.TaskID
	// Amount is the request (CheckShare, CheckNodes) or what evictions would free. Absent: nothing.
	Amount resource.Row
	// Tasks that could be evicted, in order of eviction: the victims of the plan if it has any, otherwise all.
	Tasks []model.TaskID
	// Enough: evicting these tasks makes room for what the gang needs.
	Enough bool
	// Jobs that are served before, in order.
	Jobs []model.JobID
	// Preempt: the tasks that could be evicted belong to the job's own queue.
	Preempt bool
}
