// Package model is the compiled form of a snapshot: queues, jobs, tasks and nodes, with small integers for names and dense rows for
// requests. A Model is immutable and may be shared by any number of sessions.
package model

import (
	"github.com/apportion/apportion/engine/resource"
)

// QueueID is the position of a queue in its snapshot.
type QueueID int32

// JobID is the position of a job in its snapshot; added jobs follow.
type JobID int32

// TaskID numbers the tasks across the whole snapshot, in the order in which they were built; tasks of added jobs follow.
type TaskID int32

// NodeID is the position of a node in its snapshot.
type NodeID int32

// GroupID numbers the task groups of all jobs.
type GroupID int32

// None is no queue, job, task, node or group.
const None = -1

// Status is the state of a task.
type Status uint8

// The statuses of a task, as in Volcano's TaskStatus.
const (
	Pending Status = iota
	Allocated
	Pipelined
	Binding
	Bound
	Running
	Releasing
	Succeeded
	Failed
	Unknown
	NumStatus int = iota
)

// Holds reports whether a task of this status holds resources of its queue (Volcano's AllocatedStatus).
func (s Status) Holds() bool {
	return s == Allocated || s == Binding || s == Bound || s == Running
}

// Granted reports whether a task of this status holds resources, or waits for those that were promised to it and that others release.
func (s Status) Granted() bool { return s.Holds() || s == Pipelined }

// Occupies reports whether others cannot have what a task of this status uses: it holds resources, or is releasing them.
func (s Status) Occupies() bool { return s.Holds() || s == Releasing }

// Counts reports whether a node counts a task of this status that is on it: all except finished and pipelined tasks, so that a pending task
// with a node counts as well (Volcano's NodeInfo.AddTask).
func (s Status) Counts() bool { return s != Succeeded && s != Failed && s != Pipelined }

// Stays reports whether a node that counts a task of this status, or promises it resources, still does when others have released theirs.
func (s Status) Stays() bool { return s == Pipelined || s.Counts() && s != Releasing }

// QueueState is the state of a queue; only an Open queue admits jobs.
type QueueState uint8

// The states of a queue.
const (
	Open QueueState = iota
	Closing
	Closed
	StateUnknown
)

// Phase is the phase of a job.
type Phase uint8

// The phases of a job.
const (
	PhasePending Phase = iota
	PhaseInqueue
	PhaseRunning
	PhaseUnknown
	PhaseCompleted
)

// Gate is the kind of gate that keeps a task from being scheduled.
type Gate uint8

// The gates of a task.
const (
	GateNone Gate = iota
	GateAdmission
	GateOther
)

// Terms lists groups of nodes.
type Terms struct {
	Required, Preferred []string
}

// Len returns the number of groups that are listed.
func (t *Terms) Len() int {
	if t == nil {
		return 0
	}
	return len(t.Required) + len(t.Preferred)
}

// NodeAffinity binds a queue to groups of nodes; nil terms are absent.
type NodeAffinity struct {
	Affinity, AntiAffinity *Terms
}

// Len returns the number of terms.
func (a *NodeAffinity) Len() int {
	if a == nil {
		return 0
	}
	return a.Affinity.Len() + a.AntiAffinity.Len()
}

// Hierarchy is a queue's place in the tree of hierarchical DRF.
type Hierarchy struct {
	// Path and Weights are separated by '/', as written.
	Path, Weights string
}

// Queue is one queue of a snapshot. Absent rows were not given.
type Queue struct {
	Name        string
	Parent      string
	Weight      int32
	Priority    int32
	State       QueueState
	Reclaimable bool
	Capability  resource.Row
	Guarantee   resource.Row
	Deserved    resource.Row
	Affinity    *NodeAffinity
	Hierarchy   *Hierarchy
	CreateTime  int64
	// Memory is nil if the snapshot has neither usage nor a budget nor owners of it.
	Memory *QueueMemory
	// NodeLimits is nil if the queue has no limits for groups of nodes.
	NodeLimits *NodeLimits
	// Extra is nil for most policies.
	Extra *Extra
}

// Job is one job of a snapshot.
type Job struct {
	Queue    QueueID
	Priority int32
	Phase    Phase
	// EndIsDeadline: ExpectedEnd is a deadline, not an estimate.
	EndIsDeadline bool
	MinAvailable  int32
	// MinResources is absent if the job has none.
	MinResources resource.Row
	// Groups are FirstGroup … EndGroup-1, tasks FirstTask … EndTask-1.
	FirstGroup, EndGroup GroupID
	FirstTask, EndTask   TaskID
	// UID identifies the job: the given uid, or namespace/name.
	UID string
	// What is above is read of every job while a model is built, and lies together; what follows is read of single jobs.

	Name       string
	Namespace  string
	CreateTime int64
	// Condition is the last report of the job's controller or scheduler.
	Condition string
	// ExpectedEnd is when the job is expected to end, in Unix nanoseconds; 0: not known.
	ExpectedEnd int64
	// ExpectedRuntime is how long the job is expected to run, in nanoseconds; 0: not known.
	ExpectedRuntime int64
	// Owner is charged for what the job uses within its queue.
	Owner string
	// Extra is nil for most policies.
	Extra *Extra
	// Detail is nil for most jobs.
	Detail *JobDetail
}

// Count is a number of equal tasks without identity.
type Count struct {
	Group  GroupID
	Status Status
	Gate   Gate
	N      int32
}

// Group is a role of a job.
type Group struct {
	Job JobID
	// Unstated is what the containers of its tasks leave open in their requests.
	Unstated Unstated
	Role     string
	// MinAvailable is -1 if the role is not counted.
	MinAvailable int32
	// Request is a row of Model.Requests.
	Request int32
	// Counts are Model.Counts[FirstCount:EndCount].
	FirstCount, EndCount int32
	// NodeSet is the node set of its tasks without their own set.
	NodeSet NodeSetID
	// Unjudged are placement constraints of its tasks that the snapshot does not express.
	Unjudged Constraints
	// PodClass is the class in Model.Pods of its tasks without their own class.
	PodClass PodClassID
}

// Task is one task of a snapshot, without pointers, so that the garbage collector does not scan a hundred thousand tasks. Its uid and name
// are returned by Model.TaskUID and TaskName.
type Task struct {
	CreateTime int64
	uid, name  span
	Job        JobID
	Group      GroupID
	// Request is a row of Model.Requests.
	Request  int32
	Node     NodeID
	Priority int32
	// Index is the position within the role, -1 if unknown.
	Index int32
	// Detail is a position in Model.Details, or None.
	Detail      int32
	Status      Status
	Gate        Gate
	Preemptable bool
}

// Detail contains the rarely used properties of a task.
type Detail struct {
	PriorityClass string
	// ScheduleTime and Cooldown are in nanoseconds and valid only if their flags are set.
	ScheduleTime, Cooldown       int64
	HasScheduleTime, HasCooldown bool
	// NeverPreempts: no other task is evicted for this one. Unlabelled: it has no labels.
	NeverPreempts, Unlabelled bool
	// NodeSet replaces the group's node set unless it is AllNodes.
	NodeSet NodeSetID
	// Unjudged are placement constraints in addition to those of the group.
	Unjudged Constraints
	// PodClass replaces the group's class unless it is 0.
	PodClass PodClassID
	// rare is a position in Model.rares plus 1; 0: the task has nothing of it. Detail stays as small as it is without.
	rare int32
	// Condition is the last report of the task's scheduler.
	Condition string
}

// Node is one node of a snapshot.
type Node struct {
	Name        string
	Allocatable resource.Row
	// UsedByOthers is never absent.
	UsedByOthers resource.Row
	// Group is valid only if Labelled.
	Group    string
	Labelled bool
	// zone is a position in Model.zones plus 1; 0: none.
	zone int32
	// Unschedulable is the reason why the node takes no new tasks; nil if it takes them.
	Unschedulable *Unschedulable
	// Pods is nil if the node has neither domains nor other pods that matter.
	Pods *NodePods
	// reserved is nil if no room of the node is kept.
	reserved *[]Reservation
}

// LeftOutCause is the reason why a job or a pod is not considered. The values are those of the contract's LeftOutCause.
type LeftOutCause uint8

// LeftOut is a job or a waiting pod of the cluster that its scheduler does not consider, or an object that the snapshot cannot hold. It
// does not affect decisions.
type LeftOut struct {
	Cause           LeftOutCause
	Namespace, Name string
	// Queue, Job and Scheduler are the names that it refers to; the cause determines which of them is set.
	Queue, Job, Scheduler string
	// Kind and Detail are those of an invalid object.
	Kind, Detail string
}

// MaxLeftOut bounds the number of jobs, pods and objects that are listed as left out.
const MaxLeftOut = 100_000

// LeftOut adds a job or a pod that is not considered. The builder keeps its strings.
func (b *Builder) LeftOut(l LeftOut) {
	switch n := len(b.m.LeftOut); {
	case n > MaxLeftOut:
	case n == MaxLeftOut:
		b.faults.Add("left_out", "more than %d jobs and pods are left out", MaxLeftOut)
		fallthrough
	default:
		b.m.LeftOut = append(b.m.LeftOut, l)
	}
}
