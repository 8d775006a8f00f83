package model

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/resource"
)

// Model is a compiled snapshot. It must not be modified.
type Model struct {
	Dims resource.Dimensions
	// AsOf is the time of the snapshot in Unix nanoseconds.
	AsOf int64
	// Nodes and Queues without a name, jobs without a queue, and tasks that HasTask denies were removed by a Change.
	Nodes  []Node
	Queues []Queue
	// NodeSets are the sets to which groups and tasks refer; the first is AllNodes. Others without a name were removed by a Change. Empty
	// if the snapshot has none.
	NodeSets []NodeSet
	// LeftOut are jobs and pods that the scheduler does not consider.
	LeftOut []LeftOut
	Jobs    Table[JobID, Job]
	Groups  List[GroupID, Group]
	Counts  List[int32, Count]
	Tasks   List[TaskID, Task]
	// Details are the rarely used properties to which Task.Detail refers.
	Details List[int32, Detail]
	// Requests are the distinct requests as built, each with cpu and memory present; Requests[0] is the request of a best-effort task.
	Requests []resource.Row
	// Memory is nil if the snapshot has none; usage, budgets and owners are then ignored.
	Memory *Memory
	// Pods are the placement constraints that depend on other pods; nil: there are none.
	Pods *PodRules
	// DisruptionBudgets are in the order of the snapshot, Quotas too.
	DisruptionBudgets []DisruptionBudget
	Quotas            []Quota
	// Total is the explicit total, or the sum of all nodes' allocatable; cpu and memory are present.
	Total resource.Row
	// Accounts belong to the jobs at the same positions.
	Accounts Table[JobID, Account]

	// NodeOrder, QueueOrder and JobOrder are sorted by name and uid: the order in which sums are formed, so that no answer depends on the
	// order of a snapshot.
	NodeOrder  []NodeID
	QueueOrder []QueueID
	JobOrder   []JobID
	// QueueJobs lists the jobs of each queue by uid.
	QueueJobs [][]JobID

	// Own counts the parts that a model built by a Change does not share with its base; nil for a model built from a snapshot.
	Own *Own
	// Tallied counts the tasks of which the model keeps only sums; see Loader.Tally.
	Tallied int
	// reserves: some node has reservations, or had them in the model that this one is a change of.
	reserves bool
	// OffNode counts the tasks on nodes that the latest Change removed.
	OffNode int
	small   []SmallNodes
	// extra is the size of what single policies read, queueParts and jobParts are the most parts of it that a queue and a job have.
	extra, queueParts, jobParts int
	// rares are the properties of tasks to which Detail.rare refers, and zones those of nodes to which Node.zone refers.
	rares List[int32, rare]
	zones []string
	// rareBytes is about what the rare properties of tasks and jobs take.
	rareBytes int
	// budgetIndex and quotaIndex have the positions by namespace/name; nil: there are none.
	budgetIndex, quotaIndex map[string]int32
	// text holds the uids and names of tasks.
	text paper
	// sums belong to the queues at the same positions.
	sums []*QueueSum
	// exact says that sums do not depend on the order of summation, by grain and sums.
	exact bool
	grain grain
	// given are the dimensions in the order in which the snapshot names them.
	given []string
	// explicit says that Total was given.
	explicit              bool
	queueIndex, nodeIndex index
	nodeSetIndex          index
	jobIndex, taskIndex   runs
	requestIndex          runs
}

// Own counts the unshared parts of a model: entries, pages of lists, and bytes of texts and indexes.
type Own struct {
	Nodes, NodeSets, Queues, Sums, Jobs, Groups, Counts, Tasks, Details, Requests, Order int
	Pages, Bytes                                                                         int
}

// Account contains the sums over a job's tasks.
type Account struct {
	// Allocated sums the requests of tasks that hold resources.
	Allocated resource.Row
	// Pending sums the requests of pending tasks, including gated and best-effort ones.
	Pending resource.Row
	// Gated sums the requests of pending tasks that are held by a gate other than the scheduler's own.
	Gated resource.Row
	// Total sums the requests of all tasks.
	Total resource.Row
	// Tasks counts tasks by status.
	Tasks [NumStatus]int32
	// PendingBestEffort counts pending tasks that request only `pods`.
	PendingBestEffort int32
	// GroupTasks counts tasks by status for each group of the job, in group order.
	GroupTasks [][NumStatus]int32
	// GroupPendingBestEffort is PendingBestEffort for each group of the job, in group order.
	GroupPendingBestEffort []int32
}

// Ready counts tasks that hold resources or have succeeded (Volcano's ReadyTaskNum).
func (a *Account) Ready() int32 { return ready(&a.Tasks) }

// Valid counts tasks that hold, wait for, or will request resources, or have succeeded (Volcano's ValidTaskNum).
func (a *Account) Valid() int32 { return valid(&a.Tasks) }

// Holding counts tasks that hold resources (Volcano's CalculateAllocatedTaskNum).
func (a *Account) Holding() int32 {
	return a.Tasks[Allocated] + a.Tasks[Binding] + a.Tasks[Bound] + a.Tasks[Running]
}

// AllTasks counts all tasks.
func (a *Account) AllTasks() int32 {
	n := int32(0)
	for _, k := range a.Tasks {
		n += k
	}
	return n
}

// GroupReady is Ready for the group at position g of the job.
func (a *Account) GroupReady(g int) int32 { return ready(&a.GroupTasks[g]) }

// GroupValid is Valid for the group at position g of the job.
func (a *Account) GroupValid(g int) int32 { return valid(&a.GroupTasks[g]) }

func ready(n *[NumStatus]int32) int32 {
	return n[Allocated] + n[Binding] + n[Bound] + n[Running] + n[Succeeded]
}

func valid(n *[NumStatus]int32) int32 { return ready(n) + n[Pipelined] + n[Pending] }

// Request returns the request of a task.
func (m *Model) Request(t TaskID) resource.Row { return m.Requests[m.Tasks.At(t).Request] }

// BestEffort reports whether a request contains only `pods`.
func (m *Model) BestEffort(request resource.Row) bool { return request.IsEmpty(m.Dims.Pods()) }

// QueueOf returns the queue of a task's job.
func (m *Model) QueueOf(t TaskID) QueueID { return m.Jobs.At(m.Tasks.At(t).Job).Queue }

// CountsOf returns the tasks of a group that are given as counts.
func (m *Model) CountsOf(g GroupID) iter.Seq[*Count] {
	return func(yield func(*Count) bool) {
		group := m.Groups.At(g)
		for c := group.FirstCount; c < group.EndCount; c++ {
			if !yield(m.Counts.At(c)) {
				return
			}
		}
	}
}

// KnowsTotal reports whether the snapshot says what there is to divide: by nodes, or by a total of something.
func (m *Model) KnowsTotal() bool { return len(m.NodeOrder) > 0 || m.Total.Positive() != 0 }

// HasJob reports whether a job exists: all except those that a Change removed.
func (m *Model) HasJob(j JobID) bool { return m.Jobs.At(j).Queue != None }

// HasTask reports whether a task exists: all except those of jobs that a Change removed or replaced.
func (m *Model) HasTask(t TaskID) bool {
	job := m.Jobs.At(m.Tasks.At(t).Job)
	return job.FirstTask <= t && t < job.EndTask
}

// HasNode reports whether a node exists: all except those that a Change removed.
func (m *Model) HasNode(n NodeID) bool { return m.Nodes[n].Name != "" }

// HasQueue reports whether a queue exists: all except those that a Change removed.
func (m *Model) HasQueue(q QueueID) bool { return m.Queues[q].Name != "" }

// TaskKey returns the human-readable identifier of a task: its uid, or namespace/name, or "".
func (m *Model) TaskKey(t TaskID) string {
	if uid := m.Tasks.At(t).uid; !uid.empty() {
		return string(m.at(uid))
	}
	return m.TaskPath(t)
}

// TaskUID returns a copy of a task's uid.
func (m *Model) TaskUID(t TaskID) string { return string(m.at(m.Tasks.At(t).uid)) }

// TaskName returns a copy of a task's name.
func (m *Model) TaskName(t TaskID) string { return string(m.at(m.Tasks.At(t).name)) }

// compareTaskKeys compares the identifiers of two tasks, as returned by TaskKey.
func (m *Model) compareTaskKeys(l, r TaskID) int {
	lt, rt := m.Tasks.At(l), m.Tasks.At(r)
	if !lt.uid.empty() && !rt.uid.empty() {
		return bytes.Compare(m.at(lt.uid), m.at(rt.uid))
	}
	if lt.uid.empty() && rt.uid.empty() && m.Jobs.At(lt.Job).Namespace == m.Jobs.At(rt.Job).Namespace {
		return bytes.Compare(m.at(lt.name), m.at(rt.name))
	}
	return strings.Compare(m.TaskKey(l), m.TaskKey(r))
}

// CompareTasks compares two tasks by their identifiers, and tasks without a name by their jobs and numbers.
func (m *Model) CompareTasks(l, r TaskID) int {
	if c := m.compareTaskKeys(l, r); c != 0 {
		return c
	}
	lj, rj := m.Tasks.At(l).Job, m.Tasks.At(r).Job
	if lj != rj {
		return strings.Compare(m.Jobs.At(lj).UID, m.Jobs.At(rj).UID)
	}
	return cmp.Compare(l, r)
}

func (m *Model) at(s span) []byte { return m.text.at(s) }

// TaskPath returns namespace/name of a task, or "" if it has no name.
func (m *Model) TaskPath(t TaskID) string {
	task := m.Tasks.At(t)
	if task.name.empty() {
		return ""
	}
	return qualified(m.Jobs.At(task.Job).Namespace, string(m.at(task.name)))
}

// GivenDimensions returns all dimensions in the order of the snapshot, followed by those that it does not name.
func (m *Model) GivenDimensions() []int {
	list, left := make([]int, 0, m.Dims.Len()), ^resource.Mask(0)>>(resource.MaxDimensions-m.Dims.Len())
	for _, name := range m.given {
		if d, ok := m.Dims.Index(name); ok && left.Has(d) {
			list, left = append(list, d), left.Without(d)
		}
	}
	for ; left != 0; left = left.Rest() {
		list = append(list, left.First())
	}
	return list
}

// NodeRanks returns the position of each of the given nodes in the list of all nodes sorted by name.
func (m *Model) NodeRanks(nodes []NodeID) []int32 {
	const few = 64
	if len(nodes) <= len(m.Nodes)/few {
		return m.ranksByName(nodes)
	}
	byNode := make([]int32, len(m.Nodes))
	for rank, n := range m.NodeOrder {
		byNode[n] = int32(rank)
	}
	ranks := make([]int32, len(nodes))
	for i, n := range nodes {
		ranks[i] = byNode[n]
	}
	return ranks
}

// ranksByName is NodeRanks for few nodes of many.
func (m *Model) ranksByName(nodes []NodeID) []int32 {
	ranks := make([]int32, len(nodes))
	for i, n := range nodes {
		rank, _ := slices.BinarySearchFunc(m.NodeOrder, m.Nodes[n].Name, func(l NodeID, name string) int {
			return strings.Compare(m.Nodes[l].Name, name)
		})
		ranks[i] = int32(rank)
	}
	return ranks
}

// ZoneOf returns the zone of a node for the plugin tdm, or "".
func (m *Model) ZoneOf(n NodeID) string {
	if zone := m.Nodes[n].zone; zone > 0 {
		return m.zones[zone-1]
	}
	return ""
}

// Queue returns the queue with this name.
func (m *Model) Queue(name string) (QueueID, bool) {
	q, ok := m.queueIndex.find(name, m.queueName)
	return QueueID(q), ok
}

// Node returns the node with this name.
func (m *Model) Node(name string) (NodeID, bool) {
	n, ok := m.nodeIndex.find(name, m.nodeName)
	return NodeID(n), ok
}

// Job returns the job with this uid.
func (m *Model) Job(uid string) (JobID, bool) {
	j, ok := m.jobIndex.find(uid, jobTexts{m})
	return JobID(j), ok
}

// TaskOf returns the task with this uid.
func (m *Model) TaskOf(uid string) (TaskID, bool) {
	t, ok := m.taskIndex.find(uid, taskTexts{m})
	return TaskID(t), ok
}

// Task returns the task with this uid or namespace/name. If the uid of one task is the path of another, the uid takes precedence.
func (m *Model) Task(key string) (TaskID, bool) {
	if t, ok := m.TaskOf(key); ok {
		return t, true
	}
	// Only jobs of the path's namespace can match, so a second index of all tasks would not pay.
	for j := range JobID(m.Jobs.Len()) {
		job := m.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			if name := m.Tasks.At(t).name; !name.empty() && isQualified(key, job.Namespace, m.at(name)) {
				return t, true
			}
		}
	}
	return None, false
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// isQualified reports whether key is qualified(namespace, name).
func isQualified(key, namespace string, name []byte) bool {
	if namespace == "" {
		return key == string(name)
	}
	n := len(namespace)
	return len(key) == n+1+len(name) && key[n] == '/' && key[n+1:] == string(name) && key[:n] == namespace
}

func (m *Model) queueName(q int32) string { return m.Queues[q].Name }

func (m *Model) nodeName(n int32) string { return m.Nodes[n].Name }

// SmallNodes are the nodes that offer some of a dimension, but less than one core or one device.
type SmallNodes struct {
	Dimension int
	// First is the first of them in NodeOrder.
	First NodeID
	N     int
}

// SmallNodes returns, by dimension, the nodes that offer some of cpu or of a device, but less than one. They are found when the model is
// built, because every session asks for them.
func (m *Model) SmallNodes() []SmallNodes { return m.small }

func (m *Model) findSmallNodes() {
	const one = 1000
	var small [resource.MaxDimensions]SmallNodes
	counted := resource.Mask(0).With(resource.CPU)
	for d := range m.Dims.Len() {
		// The name of a device has a domain. Others are counted in bytes or in pods.
		if strings.Contains(m.Dims.Name(d), "/") {
			counted = counted.With(d)
		}
	}
	for _, n := range m.NodeOrder {
		offered := &m.Nodes[n].Allocatable
		for named := offered.Has & counted; named != 0; named = named.Rest() {
			d := named.First()
			if x := offered.V[d]; x > 0 && x < one {
				if small[d].N++; small[d].N == 1 {
					small[d].Dimension, small[d].First = d, n
				}
			}
		}
	}
	m.small = nil
	for d := range small {
		if small[d].N > 0 {
			m.small = append(m.small, small[d])
		}
	}
}
