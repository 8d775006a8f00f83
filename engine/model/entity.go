// Package model is the compiled form of a snapshot: queues, jobs, tasks and nodes with names turned into small integers and requests
// into dense rows. A Model never changes once built and may be shared by any number of sessions.
package model

import "github.com/apportion/apportion/engine/resource"

// QueueID is the position of a queue in its snapshot.
type QueueID int32

// JobID is the position of a job in its snapshot; jobs added later follow.
type JobID int32

// TaskID numbers the tasks through the whole snapshot, in the order they were built; tasks of jobs added later follow.
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

// Occupies reports whether a task of this status uses its node, if it is on one: all but finished ones and pipelined ones, which wait for
// what others are about to release (Volcano's NodeInfo.AddTask).
func (s Status) Occupies() bool { return s != Succeeded && s != Failed && s != Pipelined }

// QueueState is the state of a queue; only an Open one admits.
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

// Gate says who holds a task back from scheduling.
type Gate uint8

// The gates of a task.
const (
	GateNone Gate = iota
	GateAdmission
	GateOther
)

// Terms names groups of nodes.
type Terms struct {
	Required, Preferred []string
}

// NodeAffinity binds a queue to groups of nodes; nil terms were not given.
type NodeAffinity struct {
	Affinity, AntiAffinity *Terms
}

// Hierarchy is a queue's place in the tree of hierarchical DRF.
type Hierarchy struct {
	// Path and Weights are separated by '/', as written.
	Path, Weights string
}

// Queue is one queue as its snapshot gives it. Absent rows were not given.
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
}

// Job is one job as its snapshot gives it.
type Job struct {
	// UID identifies the job: the uid given, or namespace/name.
	UID          string
	Name         string
	Namespace    string
	Queue        QueueID
	Priority     int32
	Phase        Phase
	MinAvailable int32
	// MinResources is absent if the job names none.
	MinResources resource.Row
	CreateTime   int64
	// Condition is what the job's controller or scheduler last reported, for people.
	Condition string
	// Groups are FirstGroup … EndGroup-1, tasks FirstTask … EndTask-1.
	FirstGroup, EndGroup GroupID
	FirstTask, EndTask   TaskID
}

// Count is a number of equal tasks that have no identity.
type Count struct {
	Group  GroupID
	Status Status
	Gate   Gate
	N      int32
}

// Group is a role of a job.
type Group struct {
	Job  JobID
	Role string
	// MinAvailable is -1 if the role is not counted.
	MinAvailable int32
	// Request is a row of Model.Requests.
	Request int32
	// Counts are Model.Counts[FirstCount:EndCount].
	FirstCount, EndCount int32
	// NodeSet is what its tasks may use that have no set of their own.
	NodeSet NodeSetID
	// Unjudged are constraints on the placement of its tasks that the snapshot does not express.
	Unjudged Constraints
}

// Task is one task as its snapshot gives it, without pointers: a hundred thousand of them are no work for the garbage collector. Its uid
// and name are Model.TaskUID and TaskName.
type Task struct {
	CreateTime int64
	uid, name  span
	Job        JobID
	Group      GroupID
	// Request is a row of Model.Requests.
	Request  int32
	Node     NodeID
	Priority int32
	// Index is the position within the role, -1 if not known.
	Index int32
	// Detail is a position in Model.Details, or None.
	Detail      int32
	Status      Status
	Gate        Gate
	Preemptable bool
}

// Detail holds what few tasks have.
type Detail struct {
	PriorityClass string
	// ScheduleTime and Cooldown are in nanoseconds and mean something only if the flag beside them is set.
	ScheduleTime, Cooldown       int64
	HasScheduleTime, HasCooldown bool
	// NodeSet replaces that of the group unless it is AllNodes.
	NodeSet NodeSetID
	// Unjudged are constraints beside those of the group.
	Unjudged Constraints
	// Condition is what the task's scheduler last reported, for people.
	Condition string
}

// Node is one node as its snapshot gives it.
type Node struct {
	Name        string
	Allocatable resource.Row
	// UsedByOthers is never absent.
	UsedByOthers resource.Row
	// Group means something only if Labelled.
	Group    string
	Labelled bool
	// Unschedulable says why the node takes no new tasks; nil if it takes them.
	Unschedulable *Unschedulable
}
