package model

import (
	"fmt"
	"slices"

	"github.com/apportion/apportion/engine/resource"
)

// TaskUpdate is the update of a task whose job is not replaced.
type TaskUpdate struct {
	Status Status
	// Node may be None.
	Node NodeID
	// HasStatus and HasNode say which of the two are replaced.
	HasStatus, HasNode bool
}

// ChangeBuilder builds a model that differs from another; see Model.Change. What it removes is numbered in the order of the calls, in the
// paths of violations.
type ChangeBuilder struct{ Builder }

// change holds the changes that a Builder collects.
type change struct {
	// given is the model to change; base is the same, or a copy with the dimensions of the result.
	given, base *Model
	// nodes, nodeSets and queues count those set, for paths, and removed those removed.
	nodes, nodeSets, queues int
	removed                 struct{ nodes, nodeSets, queues, jobs int }
	// The path under which each node, node set and queue was set or removed.
	nodeNames, nodeSetNames, queueNames map[string]string
	jobs                                claims
	// Whether the result has its own copies of the base's nodes, node sets and queues, and of their indexes.
	ownNodes, ownNodeSets, ownQueues bool
	ownNodeIndex, ownQueueIndex      bool
	nodesGone                        []NodeID
	queuesGone                       []gone[QueueID]
	nodeSetsGone                     []gone[NodeSetID]
	jobsGone                         []JobID
	updates                          []update
	phases                           []reached
	extras                           map[JobID]*Extra
	// parts are those with the jobs, in order.
	parts []*Builder
}

// gone is a queue or a node set that was removed, and the path of its removal.
type gone[ID QueueID | NodeSetID] struct {
	id   ID
	path string
}

// update is a TaskUpdate, and its position in the list of all.
type update struct {
	TaskUpdate
	task TaskID
	at   int
}

// reached is a phase that a job has reached.
type reached struct {
	job   JobID
	phase Phase
}

// Change returns a builder of a model that differs from m: Node, Queue and Job replace the entity with the same name or uid, or add a new
// one, and RemoveNode, RemoveQueue, RemoveJob and UpdateTask remove and update. m does not change. The new model shares with it what both
// have in common, so the cost of building it depends on the size of the change.
//
// Positions are stable: a replaced entity keeps its position, a new one is appended, and the position of a removed one is not reused. The
// tasks of a job that was set are numbered after the last task; its earlier numbers become invalid. Everything else is bit-for-bit as in a
// model that was built from the resulting snapshot.
//
// Nodes, queues and node sets come first, removals before additions. No entity may occur twice, no job may be left in a removed queue, and
// no task may be restricted to a removed node set. Tasks on a removed node are on no node.
//
// Amounts refer to the given dimensions, or to those of the snapshot if none are given. New dimensions make all rows wider; the cost of
// this depends on the size of m.
func (m *Model) Change(dimensions []string) *ChangeBuilder {
	b := &ChangeBuilder{Builder{job: -1, requestIDs: map[string]int32{}, change: &change{
		given: m, base: m, nodeNames: map[string]string{}, nodeSetNames: map[string]string{},
		queueNames: map[string]string{},
	}}}
	given, err := m.allDimensions(dimensions)
	if err != nil {
		b.faults.Add("dimensions", "%s", err)
		given, dimensions = m.given, nil
	}
	if len(dimensions) == 0 {
		dimensions = m.given
	}
	dims, _, _ := resource.NewDimensions(given)
	if dims.Len() > m.Dims.Len() {
		b.change.base = m.widened(dims)
	}
	b.m = *b.change.base
	b.before, b.start = &b.change.base.text, b.change.base.text.n
	b.m.Dims = dims
	b.m.Own, b.m.OffNode = nil, 0
	b.m.given, b.m.Requests, b.m.zones = given, slices.Clip(b.m.Requests), slices.Clip(b.m.zones)
	for _, name := range dimensions {
		d, _ := dims.Index(name)
		b.index = append(b.index, d)
	}
	b.width, b.known = dims.Len(), len(dimensions)
	b.scratch = resource.NewRow(b.width)
	b.counted = int64(m.Tasks.Len())
	return b
}

// allDimensions returns the dimensions of the snapshot and those of the given ones that it does not have.
func (m *Model) allDimensions(dimensions []string) ([]string, error) {
	if _, _, err := resource.NewDimensions(dimensions); err != nil {
		return nil, err
	}
	all := slices.Clip(m.given)
	for _, name := range dimensions {
		if !slices.Contains(m.given, name) {
			all = append(all, name)
		}
	}
	_, _, err := resource.NewDimensions(all)
	return all, err
}

// AsOf sets the time of the snapshot in Unix nanoseconds.
func (b *ChangeBuilder) AsOf(t int64) { b.m.AsOf = t }

// SumTotal resets the cluster's total to the sum of all nodes.
func (b *ChangeBuilder) SumTotal() { b.m.explicit = false }

// RemoveNode removes a node.
func (b *ChangeBuilder) RemoveNode(name string) {
	c := b.change
	if n, _, ok := removed(b, "node", "remove_nodes", &c.removed.nodes, c.nodeNames, name, b.m.Node); ok {
		b.takeNodes()
		b.m.Nodes[n] = Node{Allocatable: resource.NewAccount(b.width), UsedByOthers: resource.NewAccount(b.width)}
		c.nodesGone = append(c.nodesGone, n)
	}
}

// RemoveQueue removes a queue.
func (b *ChangeBuilder) RemoveQueue(name string) {
	c := b.change
	if q, path, ok := removed(b, "queue", "remove_queues", &c.removed.queues, c.queueNames, name, b.m.Queue); ok {
		b.takeQueues()
		b.m.Queues[q] = Queue{}
		c.queuesGone = append(c.queuesGone, gone[QueueID]{q, path})
	}
}

// RemoveNodeSet removes a node set. No group and no task of the result may be restricted to it.
func (b *ChangeBuilder) RemoveNodeSet(name string) {
	c := b.change
	find := func(name string) (int32, bool) { return b.m.nodeSetIndex.find(name, b.m.nodeSetName) }
	if s, path, ok := removed(b, "node set", "remove_node_sets", &c.removed.nodeSets, c.nodeSetNames, name, find); ok {
		b.takeNodeSets()
		b.m.NodeSets[s] = NodeSet{}
		c.nodeSetsGone = append(c.nodeSetsGone, gone[NodeSetID]{NodeSetID(s), path})
	}
}

// removed claims the next entity of a kind that a change removes, of which n came before, and returns its position and the path of its
// removal.
func removed[ID ~int32](
	b *ChangeBuilder, kind, list string, n *int, claimed map[string]string, name string, find func(string) (ID, bool),
) (id ID, path string, ok bool) {
	path = fmt.Sprintf("%s[%d]", list, *n)
	*n++
	if !b.claim(claimed, kind, name, path) {
		return id, path, false
	}
	if id, ok = find(name); !ok {
		b.faults.Add(path, "no %s %q", kind, name)
	}
	return id, path, ok
}

// RemoveJob removes a job.
func (b *ChangeBuilder) RemoveJob(uid string) {
	j, ok := b.change.base.Job(uid)
	if !ok {
		b.faults.Add(b.removal().String(), "no job %q", uid)
		return
	}
	b.RemoveJobs(j)
}

// RemoveJobs is RemoveJob for existing jobs.
func (b *ChangeBuilder) RemoveJobs(jobs ...JobID) {
	for _, j := range jobs {
		if b.claimJob(j, b.removal()) {
			b.change.jobsGone = append(b.change.jobsGone, j)
		}
	}
}

// removal returns the claim of the next job that is removed.
func (b *ChangeBuilder) removal() claim {
	n := &b.change.removed.jobs
	*n++
	return claim{int32(*n - 1), true}
}

// TaskOf returns the task with this uid in the changed model.
func (b *ChangeBuilder) TaskOf(uid string) (TaskID, bool) { return b.change.base.TaskOf(uid) }

// UpdateTask updates a task, whose job must be neither set nor removed. Violations name it as the i-th updated one.
func (b *ChangeBuilder) UpdateTask(i int, t TaskID, u TaskUpdate) {
	base := b.change.base
	switch {
	case t < 0 || int(t) >= base.Tasks.Len():
		b.faults.Add(fmt.Sprintf("tasks[%d].number", i), "no task %d, there are %d", t, base.Tasks.Len())
		return
	case !base.HasTask(t):
		b.faults.Add(fmt.Sprintf("tasks[%d].number", i), "task %d was removed", t)
		return
	case u.HasNode && u.Node != None && !b.placed(u.Node):
		b.faults.Add(fmt.Sprintf("tasks[%d].node", i), "no node %d, there are %d nodes", u.Node, len(b.m.Nodes))
		return
	}
	b.change.updates = append(b.change.updates, update{u, t, i})
}

// UpdatePhase changes the phase of a job, which must not be set or removed.
func (b *ChangeBuilder) UpdatePhase(j JobID, p Phase) {
	b.change.phases = append(b.change.phases, reached{j, p})
}

// UpdateExtra changes what a single policy reads of a job, which must not be set or removed.
func (b *ChangeBuilder) UpdateExtra(j JobID, e *Extra) {
	if b.change.extras == nil {
		b.change.extras = map[JobID]*Extra{}
	}
	b.change.extras[j] = e
}

// placed reports whether there is a node at a position. Only a Change leaves gaps; without gaps it avoids reading the node, which would
// dominate the cost of adding a task.
func (b *Builder) placed(n NodeID) bool {
	if n < 0 || int(n) >= len(b.m.Nodes) {
		return false
	}
	c := b.change
	return c == nil || len(c.nodesGone) == 0 && len(c.base.NodeOrder) == len(c.base.Nodes) || b.m.HasNode(n)
}

// claim records that a name is set or removed, or that it was already.
func (b *Builder) claim(names map[string]string, kind, name, path string) bool {
	if earlier, twice := names[name]; twice {
		b.faults.Add(path, "%s %q is %s already", kind, name, earlier)
		return false
	}
	names[name] = path
	return true
}

func (b *Builder) claimJob(j JobID, by claim) bool {
	c := b.change
	if c.jobs.has(j) {
		b.faults.Add(by.String(), "job %q is %s already", c.base.Jobs.At(j).UID, c.jobs.of(j))
		return false
	}
	c.jobs.add(j, by, c.base.Jobs.Len())
	return true
}

// takeNodes copies the nodes for the result.
func (b *Builder) takeNodes() {
	if c := b.change; !c.ownNodes {
		b.m.Nodes, c.ownNodes = slices.Clone(b.m.Nodes), true
	}
}

// takeQueues copies the queues for the result.
func (b *Builder) takeQueues() {
	if c := b.change; !c.ownQueues {
		b.m.Queues, c.ownQueues = slices.Clone(b.m.Queues), true
	}
}

// takeNodeSets copies the node sets and the index of their names for the result.
func (b *Builder) takeNodeSets() {
	if c := b.change; c != nil && !c.ownNodeSets {
		b.m.NodeSets, b.m.nodeSetIndex, c.ownNodeSets = slices.Clone(b.m.NodeSets), b.m.nodeSetIndex.clone(), true
	}
}

// nodeToSet returns the position of the node with this name, or the one after the last.
func (b *Builder) nodeToSet(name, path string) NodeID {
	c, m := b.change, &b.m
	b.takeNodes()
	b.claim(c.nodeNames, "node", name, path)
	if n, ok := m.Node(name); ok {
		return n
	}
	if !c.ownNodeIndex {
		m.nodeIndex, c.ownNodeIndex = m.nodeIndex.clone(), true
	}
	m.nodeIndex.add(name, int32(len(m.Nodes)), m.nodeName)
	return NodeID(len(m.Nodes))
}

// nodeSetToSet returns the position of the node set with this name, or the one after the last.
func (b *Builder) nodeSetToSet(name, path string) NodeSetID {
	b.claim(b.change.nodeSetNames, "node set", name, path)
	at, _ := b.m.nodeSetIndex.add(name, int32(len(b.m.NodeSets)), b.m.nodeSetName)
	return NodeSetID(at)
}

// queueToSet returns the position of the queue with this name, or the one after the last.
func (b *Builder) queueToSet(name, path string) QueueID {
	c, m := b.change, &b.m
	b.takeQueues()
	b.claim(c.queueNames, "queue", name, path)
	if q, ok := m.Queue(name); ok {
		return q
	}
	if !c.ownQueueIndex {
		m.queueIndex, c.ownQueueIndex = m.queueIndex.clone(), true
	}
	m.queueIndex.add(name, int32(len(m.Queues)), m.queueName)
	return QueueID(len(m.Queues))
}

// knownRequest returns the position of the request with the key b.key, if the base of a change has it.
func (b *Builder) knownRequest() (int32, bool) {
	if b.change == nil {
		return 0, false
	}
	return b.m.requestIndex.find(string(b.key), requestTexts{&b.m})
}
