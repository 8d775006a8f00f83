package model

import "github.com/apportion/apportion/engine/resource"

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
	// Detail is nil for most jobs. The builder copies it.
	Detail *JobDetail
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
	Unstated Unstated
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
	// Rare is nil for most; a task with it has a Detail.
	Rare *RareSpec
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
	Group, RevocableZone      string
	Labelled                  bool
	// Unschedulable is nil for a node that accepts new tasks.
	Unschedulable *Unschedulable
	// Pods is nil for a node without domains and other pods. The builder copies it.
	Pods *NodePods
	// Reservations keep room of the node during periods. The builder copies them.
	Reservations []ReservationSpec
}

// The functions below return specs of a model's parts, for a Change that modifies them. Amounts refer to the dimensions in the order of
// Dims.Names.

// NodeSpecOf returns the spec of a node.
func (m *Model) NodeSpecOf(n NodeID) NodeSpec {
	node := &m.Nodes[n]
	return NodeSpec{
		Name: node.Name, Allocatable: amountsOf(node.Allocatable), UsedByOthers: amountsOf(node.UsedByOthers),
		Group: node.Group, RevocableZone: m.ZoneOf(n), Labelled: node.Labelled, Unschedulable: node.Unschedulable, Pods: node.Pods,
		Reservations: reservationSpecs(node.Reservations()),
	}
}

// NodeSetSpecOf returns the spec of a node set other than AllNodes, without nodes that a Change has removed.
func (m *Model) NodeSetSpecOf(s NodeSetID) NodeSetSpec {
	set := &m.NodeSets[s]
	spec := NodeSetSpec{
		Name: set.Name, Rule: set.Rule, Nodes: m.present(set.Nodes), ToleratesCordon: set.ToleratesCordon, Fixed: set.Fixed,
		Extra: set.Extra,
	}
	for i := range set.Exclusions {
		e := &set.Exclusions[i]
		if nodes := m.present(e.Nodes); len(nodes) > 0 || len(e.Nodes) == 0 {
			spec.Exclusions = append(spec.Exclusions, ExclusionSpec{e.Rule, nodes, e.Firm, e.OtherRole})
		}
	}
	for _, p := range set.Preferences {
		spec.Preferences = append(spec.Preferences, PreferenceSpec{p.Untolerated, p.Affinity, m.present(p.Nodes)})
	}
	return spec
}

// present returns the positions of nodes without those that a Change has removed.
func (m *Model) present(nodes []NodeID) []uint32 {
	list := make([]uint32, 0, len(nodes))
	for _, n := range nodes {
		if m.HasNode(n) {
			list = append(list, uint32(n))
		}
	}
	return list
}

// QueueSpecOf returns the spec of a queue.
func (m *Model) QueueSpecOf(q QueueID) QueueSpec {
	queue := &m.Queues[q]
	return QueueSpec{
		Name: queue.Name, Parent: queue.Parent, Weight: uint32(queue.Weight), Priority: queue.Priority, State: queue.State,
		Reclaimable: queue.Reclaimable, Capability: amountsOf(queue.Capability), Guarantee: amountsOf(queue.Guarantee),
		Deserved: amountsOf(queue.Deserved), Affinity: queue.Affinity, Hierarchy: queue.Hierarchy, CreateTime: queue.CreateTime,
		Memory: queue.Memory.spec(), NodeLimits: queue.NodeLimits.spec(), Extra: queue.Extra,
	}
}

// spec returns the spec of what a queue used and may use.
func (q *QueueMemory) spec() *QueueMemorySpec {
	if q == nil {
		return nil
	}
	out := &QueueMemorySpec{Usage: q.Usage.integers(), Entitled: q.Entitled.integers(), Reserved: q.Reserved.integers()}
	if of := q.Budget; of != nil {
		out.Budget = &BudgetSpec{Kind: of.Kind, Amount: of.Amount.integers(), Spent: of.Spent.integers()}
	}
	for i := range q.Owners {
		o := &q.Owners[i]
		out.Owners = append(out.Owners, OwnerSpec{Owner: o.Owner, Usage: o.Usage.integers(), Weight: uint32(o.Weight)})
	}
	return out
}

// integers returns the sparse form of a usage; nil for nil.
func (u *Usage) integers() *Integers {
	if u == nil {
		return nil
	}
	out := &Integers{}
	for m := u.Has; m != 0; m = m.Rest() {
		d := m.First()
		out.Dimension, out.Amount = append(out.Dimension, uint32(d)), append(out.Amount, u.v[d])
	}
	return out
}

// JobSpecOf returns the spec of a job without its groups and tasks.
func (m *Model) JobSpecOf(j JobID) JobSpec {
	job := m.Jobs.At(j)
	return JobSpec{
		UID: job.UID, Name: job.Name, Namespace: job.Namespace, Queue: m.Queues[job.Queue].Name, Priority: job.Priority, Phase: job.Phase,
		MinAvailable: uint32(job.MinAvailable), MinResources: amountsOf(job.MinResources), CreateTime: job.CreateTime,
		Condition: job.Condition, ExpectedEnd: job.ExpectedEnd, EndIsDeadline: job.EndIsDeadline, ExpectedRuntime: job.ExpectedRuntime,
		Owner: job.Owner, Extra: job.Extra, Detail: job.Detail,
	}
}

// GroupSpecOf returns the spec of a task group without its counts and tasks.
func (m *Model) GroupSpecOf(g GroupID) GroupSpec {
	group := m.Groups.At(g)
	return GroupSpec{
		Role: group.Role, Request: m.requestSpec(group.Request), MinAvailable: uint32(max(group.MinAvailable, 0)),
		HasMin: group.MinAvailable >= 0, NodeSet: m.setName(group.NodeSet), Unjudged: group.Unjudged,
		PodClass: uint32(group.PodClass), Unstated: group.Unstated,
	}
}

// TaskSpecOf returns the spec of a task.
func (m *Model) TaskSpecOf(t TaskID) TaskSpec {
	task := m.Tasks.At(t)
	spec := TaskSpec{
		UID: m.TaskUID(t), Name: m.TaskName(t), Status: task.Status, Gate: task.Gate, Node: task.Node, Priority: task.Priority,
		Index: task.Index, CreateTime: task.CreateTime, Preemptable: task.Preemptable,
	}
	if task.Detail != None {
		detail := *m.Details.At(task.Detail)
		spec.Detail, spec.NodeSet, spec.PodClass = &detail, m.setName(detail.NodeSet), uint32(detail.PodClass)
		spec.Rare = m.RareSpecOf(t)
	}
	if task.Request != m.Groups.At(task.Group).Request {
		if spec.Request = m.requestSpec(task.Request); spec.Request == nil {
			spec.Request = &Amounts{}
		}
	}
	return spec
}

// requestSpec returns the amounts of a row of Requests, nil for the first, the empty one.
func (m *Model) requestSpec(request int32) *Amounts {
	if request == 0 {
		return nil
	}
	return amountsOf(m.Requests[request])
}

func (m *Model) setName(s NodeSetID) string {
	if s == AllNodes {
		return ""
	}
	return m.NodeSets[s].Name
}

// amountsOf returns the amounts of a row, nil for an absent one.
func amountsOf(row resource.Row) *Amounts {
	if row.Absent() {
		return nil
	}
	a := &Amounts{}
	for has := row.Has; has != 0; has = has.Rest() {
		d := has.First()
		a.Dimension, a.Amount = append(a.Dimension, uint32(d)), append(a.Amount, row.V[d])
	}
	return a
}

// With returns a copy of a with another amount of a dimension.
func (a *Amounts) With(d int, x float64) *Amounts {
	out := &Amounts{}
	if a != nil {
		out.Dimension, out.Amount = append(out.Dimension, a.Dimension...), append(out.Amount, a.Amount...)
	}
	for i, given := range out.Dimension {
		if given == uint32(d) {
			out.Amount[i] = x
			return out
		}
	}
	out.Dimension, out.Amount = append(out.Dimension, uint32(d)), append(out.Amount, x)
	return out
}

// Without returns a copy of a without a dimension.
func (a *Amounts) Without(d int) *Amounts {
	if a == nil {
		return nil
	}
	out := &Amounts{}
	for i, given := range a.Dimension {
		if given != uint32(d) {
			out.Dimension, out.Amount = append(out.Dimension, given), append(out.Amount, a.Amount[i])
		}
	}
	return out
}
