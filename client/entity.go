package client

import (
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Queue shares the cluster with its siblings. Only the name is needed.
type Queue struct {
	Name string
	// Parent is the name of the parent queue, "" for a child of root. Only hierarchical policies use it.
	Parent string
	// Weight is the proportional weight; 0 stands for the default of 1.
	Weight uint32
	// Weightless gives the queue a weight of 0: no more than its guarantee.
	Weightless bool
	// Priority of the queue, higher first.
	Priority int32
	// State other than open (the default) admits nothing.
	State apportionv1.QueueState
	// NotReclaimable protects running tasks from being reclaimed for other queues.
	NotReclaimable bool
	// Capability is the upper bound of use, Guarantee is reserved even when idle, Deserved is the configured share for the capacity plugin.
	Capability, Guarantee, Deserved Resources
	// NodeGroupAffinity binds the queue to groups of nodes.
	NodeGroupAffinity *apportionv1.NodeGroupAffinity
	// NodeGroupLimits bound, by group, what the queue's own tasks may hold together on the nodes of the group (Volcano 1.16).
	// NodeGroupLimitsInvalid: they could not be read, and no node takes tasks of the queue.
	NodeGroupLimits        map[string]Resources
	NodeGroupLimitsInvalid bool
	// FairShareHierarchy places the queue in the tree of hierarchical DRF.
	FairShareHierarchy *apportionv1.FairShareHierarchy
	// Usage is the decayed usage of all tasks that ever ran in the queue or below it, for `fair` with memory. Nil: not known.
	Usage Usage
	// Entitled is what the queue was entitled to, decayed as Usage is, for `fair` with turns. Nil: not known.
	Entitled Usage
	// Reserved is the room that reservations of its gangs kept idle, decayed alike. Nil: none.
	Reserved Usage
	// Budget bounds or slows what the queue may use. Nil: none.
	Budget *Budget
	// Owners are those of jobs of a queue without children.
	Owners []OwnerUsage
	// Kueue is what the policy `kueue` reads of the queue, a ClusterQueue or a Cohort. Nil: a queue without quota. Its amounts refer to
	// Dimensions.
	Kueue      *apportionv1.KueueQueue
	Dimensions []string
	// Created breaks ties, older first.
	Created time.Time
}

// Node offers resources.
type Node struct {
	Name string
	// Allocatable resources for tasks.
	Allocatable Resources
	// UsedByOthers is the usage of tasks that are not in the snapshot.
	UsedByOthers Resources
	// Group is the node group for the nodegroup plugin, "" for none.
	Group string
	// Unschedulable is the reason why the node takes no new tasks. Nil: it takes them.
	Unschedulable *apportionv1.NodeUnschedulable
	// Domains has the node's domain in each topology of Snapshot.Pods, 0 for none; OtherPods and LeavingPods are the classes of pods on it
	// that are no tasks of the snapshot, those of LeavingPods being deleted.
	Domains, OtherPods, LeavingPods []uint32
	// Reservations keep room of the node during periods.
	Reservations []NodeReservation
	// RevocableZone is the zone of the node for the plugin tdm, "" for none.
	RevocableZone string
}

// NodeReservation keeps room of a node during a period, for a job, or for none as during maintenance.
type NodeReservation struct {
	// From is when it begins, zero: it has begun. Until is when it ends, zero: it does not.
	From, Until time.Time
	// Request is what is kept. Nil: the whole node.
	Request Resources
	// Holder is the uid of the job that may use it. Empty: no job may.
	Holder string
	// Reason says why, for people.
	Reason string
}

// NodeSet is a named set of nodes to which groups and tasks can be restricted.
type NodeSet struct {
	Name string
	// Nodes are names of nodes of the snapshot.
	Nodes []string
	// Rule is a human-readable description of the set, such as a node selector.
	Rule string
	// ToleratesCordon: the tasks also use nodes of the set that are cordoned.
	ToleratesCordon bool
	// Fixed: the rule goes by what each node has for itself, such as its name. No node that is added is in the set, whatever it is like.
	Fixed bool
	// Flavor makes the set a flavor of the policy `kueue`; it is not copied. Nil: it is none.
	Flavor *apportionv1.KueueFlavor
	// Preferences are the nodes that the tasks would rather use or avoid.
	Preferences []NodePreference
}

// Job is a set of tasks that are admitted together.
type Job struct {
	// UID identifies the job. If empty, namespace/name identifies it, or name alone.
	UID, Name, Namespace string
	// Queue is the name of a queue of the snapshot.
	Queue string
	// Priority of the job, higher first.
	Priority int32
	// Phase other than pending (the default) means that the job is already admitted.
	Phase apportionv1.JobPhase
	// MinAvailable is the number of tasks that must run together.
	MinAvailable uint32
	// MinResources are the resources that the job needs to start. Nil: the job is completely elastic.
	MinResources Resources
	// Condition is the last report of the job's controller or scheduler.
	Condition string
	// ExpectedEnd is when a running job is expected to end, and ExpectedRuntime how long the job runs once it starts. Zero: not known.
	ExpectedEnd     time.Time
	ExpectedRuntime time.Duration
	// Owner is charged for the usage of the job within its queue; take it from the authenticated user.
	Owner string
	// Kueue is what the policy `kueue` reads of the job, a Workload. Nil: the policy does not know the job. Its amounts refer to
	// Dimensions.
	Kueue      *apportionv1.KueueWorkload
	Dimensions []string
	// Created breaks ties, older first.
	Created time.Time
	Groups  []Group
	// Detail has rarely used properties; it is not copied. Nil: none.
	Detail *apportionv1.JobDetail
}

// Group is a role of a job: one request, shared by its tasks.
type Group struct {
	Role string
	// Request of each task without its own request. Nil: best effort.
	Request Resources
	// MinAvailable is the number of tasks of this role that the gang needs. Nil: the role is not counted.
	MinAvailable *uint32
	// NodeSet is the name of the node set that its tasks may use, "" for all nodes.
	NodeSet string
	// Unjudged are placement constraints of its tasks that the snapshot does not express.
	Unjudged []apportionv1.PlacementConstraint
	// PodClass is the number of the class in Snapshot.Pods of its tasks, 0 for none.
	PodClass uint32
	Tasks    []Task
	// Pending and Running count tasks that are not referred to one by one, in addition to Tasks.
	Pending, Running uint32
	// Unstated is what the containers of its tasks leave open in their requests. Nil: nothing.
	Unstated *apportionv1.Unstated
}

// Task is one pod.
type Task struct {
	// UID identifies the task. If empty, namespace/name identifies it, with the job's namespace.
	UID, Name string
	// Status is pending by default.
	Status apportionv1.TaskStatus
	// Node is the name of a node of the snapshot, "" for none.
	Node string
	// Priority of the task within the job, higher first. Nil: 1.
	Priority *int32
	// NotPreemptable excludes the task as a victim if the actions choose the candidates.
	NotPreemptable bool
	// Request replaces the request of the group. Resources{}: best effort.
	Request Resources
	// NodeSet is the name of a node set that replaces the group's, "" for none.
	NodeSet string
	// Unjudged are placement constraints in addition to those of the group.
	Unjudged []apportionv1.PlacementConstraint
	// PodClass replaces the group's class unless it is 0.
	PodClass uint32
	// Condition is the last report of the task's scheduler.
	Condition string
	// Index is the position within the role. Nil: unknown.
	Index *uint32
	Gate  apportionv1.TaskGate
	// PriorityClass is used by the conformance plugin.
	PriorityClass string
	// Scheduled is the time when the task was placed, Cooldown the time for which the cdp plugin protects it after that.
	Scheduled time.Time
	Cooldown  *time.Duration
	// NominatedNode is the name of the node on which room is being made for the task, "" for none.
	NominatedNode string
	// NeverPreempts: the task has nobody evicted. Unlabelled: it has no labels.
	NeverPreempts, Unlabelled bool
	// RevocableZone is the zone of revocable nodes that the task may use, "" for none.
	RevocableZone string
	// DisruptionBudgets are the names of those in the job's namespace that select the task.
	DisruptionBudgets []string
	// Unstated replaces what the group says. Nil: it does not.
	Unstated *apportionv1.Unstated
	// Created breaks ties, older first.
	Created time.Time
}

// uidOf returns the identifier of a job in questions.
func uidOf(job *apportionv1.Job) string {
	switch {
	case job.GetUid() != "":
		return job.GetUid()
	case job.GetNamespace() != "":
		return job.GetNamespace() + "/" + job.GetName()
	}
	return job.GetName()
}
