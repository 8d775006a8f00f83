package kubescheduler

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// model is the cluster as the informers say, and what is decided about it. Its lock is held for short: no question is asked under it.
type model struct {
	sync.Mutex

	label, scheduler string
	// podFirst: the label of a pod outranks that of its namespace.
	podFirst bool
	queues   map[string]bool
	queueOf  map[string]string // by namespace
	nodes    map[string]*node
	pods     map[types.UID]*pod
	jobs     map[string]*job
	gangs    map[string]int // minimum by gang: its Workload or PodGroup
	spared   map[types.UID]time.Time

	// What the mirror has to be told.
	dirtyNodes map[string]bool
	dirtyJobs  map[string]bool
	goneNodes  map[string]bool
	// shaped says that node sets have to be computed again.
	shaped bool
	// changed wakes the loop.
	changed chan struct{}

	// seq numbers the placements in the order of the decisions.
	seq uint64
	// open says that pods are scheduled without a decision, closed why no decision is made.
	open   bool
	closed string
}

type node struct {
	object *corev1.Node
	pods   map[types.UID]*pod
}

type pod struct {
	object *corev1.Pod
	// job is nil for a pod without a queue.
	job *job
	// shape names the nodes it may use.
	shape string
	// node is where it is bound.
	node string
	// planned is where it is going to be bound, seq the position of that decision, and victims are the pods that must be gone before.
	planned  string
	seq      uint64
	victims  []types.UID
	sentence string
	// releasing is true for a pod that is being deleted or is to be evicted for another one.
	releasing bool
	// reserved pods hold their node and wait for their gang; released ones may be bound.
	reserved, released bool
	said               saying
}

type job struct {
	id, namespace, name, queue string
	// definition is the id of the Workload's group or PodGroup that has the minimum, empty for a pod of its own.
	definition string
	pods       map[types.UID]*pod
	least      int
	// fault is why the job cannot be described; empty: it can.
	fault    string
	admitted bool
	// known is true if the mirror has it.
	known bool
	// refused are nodes that another plugin refused, until then.
	refused map[string]time.Time
}

func newModel(label, from, scheduler string) *model {
	return &model{
		label: label, podFirst: from == fromPod, scheduler: scheduler,
		queues: map[string]bool{}, queueOf: map[string]string{}, nodes: map[string]*node{},
		pods: map[types.UID]*pod{}, jobs: map[string]*job{}, gangs: map[string]int{}, spared: map[types.UID]time.Time{},
		dirtyNodes: map[string]bool{}, dirtyJobs: map[string]bool{}, goneNodes: map[string]bool{}, changed: make(chan struct{}, 1),
	}
}

func (m *model) wake() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// queue returns the queue of a pod, "" for none.
func (m *model) queue(p *corev1.Pod) string {
	if m.podFirst {
		return cmp.Or(p.Labels[m.label], m.queueOf[p.Namespace])
	}
	return cmp.Or(m.queueOf[p.Namespace], p.Labels[m.label])
}

func (m *model) touch(j *job) {
	if j != nil {
		m.dirtyJobs[j.id] = true
		m.wake()
	}
}

// setPod follows a pod.
func (m *model) setPod(object *corev1.Pod) {
	m.Lock()
	defer m.Unlock()
	over := object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed
	mine := object.Spec.NodeName != "" || object.Spec.SchedulerName == m.scheduler && len(object.Spec.SchedulingGates) == 0
	if over || !mine || object.Spec.NodeName == "" && object.DeletionTimestamp != nil {
		m.dropPod(object.UID)
		return
	}
	p := m.pods[object.UID]
	queue := m.queue(object)
	if p == nil {
		p = &pod{}
		m.pods[object.UID] = p
	} else if p.node == object.Spec.NodeName && p.releasing == (object.DeletionTimestamp != nil) && queue == p.queue() {
		if ran := p.object.Status.Phase == corev1.PodRunning; ran != (object.Status.Phase == corev1.PodRunning) {
			m.touch(p.job)
		}
		p.object = object
		return
	}
	p.object, p.shape = object, shapeOf(object)
	m.place(p, object.Spec.NodeName)
	if object.DeletionTimestamp != nil {
		p.releasing = true
	}
	m.join(p, queue)
	m.touch(p.job)
}

func (p *pod) queue() string {
	if p.job == nil {
		return ""
	}
	return p.job.queue
}

// place records where a pod is bound.
func (m *model) place(p *pod, name string) {
	if p.node == name {
		return
	}
	if n := m.nodes[p.node]; n != nil {
		delete(n.pods, p.object.UID)
	}
	p.node, p.planned, p.victims, p.reserved = name, "", nil, false
	m.node(name).pods[p.object.UID] = p
	if p.job == nil {
		m.dirtyNodes[name] = true
		m.wake()
	}
}

func (m *model) node(name string) *node {
	if m.nodes[name] == nil {
		m.nodes[name] = &node{pods: map[types.UID]*pod{}}
	}
	return m.nodes[name]
}

// join puts a pod into the job it belongs to.
func (m *model) join(p *pod, queue string) {
	name, id, definition := gangOf(p.object)
	if id == "" {
		name, id = p.object.Name, "pod/"+string(p.object.UID)
	}
	if p.job != nil && p.job.queue == queue && p.job.id == id {
		return
	}
	m.leave(p)
	if queue == "" {
		if p.node != "" {
			m.dirtyNodes[p.node] = true
		}
		return
	}
	j := m.jobs[id]
	if j == nil {
		j = &job{
			id: id, definition: definition, namespace: p.object.Namespace, name: name, queue: queue,
			pods: map[types.UID]*pod{}, refused: map[string]time.Time{},
		}
		m.jobs[id] = j
	}
	p.job, j.pods[p.object.UID] = j, p
	m.judge(j)
	if p.node != "" {
		m.dirtyNodes[p.node] = true
	}
}

// judge sets the minimum of a job, or why it cannot be decided about.
func (m *model) judge(j *job) {
	j.fault, j.least = "", 1
	if !m.queues[j.queue] {
		names := slices.Sorted(maps.Keys(m.queues))
		j.fault = fmt.Sprintf("queue %q does not exist; there are %s", j.queue, strings.Join(names, ", "))
		return
	}
	if j.definition == "" {
		return
	}
	least, ok := m.gangs[j.definition]
	for _, p := range j.pods {
		if !ok {
			least, ok = minimumOf(p.object)
		}
		if p.job.queue != m.queue(p.object) {
			j.fault = fmt.Sprintf("the pods of gang %s/%s belong to different queues", j.namespace, j.name)
		}
	}
	if j.least = least; !ok {
		j.fault = fmt.Sprintf("gang %s/%s is not defined: there is no Workload or PodGroup of this name, nor a label %s",
			j.namespace, j.name, minimumLabel)
	}
}

func (m *model) leave(p *pod) {
	j := p.job
	if j == nil {
		return
	}
	delete(j.pods, p.object.UID)
	p.job = nil
	m.touch(j)
}

func (m *model) dropPod(uid types.UID) {
	p := m.pods[uid]
	if p == nil {
		return
	}
	if p.job == nil && p.node != "" {
		m.dirtyNodes[p.node] = true
		m.wake()
	}
	m.leave(p)
	if n := m.nodes[p.node]; n != nil {
		delete(n.pods, uid)
	}
	delete(m.pods, uid)
}

func (m *model) removePod(uid types.UID) {
	m.Lock()
	defer m.Unlock()
	m.dropPod(uid)
}

// setNode follows a node.
func (m *model) setNode(object *corev1.Node) {
	m.Lock()
	defer m.Unlock()
	n := m.node(object.Name)
	if n.object != nil && sameNode(n.object, object) {
		n.object = object
		return
	}
	if n.object == nil || shapeChanged(n.object, object) {
		m.shaped = true
	}
	n.object = object
	delete(m.goneNodes, object.Name)
	m.dirtyNodes[object.Name] = true
	m.wake()
}

// removeNode withdraws what was planned on the node.
func (m *model) removeNode(name string) {
	m.Lock()
	defer m.Unlock()
	n := m.nodes[name]
	if n == nil {
		return
	}
	n.object = nil
	m.goneNodes[name], m.shaped = true, true
	delete(m.dirtyNodes, name)
	for _, p := range m.pods {
		if p.planned == name && p.node == "" {
			m.withdraw(p)
		}
	}
	m.wake()
}

// setNamespace follows the queue that a namespace names.
func (m *model) setNamespace(name, queue string) {
	m.Lock()
	defer m.Unlock()
	if m.queueOf[name] == queue {
		return
	}
	m.queueOf[name] = queue
	for _, p := range m.pods {
		if p.object.Namespace == name {
			m.join(p, m.queue(p.object))
			m.touch(p.job)
		}
	}
}

// setGang follows the minimum of the gangs of a definition; negative: it is not defined any more.
func (m *model) setGang(id string, least int) {
	m.Lock()
	defer m.Unlock()
	if least < 0 {
		delete(m.gangs, id)
	} else {
		m.gangs[id] = least
	}
	for _, j := range m.jobs {
		if j.definition == id {
			m.judge(j)
			m.touch(j)
		}
	}
}

// withdraw takes back the place of a pod. The others of a gang that has not begun lose theirs, too, and those that hold a node are
// returned: they must be rejected. Victims that no place of the job needs any more stay.
func (m *model) withdraw(p *pod) (held []types.UID) {
	j, victims := p.job, p.victims
	whole := j != nil && j.secured() < j.least
	p.planned, p.victims, p.reserved, p.released = "", nil, false, false
	if j == nil {
		return nil
	}
	m.touch(j)
	if whole = whole || j.secured() < j.least && j.bound() == 0; whole {
		for uid, other := range j.pods {
			if other.node != "" || other.planned == "" || other.released {
				continue
			}
			if other.reserved {
				held = append(held, uid)
			}
			other.planned, other.victims, other.reserved = "", nil, false
		}
	}
	m.keep(j, victims)
	return held
}

// keep lets the victims of a job that are not being deleted stay, unless a place of the job needs them.
func (m *model) keep(j *job, victims []types.UID) {
	for _, p := range j.pods {
		if len(p.victims) > 0 {
			return
		}
	}
	for _, uid := range victims {
		if v := m.pods[uid]; v != nil && v.object.DeletionTimestamp == nil {
			v.releasing = false
			m.touch(v.job)
		}
	}
}
