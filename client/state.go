package client

import (
	"bytes"
	"slices"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// State is the cluster of a Mirror at one moment, for Input. It never changes and is safe for concurrent use.
type State struct {
	contents

	mirror   *Mirror
	sequence uint64
	// remote and local describe the State as a replica, or this process, holds it; nil: it is not held.
	remote, local atomic.Pointer[held]
}

// The fields that Snapshot and Change have in common, and those of Change.
const (
	fieldAsOf           = protowire.Number(1)
	fieldCluster        = protowire.Number(2)
	fieldDimensions     = protowire.Number(3)
	fieldNodes          = protowire.Number(4)
	fieldQueues         = protowire.Number(5)
	fieldJobs           = protowire.Number(6)
	fieldTotal          = protowire.Number(7)
	fieldNodeSets       = protowire.Number(8)
	fieldRemoveNodes    = protowire.Number(9)
	fieldRemoveQueues   = protowire.Number(10)
	fieldRemoveJobs     = protowire.Number(11)
	fieldTasks          = protowire.Number(12)
	fieldClearTotal     = protowire.Number(13)
	fieldRemoveNodeSets = protowire.Number(14)
	fieldClearMemory    = protowire.Number(15)
	fieldMemory         = protowire.Number(21)
	fieldPods           = protowire.Number(22)
	fieldBudgets        = protowire.Number(23)
	fieldQuotas         = protowire.Number(24)
	fieldRemoveBudgets  = protowire.Number(25)
	fieldRemoveQuotas   = protowire.Number(26)

	setNodes        = protowire.Number(2)
	setPreferences  = protowire.Number(8)
	preferenceNodes = protowire.Number(3)

	updateUID    = protowire.Number(1)
	updateStatus = protowire.Number(3)
	updateNode   = protowire.Number(4)
	updateNoNode = protowire.Number(5)
)

// Snapshot returns the State as a whole snapshot, which belongs to the caller. Answers about the State are those about this snapshot,
// except for positions: a removed entity leaves an unused position until everything is sent again.
func (s *State) Snapshot() *apportionv1.Snapshot {
	snapshot, _ := s.decoded()
	return snapshot
}

func (s *State) decoded() (*apportionv1.Snapshot, *layout) {
	data, place := s.encode()
	snapshot := &apportionv1.Snapshot{}
	// The parts were encoded by this package, so decoding succeeds.
	_ = proto.Unmarshal(data, snapshot)
	return snapshot, place
}

// layout contains the positions of the entities of a State in a snapshot that a replica holds.
type layout struct {
	// nodeAt is the position of the node in each slot of the mirror.
	nodeAt []uint32
	// nodes and queues are names by position; those of removed ones stay.
	nodes, queues []string
	// used counts positions.
	used holdings
}

// placer returns the positions of the nodes of a State in a layout.
type placer struct {
	nodes *table[nodeEntry]
	at    []uint32
}

// of returns the position of a node, false if it does not exist.
func (p *placer) of(node *mirroredNode) (uint32, bool) {
	if node == nil {
		return 0, false
	}
	entry := p.nodes.at(node.slot)
	if entry == nil || entry.node != node {
		return 0, false
	}
	return p.at[node.slot], true
}

// encode returns the whole State as an encoded Snapshot, and its layout.
func (s *State) encode() ([]byte, *layout) {
	l := &layout{used: s.live, nodeAt: make([]uint32, len(s.nodes.pages)*tablePage)}
	out := make([]byte, 0, s.bytes+s.bytes/8+1024)
	if s.asOf != 0 {
		out = appendVarint(out, fieldAsOf, uint64(s.asOf))
	}
	if s.cluster != "" {
		out = appendText(out, fieldCluster, s.cluster)
	}
	for _, name := range s.names {
		out = appendText(out, fieldDimensions, name)
	}
	s.nodes.all(func(slot int, node *nodeEntry) {
		l.nodeAt[slot] = uint32(len(l.nodes))
		l.nodes = append(l.nodes, node.node.name)
		out = appendField(out, fieldNodes, node.data)
	})
	s.queues.all(func(_ int, queue *queueEntry) {
		l.queues = append(l.queues, queue.name)
		out = appendField(out, fieldQueues, queue.data)
	})
	p := placer{&s.nodes, l.nodeAt}
	s.jobs.all(func(_ int, job *jobEntry) { out = job.append(out, &p) })
	if s.total != nil {
		out = appendField(out, fieldTotal, s.total)
	}
	if s.memory != nil {
		out = appendField(out, fieldMemory, s.memory)
	}
	if s.pods != nil {
		out = appendField(out, fieldPods, s.pods)
	}
	s.sets.all(func(_ int, set *setEntry) { out = set.append(out, &p) })
	s.budgets.all(func(_ int, e *keyedEntry) { out = appendField(out, fieldBudgets, e.data) })
	s.quotas.all(func(_ int, e *keyedEntry) { out = appendField(out, fieldQuotas, e.data) })
	return out, l
}

// change returns the encoded Change from a base to the State, and the layout of the result. False: there is no such Change.
func (s *State) change(base *State, before *layout) ([]byte, *layout, bool) {
	l := *before
	var out []byte
	if s.cluster != base.cluster {
		return nil, nil, false
	}
	if s.asOf != base.asOf {
		out = appendVarint(out, fieldAsOf, uint64(s.asOf))
	}
	if len(s.names) != len(base.names) {
		for _, name := range s.names {
			out = appendText(out, fieldDimensions, name)
		}
	}
	out = changeField(out, base.total, s.total, fieldTotal, fieldClearTotal)
	out = changeField(out, base.memory, s.memory, fieldMemory, fieldClearMemory)
	if !bytes.Equal(base.pods, s.pods) {
		// Empty ones are none.
		out = appendField(out, fieldPods, s.pods)
	}
	out = s.changeNodes(out, base, &l)
	out = s.changeQueues(out, base, &l)
	p := placer{&s.nodes, l.nodeAt}
	out = s.changeNodeSets(out, base, &l, &p)
	out = changeEntries(out, &base.budgets, &s.budgets, fieldRemoveBudgets, fieldBudgets)
	out = changeEntries(out, &base.quotas, &s.quotas, fieldRemoveQuotas, fieldQuotas)
	out = s.changeJobs(out, base, &l, &p, &placer{&base.nodes, before.nodeAt})
	return out, &l, true
}

// changeField encodes the change of an encoded message, nil for none: the field that sets it, or the one that clears it.
func changeField(out, was, is []byte, set, unset protowire.Number) []byte {
	switch {
	case is == nil && was != nil:
		return appendVarint(out, unset, 1)
	case is != nil && (was == nil || !bytes.Equal(is, was)):
		return appendField(out, set, is)
	}
	return out
}

func (s *State) changeNodes(out []byte, base *State, l *layout) []byte {
	gone, set := difference[nodeEntry](&base.nodes, &s.nodes)
	for _, node := range gone {
		out = appendText(out, fieldRemoveNodes, node.was.node.name)
	}
	if len(set) > 0 {
		at := make([]uint32, len(s.nodes.pages)*tablePage)
		copy(at, l.nodeAt)
		for _, node := range set {
			if node.was != nil {
				at[node.isSlot] = l.nodeAt[node.wasSlot]
				continue
			}
			at[node.isSlot] = uint32(l.used.nodes)
			l.nodes = append(l.nodes, node.is.node.name)
			l.used.nodes++
		}
		l.nodeAt = at
	}
	for _, node := range set {
		out = appendField(out, fieldNodes, node.is.data)
	}
	return out
}

func (s *State) changeQueues(out []byte, base *State, l *layout) []byte {
	gone, set := difference[queueEntry](&base.queues, &s.queues)
	for _, queue := range gone {
		out = appendText(out, fieldRemoveQueues, queue.was.name)
	}
	for _, queue := range set {
		if queue.was == nil {
			l.queues = append(l.queues, queue.is.name)
			l.used.queues++
		}
		out = appendField(out, fieldQueues, queue.is.data)
	}
	return out
}

func (s *State) changeNodeSets(out []byte, base *State, l *layout, p *placer) []byte {
	gone, set := difference[setEntry](&base.sets, &s.sets)
	for _, nodeSet := range gone {
		out = appendText(out, fieldRemoveNodeSets, nodeSet.was.name)
	}
	for _, nodeSet := range set {
		if nodeSet.was == nil {
			l.used.sets++
		}
		out = nodeSet.is.append(out, p)
	}
	return out
}

func (s *State) changeJobs(out []byte, base *State, l *layout, now, before *placer) []byte {
	gone, set := difference[jobEntry](&base.jobs, &s.jobs)
	for _, job := range gone {
		out = appendText(out, fieldRemoveJobs, job.was.id)
	}
	for _, job := range set {
		if job.was != nil && job.was.spec == job.is.spec {
			if updated, ok := job.is.update(out, job.was, now, before); ok {
				out = updated
				continue
			}
		}
		if job.was == nil {
			l.used.jobs++
		}
		l.used.tasks += len(job.is.places)
		out = job.is.append(out, now)
	}
	return out
}

// update encodes the differences from the tasks of an earlier entry; false if a task that differs has no uid.
func (e *jobEntry) update(out []byte, was *jobEntry, now, before *placer) ([]byte, bool) {
	index := 0
	var update []byte
	for g := range e.spec.groups {
		for range e.spec.groups[g].tasks {
			i := index
			index++
			at, on := now.of(e.places[i].node)
			old, wasOn := before.of(was.places[i].node)
			status := e.places[i].status
			if status == was.places[i].status && on == wasOn && at == old {
				continue
			}
			uid := e.spec.uid(g, i)
			if len(uid) == 0 {
				return nil, false
			}
			update = appendField(update[:0], updateUID, uid)
			if status == 0 {
				status = uint8(apportionv1.TaskStatus_TASK_STATUS_PENDING)
			}
			update = appendVarint(update, updateStatus, uint64(status))
			if on {
				update = appendVarint(update, updateNode, uint64(at))
			} else {
				update = appendVarint(update, updateNoNode, 1)
			}
			out = appendField(out, fieldTasks, update)
		}
	}
	return out, true
}

// append encodes the job, with its nodes by position.
func (e *jobEntry) append(out []byte, p *placer) []byte {
	var few [8]int
	sizes, total := few[:0], int(e.spec.own)
	from, index := int(e.spec.own), 0
	for _, g := range e.spec.groups {
		size := int(g.own) - from
		from = int(g.own)
		for range g.tasks {
			size += protowire.SizeTag(groupTasks) + protowire.SizeBytes(e.taskSize(from, index, p))
			from = int(e.spec.ends[index])
			index++
		}
		sizes = append(sizes, size)
		total += protowire.SizeTag(jobGroups) + protowire.SizeBytes(size)
	}
	out = protowire.AppendTag(out, fieldJobs, protowire.BytesType)
	out = protowire.AppendVarint(out, uint64(total))
	out = append(out, e.spec.data[:e.spec.own]...)
	from, index = int(e.spec.own), 0
	for i, g := range e.spec.groups {
		out = protowire.AppendTag(out, jobGroups, protowire.BytesType)
		out = protowire.AppendVarint(out, uint64(sizes[i]))
		out = append(out, e.spec.data[from:g.own]...)
		from = int(g.own)
		for range g.tasks {
			out = e.appendTask(out, from, index, p)
			from = int(e.spec.ends[index])
			index++
		}
	}
	return out
}

// taskSize returns the size of the encoded task whose fields begin at from.
func (e *jobEntry) taskSize(from, index int, p *placer) int {
	size := int(e.spec.ends[index]) - from
	if e.places[index].status != 0 {
		size += 2
	}
	if at, on := p.of(e.places[index].node); on {
		size += protowire.SizeTag(taskNode) + protowire.SizeVarint(uint64(at))
	}
	return size
}

func (e *jobEntry) appendTask(out []byte, from, index int, p *placer) []byte {
	out = protowire.AppendTag(out, groupTasks, protowire.BytesType)
	out = protowire.AppendVarint(out, uint64(e.taskSize(from, index, p)))
	out = append(out, e.spec.data[from:e.spec.ends[index]]...)
	if status := e.places[index].status; status != 0 {
		out = appendVarint(out, taskStatus, uint64(status))
	}
	if at, on := p.of(e.places[index].node); on {
		out = appendVarint(out, taskNode, uint64(at))
	}
	return out
}

// append encodes the node set with the nodes that exist.
func (e *setEntry) append(out []byte, p *placer) []byte {
	data := appendPlaced(slices.Clone(e.data), setNodes, e.nodes, p)
	for i := range e.preferences {
		of := &e.preferences[i]
		data = appendField(data, setPreferences, appendPlaced(slices.Clone(of.data), preferenceNodes, of.nodes, p))
	}
	return appendField(out, fieldNodeSets, data)
}

// appendPlaced encodes the positions of those nodes that exist.
func appendPlaced(out []byte, number protowire.Number, list []*mirroredNode, p *placer) []byte {
	var nodes []byte
	for _, node := range list {
		if at, on := p.of(node); on {
			nodes = protowire.AppendVarint(nodes, uint64(at))
		}
	}
	if len(nodes) == 0 {
		return out
	}
	return appendField(out, number, nodes)
}

func appendField(out []byte, number protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(out, number, protowire.BytesType), data)
}

func appendText(out []byte, number protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(out, number, protowire.BytesType), text)
}

func appendVarint(out []byte, number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(out, number, protowire.VarintType), value)
}
