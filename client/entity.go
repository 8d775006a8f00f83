package client

import (
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Queue shares the cluster with its siblings. Only the name is needed.
type Queue struct {
	Name string
	// Parent is the queue above, "" for a child of root. Only hierarchical policies look at it.
	Parent string
	// Weight is the proportional weight; 0 stands for the default of 1.
	Weight uint32
	// Weightless gives the queue a weight of 0: no more than its guarantee.
	Weightless bool
	// Priority puts queues with more of it first.
	Priority int32
	// State other than open (the default) lets nothing in.
	State apportionv1.QueueState
	// NotReclaimable protects running tasks from being reclaimed for other queues.
	NotReclaimable bool
	// Capability bounds use from above, Guarantee is reserved even when idle, Deserved is the share set by hand for the capacity plugin.
	Capability, Guarantee, Deserved Resources
	// NodeGroupAffinity binds the queue to groups of nodes.
	NodeGroupAffinity *apportionv1.NodeGroupAffinity
	// FairShareHierarchy places the queue in the tree of hierarchical DRF.
	FairShareHierarchy *apportionv1.FairShareHierarchy
	// Created breaks ties, older first.
	Created time.Time
}

// Node offers resources.
type Node struct {
	Name string
	// Allocatable is what tasks may use.
	Allocatable Resources
	// UsedByOthers is used by tasks that are not in the snapshot.
	UsedByOthers Resources
	// Group is the node group for the nodegroup plugin, "" for none.
	Group string
	// Unschedulable says why the node takes no new tasks. Nil: it takes them.
	Unschedulable *apportionv1.NodeUnschedulable
}

// NodeSet is a set of nodes that groups and tasks are restricted to by its name.
type NodeSet struct {
	Name string
	// Nodes are names of nodes of the snapshot.
	Nodes []string
	// Rule says for people what makes the set, such as a node selector.
	Rule string
}

// Job is a set of tasks that are admitted together.
type Job struct {
	// UID identifies the job; if empty, namespace/name does, or name alone.
	UID, Name, Namespace string
	// Queue is the name of a queue of the snapshot.
	Queue string
	// Priority puts jobs with more of it first.
	Priority int32
	// Phase other than pending (the default) means that the job was admitted already.
	Phase apportionv1.JobPhase
	// MinAvailable is how many tasks must run together.
	MinAvailable uint32
	// MinResources are what the job needs to start. Nil: the job is wholly elastic.
	MinResources Resources
	// Condition is what the job's controller or scheduler last reported, for people.
	Condition string
	// Created breaks ties, older first.
	Created time.Time
	Groups  []Group
}

// Group is a role of a job: one request, shared by its tasks.
type Group struct {
	Role string
	// Request of each task that has none of its own. Nil: best effort.
	Request Resources
	// MinAvailable is how many tasks of this role the gang needs. Nil: the role is not counted.
	MinAvailable *uint32
	// NodeSet is the name of the node set that its tasks may use, "" for all nodes.
	NodeSet string
	// Unjudged are constraints on the placement of its tasks that the snapshot does not express.
	Unjudged []apportionv1.PlacementConstraint
	Tasks    []Task
	// Pending and Running count tasks that are not referred to one by one, in addition to Tasks.
	Pending, Running uint32
}

// Task is one pod.
type Task struct {
	// UID identifies the task; if empty, namespace/name does, with the job's namespace.
	UID, Name string
	// Status is pending by default.
	Status apportionv1.TaskStatus
	// Node is the name of a node of the snapshot, "" for none.
	Node string
	// Priority puts tasks with more of it first within the job. Nil: 1.
	Priority *int32
	// NotPreemptable keeps the task from being chosen as a victim where the actions choose the candidates.
	NotPreemptable bool
	// Request replaces that of the group. Resources{}: best effort.
	Request Resources
	// NodeSet is the name of a node set that replaces that of the group, "" for none.
	NodeSet string
	// Unjudged are constraints beside those of the group.
	Unjudged []apportionv1.PlacementConstraint
	// Condition is what the task's scheduler last reported, for people.
	Condition string
	// Index is the position within the role. Nil: not known.
	Index *uint32
	Gate  apportionv1.TaskGate
	// PriorityClass matters to the conformance plugin.
	PriorityClass string
	// Scheduled is when the task was placed, Cooldown how long the cdp plugin protects it from then on.
	Scheduled time.Time
	Cooldown  *time.Duration
	// Created breaks ties, older first.
	Created time.Time
}
