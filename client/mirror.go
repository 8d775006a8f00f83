package client

import (
	"bytes"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Mirror follows a cluster: entities are set and removed as they change. State returns the current cluster, for Input. The first question
// about a State sends what changed since the last State that was sent, or everything if the replica does not hold that State.
//
// Only one goroutine may change a mirror; any number may take States and ask. A State never changes, and all answers about it are those
// about its Snapshot, regardless of later changes.
//
// References must exist: a job's queue, a group's node set. Nodes are referred to by name and need not exist: a task on a node that is not
// in the mirror is on no node until the node is set.
//
// A mirror keeps one encoding of the cluster, about 200 bytes for a task, and the pages in which older States differ while these are in
// use. Its limits are those of the service for one snapshot.
type Mirror struct {
	client *Client
	// routing is the value of RoutingHeader.
	routing string
	remote  lineage
	local   lineage
	figures figures

	// whole is locked while several changes are made as one, mutex during each change.
	whole, mutex sync.Mutex
	contents
	// writer marks the pages of tables that no State uses.
	writer uint64
	// newest is the last State, changed reports whether the mirror differs from it.
	newest     *State
	changed    bool
	sequence   uint64
	dimensions dimensions

	nodeSlots, queueSlots, setSlots, jobSlots slots
	// nodeOf contains every node that exists or is referred to.
	nodeOf  map[string]*mirroredNode
	queueOf map[string]*mirroredQueue
	setOf   map[string]int
	jobOf   map[string]int
	taskOf  map[string]taskPlace

	budgetOf, quotaOf entrySlots
}

// contents is the cluster of a mirror, which States share.
type contents struct {
	nodes  table[nodeEntry]
	queues table[queueEntry]
	sets   table[setEntry]
	jobs   table[jobEntry]
	// budgets and quotas are the disruption budgets and the quotas of namespaces.
	budgets, quotas table[keyedEntry]
	// asOf is the clock in Unix nanoseconds, total the encoded total, nil for none.
	asOf    int64
	cluster string
	total   []byte
	// memory is the encoded memory, nil for none.
	memory []byte
	// pods are the encoded rules on other pods, nil for none.
	pods  []byte
	names []string
	// live counts the existing entities; bytes is the approximate size of their encoding.
	live  holdings
	bytes int
}

// holdings counts entities, or positions of a base, which include those of removed entities.
type holdings struct{ nodes, queues, sets, jobs, tasks int }

// mirroredNode is a name that tasks and node sets refer to, with the slot of the node.
type mirroredNode struct {
	name string
	slot int
	// users counts the references; only the writer uses it.
	users int
}

// mirroredQueue counts the jobs of a queue.
type mirroredQueue struct{ slot, jobs int }

// taskPlace is the place of a task: the slot of its job, and its position there.
type taskPlace struct{ job, index int32 }

type nodeEntry struct {
	node *mirroredNode
	data []byte
}

type queueEntry struct {
	name string
	data []byte
}

type setEntry struct {
	name string
	// data is the node set without its nodes and its preferences.
	data        []byte
	nodes       []*mirroredNode
	preferences []preferredNodes
}

// each calls do with every node that the set refers to.
func (e *setEntry) each(do func(*mirroredNode)) {
	for _, node := range e.nodes {
		do(node)
	}
	for i := range e.preferences {
		for _, node := range e.preferences[i].nodes {
			do(node)
		}
	}
}

func (e *setEntry) equal(o *setEntry) bool {
	return bytes.Equal(e.data, o.data) && slices.Equal(e.nodes, o.nodes) &&
		slices.EqualFunc(e.preferences, o.preferences, func(l, r preferredNodes) bool { return l.equal(&r) })
}

func (e *nodeEntry) key() string  { return e.node.name }
func (e *queueEntry) key() string { return e.name }
func (e *setEntry) key() string   { return e.name }

// NewMirror returns an empty mirror for questions with this client.
func NewMirror(c *Client) *Mirror {
	return &Mirror{
		client: c, routing: rand.Text(), remote: newLineage(), local: newLineage(), writer: 1,
		dimensions: dimensions{index: map[string]uint32{}},
		nodeOf:     map[string]*mirroredNode{}, queueOf: map[string]*mirroredQueue{}, setOf: map[string]int{},
		jobOf: map[string]int{}, taskOf: map[string]taskPlace{}, budgetOf: newEntrySlots(), quotaOf: newEntrySlots(),
	}
}

// Atomically makes the changes of do visible together: no State contains only a part of them. do must not call State.
func (m *Mirror) Atomically(do func()) {
	m.whole.Lock()
	defer m.whole.Unlock()
	do()
}

// State returns the current cluster. It is cheap and sends nothing. While nothing changes it returns the same State.
func (m *Mirror) State() *State {
	m.whole.Lock()
	defer m.whole.Unlock()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.newest == nil || m.changed {
		m.writer++
		m.sequence++
		m.newest, m.changed = &State{mirror: m, sequence: m.sequence, contents: m.contents}, false
	}
	return m.newest
}

// AsOf sets the time of all decisions.
func (m *Mirror) AsOf(now time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.changed = m.changed || m.asOf != moment(now)
	m.asOf = moment(now)
}

// SetCluster sets the label for logs. A change of the label sends everything.
func (m *Mirror) SetCluster(label string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.changed = m.changed || m.cluster != label
	m.cluster = label
}

// SetTotal sets the cluster's total; nil: the sum over all nodes.
func (m *Mirror) SetTotal(total Resources) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	built, err := m.build(func(s *Snapshot) { s.Total(total) })
	if err != nil {
		return err
	}
	return m.setTotal(built.message.GetTotal())
}

func (m *Mirror) setTotal(total *apportionv1.Resource) error {
	var data []byte
	if total != nil {
		var err error
		if data, err = encode(total); err != nil {
			return err
		}
	}
	if (data == nil) != (m.total == nil) || !bytes.Equal(data, m.total) {
		m.total, m.changed = data, true
	}
	return nil
}

// build encodes an entity as Snapshot does, with the dimensions of the mirror.
func (m *Mirror) build(do func(*Snapshot)) (*Snapshot, error) {
	known := len(m.dimensions.names)
	s := &Snapshot{dimensions: m.dimensions, nodes: map[string]uint32{}}
	do(s)
	if s.total > 0 {
		for _, name := range s.dimensions.names[known:] {
			delete(m.dimensions.index, name)
		}
		return nil, &SnapshotError{Faults: s.faults, Total: s.total}
	}
	m.dimensions.names = s.dimensions.names
	m.names = m.dimensions.names
	return s, nil
}

func encode(message proto.Message) ([]byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if data == nil {
		data = []byte{}
	}
	return data, err
}
