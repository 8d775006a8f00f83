package model

// Amounts is a sparse resource vector as in a snapshot: Amount[i] belongs to dimension Dimension[i] of the names given to
// Builder.Dimensions. A nil *Amounts means that no vector is given.
type Amounts struct {
	Dimension []uint32
	Amount    []float64
}

// QueueSpec is the description of a queue in a snapshot. Nil pointers mean absent values.
type QueueSpec struct {
	Name, Parent                    string
	Weight                          uint32
	Priority                        int32
	State                           QueueState
	Reclaimable                     bool
	Capability, Guarantee, Deserved *Amounts
	Affinity                        *NodeAffinity
	Hierarchy                       *Hierarchy
	CreateTime                      int64
	Memory                          *QueueMemorySpec
	NodeLimits                      *NodeLimitsSpec
	Extra                           *Extra
}

// JobSpec is the description of a job in a snapshot; its groups and tasks follow.
type JobSpec struct {
	UID, Name, Namespace, Queue string
	Priority                    int32
	Phase                       Phase
	MinAvailable                uint32
	MinResources                *Amounts
	CreateTime                  int64
	Condition                   string
	ExpectedEnd                 int64
	EndIsDeadline               bool
	ExpectedRuntime             int64
	Owner                       string
	Extra                       *Extra
}

// GroupSpec is the description of a task group of the newest job.
type GroupSpec struct {
	Role    string
	Request *Amounts
	// MinAvailable is valid only if HasMin.
	MinAvailable uint32
	HasMin       bool
	// NodeSet is the name of a node set, empty for all nodes.
	NodeSet  string
	Unjudged Constraints
	// PodClass is the number of a class of Pods, 0 for none.
	PodClass uint32
}

// TaskSpec is the description of a task of the newest group.
type TaskSpec struct {
	UID, Name   string
	Status      Status
	Gate        Gate
	Node        NodeID
	Priority    int32
	Index       int32
	CreateTime  int64
	Preemptable bool
	// Detail is nil for most tasks.
	Detail *Detail
	// Request replaces the group's.
	Request *Amounts
	// NodeSet is the name of a node set that replaces the group's, empty for none.
	NodeSet string
	// PodClass is the number of a class of Pods that replaces the group's, 0 for none.
	PodClass uint32
}

// NodeSpec describes a node in a snapshot.
type NodeSpec struct {
	Name                      string
	Allocatable, UsedByOthers *Amounts
	Group                     string
	Labelled                  bool
	// Unschedulable is nil for a node that accepts new tasks.
	Unschedulable *Unschedulable
	// Pods is nil for a node without domains and other pods. The builder copies it.
	Pods *NodePods
	// Reservations keep room of the node during periods. The builder copies them.
	Reservations []ReservationSpec
}
