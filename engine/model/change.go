package model

import (
	"fmt"
	"slices"

	"github.com/apportion/apportion/engine/resource"
)

// TaskUpdate is what a Change says of a task whose job stays.
type TaskUpdate struct {
	Status Status
	// Node may be None.
	Node NodeID
	// HasStatus and HasNode say which of them are replaced.
	HasStatus, HasNode bool
}

// change is what a Builder collects that makes one model of another.
type change struct {
	// given is the model that is changed, base the same or a copy that is as wide as the result.
	given, base *Model
	// nodes, nodeSets and queues count those set, for paths.
	nodes, nodeSets, queues int
	// The path under which each node, node set, queue and job was set or removed.
	nodeNames, nodeSetNames, queueNames map[string]string
	jobIDs                              map[JobID]string
	// Whether the result has copies of its own of the base's nodes, node sets and queues, and of the indexes of their names.
	ownNodes, ownNodeSets, ownQueues bool
	ownNodeIndex, ownQueueIndex      bool
	nodesGone                        []NodeID
	queuesGone                       []gone
	jobsGone                         []JobID
	updates                          []update
	phases                           []reached
	// onlyNew says that the base has none of the jobs set.
	onlyNew bool
}

// gone is a queue removed, and the path that says so.
type gone struct {
	queue QueueID
	path  string
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

// Change returns a builder of a model that differs from m: what its Node, Queue and Job are given replaces what has that name or uid, or is
// new, and RemoveNode, RemoveQueue, RemoveJob and UpdateTask do as they say. m does not change. The new model shares with it what both have
// in common, so that building it takes as long as the change is large.
//
// Positions are stable. What is replaced keeps its position, what is new follows the last one, and what is removed leaves a position that
// is not used again. The tasks of a job that was set are numbered after the last task; its earlier numbers stand for nothing. Everything
// else is as in a model that was built of the resulting snapshot at once, to the last bit.
//
// Nodes and queues come first, those to be removed before those to be set. Nothing may be named twice, and no job may be left in a queue
// that was removed. Tasks on a node that was removed are on no node.
//
// Amounts refer to the dimensions given, or to those of the snapshot if none are given. New dimensions make all rows wider, which takes as
// long as m is large.
func (m *Model) Change(dimensions []string) *Builder {
	b := &Builder{job: -1, requestIDs: map[string]int32{}, change: &change{
		given: m, base: m, nodeNames: map[string]string{}, nodeSetNames: map[string]string{},
		queueNames: map[string]string{}, jobIDs: map[JobID]string{},
	}}
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
	b.m.Dims = dims
	b.m.Own, b.m.OffNode = nil, 0
	b.m.given, b.m.Requests = given, slices.Clip(b.m.Requests)
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
func (b *Builder) AsOf(t int64) { b.m.AsOf = t }

// OnlyNew says that the jobs set must not be there yet.
func (b *Builder) OnlyNew() { b.change.onlyNew = true }

// SumTotal makes the cluster's total the sum of all nodes again.
func (b *Builder) SumTotal() { b.m.explicit = false }

// RemoveNode removes a node, which is the i-th to be removed.
func (b *Builder) RemoveNode(i int, name string) {
	path := fmt.Sprintf("remove_nodes[%d]", i)
	if !b.claim(b.change.nodeNames, "node", name, path) {
		return
	}
	n, ok := b.m.Node(name)
	if !ok {
		b.faults.Add(path, "no node %q", name)
		return
	}
	b.takeNodes()
	b.m.Nodes[n] = Node{Allocatable: resource.NewAccount(b.width), UsedByOthers: resource.NewAccount(b.width)}
	b.change.nodesGone = append(b.change.nodesGone, n)
}

// RemoveQueue removes a queue, which is the i-th to be removed.
func (b *Builder) RemoveQueue(i int, name string) {
	path := fmt.Sprintf("remove_queues[%d]", i)
	if !b.claim(b.change.queueNames, "queue", name, path) {
		return
	}
	q, ok := b.m.Queue(name)
	if !ok {
		b.faults.Add(path, "no queue %q", name)
		return
	}
	b.takeQueues()
	b.m.Queues[q] = Queue{}
	b.change.queuesGone = append(b.change.queuesGone, gone{q, path})
}

// RemoveJob removes a job, which is the i-th to be removed.
func (b *Builder) RemoveJob(i int, uid string) {
	path := fmt.Sprintf("remove_jobs[%d]", i)
	j, ok := b.change.base.Job(uid)
	if !ok {
		b.faults.Add(path, "no job %q", uid)
		return
	}
	b.removeJob(j, path)
}

// RemoveJobAt is RemoveJob of a job that is there.
func (b *Builder) RemoveJobAt(i int, j JobID) { b.removeJob(j, fmt.Sprintf("remove_jobs[%d]", i)) }

func (b *Builder) removeJob(j JobID, path string) {
	if b.claimJob(j, path) {
		b.change.jobsGone = append(b.change.jobsGone, j)
	}
}

// TaskOf returns the task of a uid in the model that is changed.
func (b *Builder) TaskOf(uid string) (TaskID, bool) { return b.change.base.TaskOf(uid) }

// UpdateTask changes a task, which is the i-th to be changed. Its job must be neither set nor removed.
func (b *Builder) UpdateTask(i int, t TaskID, u TaskUpdate) {
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
func (b *Builder) UpdatePhase(j JobID, p Phase) {
	b.change.phases = append(b.change.phases, reached{j, p})
}

// placed reports whether there is a node at a position. Only changes leave positions without one; where none has, the node is not looked
// at, which would cost more than all else that is done for a task.
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

func (b *Builder) claimJob(j JobID, path string) bool {
	if earlier, twice := b.change.jobIDs[j]; twice {
		b.faults.Add(path, "job %q is %s already", b.change.base.Jobs.At(j).UID, earlier)
		return false
	}
	b.change.jobIDs[j] = path
	return true
}

// takeNodes makes the nodes the result's own.
func (b *Builder) takeNodes() {
	if c := b.change; !c.ownNodes {
		b.m.Nodes, c.ownNodes = slices.Clone(b.m.Nodes), true
	}
}

// takeQueues makes the queues the result's own.
func (b *Builder) takeQueues() {
	if c := b.change; !c.ownQueues {
		b.m.Queues, c.ownQueues = slices.Clone(b.m.Queues), true
	}
}

// takeNodeSets makes the node sets and the index of their names, which are few, the result's own.
func (b *Builder) takeNodeSets() {
	if c := b.change; c != nil && !c.ownNodeSets {
		b.m.NodeSets, b.m.nodeSetIndex, c.ownNodeSets = slices.Clone(b.m.NodeSets), b.m.nodeSetIndex.clone(), true
	}
}

// nodeToSet returns the position of a node to be set, which is the one after the last if there is none of that name.
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

// nodeSetToSet returns the position of a node set to be set, which is the one after the last if there is none of that name.
func (b *Builder) nodeSetToSet(name, path string) NodeSetID {
	b.claim(b.change.nodeSetNames, "node set", name, path)
	at, _ := b.m.nodeSetIndex.add(name, int32(len(b.m.NodeSets)), b.m.nodeSetName)
	return NodeSetID(at)
}

// queueToSet returns the position of a queue to be set, which is the one after the last if there is none of that name.
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

// knownRequest returns the position of a request that the base of a change has.
func (b *Builder) knownRequest(request resource.Row) (int32, bool) {
	if b.change == nil {
		return 0, false
	}
	b.key = requestKey(b.key[:0], request)
	return b.m.requestIndex.find(string(b.key), requestTexts{&b.m})
}
