package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/apportion/apportion/engine/resource"
)

// maxCount bounds the tasks of one model, given one by one or as counts, so that counts fit into 32 bits.
const maxCount = 1 << 30

// Builder builds a Model from queues, nodes, jobs, groups and tasks, in that nesting. It copies amounts, keeps strings, and collects every
// violation with its path. Dimensions come first; nodes and queues come before the jobs that refer to them.
type Builder struct {
	m Model
	flat
	faults  Error
	width   int
	index   []int
	scratch resource.Row
	known   int
	// undimensioned: the dimensions are faulty, so that amounts cannot be read.
	undimensioned bool
	// podsGiven: the rules on other pods were set.
	podsGiven  bool
	requestIDs map[string]int32
	key        []byte
	counted    int64
	roles      map[string]struct{}
	// Position of the newest job, group and task among those given, for paths.
	job, group, task int
	// change is set in the builder of a Change.
	change     *change
	recognized recognized
	// requestAt maps the requests of a part of a Change to those of the result.
	requestAt []int32
	text      text
	// blank is a task of the newest group with zero values.
	blank Task
	// The last of each kind: these repeat.
	role, class, namespace, parent, label, condition, owner, zone string
	// rareAt has the rare properties of tasks that were added.
	rareAt map[rareKey]int32
	// rareBytes is about what the rare properties of the tasks and jobs here take.
	rareBytes       int
	budgets, quotas listing
	tally           tally
	slab            slab
	store           accountStore
	sums            sumStore
}

// flat holds the entries that a builder collects, before it cuts them into pages. Positions count from the first entry here.
type flat struct {
	jobs    []Job
	groups  []Group
	counts  []Count
	tasks   []Task
	details []Detail
	rares   []rare
	// written holds the uids and names of tasks.
	written []byte
	// before is the text of the base of a change, to which tasks may also refer, and start its end, from which positions in written count.
	before *paper
	start  int
}

// textAt returns a text of a task.
func (f *flat) textAt(s span) []byte {
	if int(s.from) < f.start {
		return f.before.at(s)
	}
	return f.written[int(s.from)-f.start : int(s.to)-f.start]
}

// NewBuilder returns a builder of an empty snapshot at the given time (Unix nanoseconds).
func NewBuilder(asOf int64) *Builder {
	b := &Builder{}
	b.reset(asOf)
	return b
}

// reset empties the builder, whose memory is used again.
func (b *Builder) reset(asOf int64) {
	m := &b.m
	b.untake()
	m.queueIndex.reset()
	m.nodeIndex.reset()
	m.nodeSetIndex.reset()
	clear(m.NodeSets)
	clear(m.Queues)
	clear(m.Nodes)
	clear(b.jobs)
	clear(b.groups)
	clear(b.details)
	clear(b.rares)
	b.slab.reset()
	b.tally.reset()
	*b = Builder{
		job: -1, tally: b.tally, slab: b.slab, store: b.store, sums: b.sums, key: b.key, roles: b.roles, requestIDs: b.requestIDs,
		flat: flat{
			jobs: b.jobs[:0], groups: b.groups[:0], counts: b.counts[:0], tasks: b.tasks[:0], details: b.details[:0],
			rares: b.rares[:0], written: b.written[:0],
		},
		m: Model{
			AsOf: asOf, Nodes: m.Nodes[:0], NodeSets: m.NodeSets[:0], nodeSetIndex: m.nodeSetIndex, Queues: m.Queues[:0],
			Jobs: m.Jobs, Groups: m.Groups, Counts: m.Counts, Tasks: m.Tasks,
			Details: m.Details, rares: m.rares, Accounts: m.Accounts, Requests: m.Requests[:0], text: m.text,
			queueIndex: m.queueIndex, nodeIndex: m.nodeIndex, jobIndex: m.jobIndex, taskIndex: m.taskIndex, requestIndex: m.requestIndex,
		},
	}
	b.Dimensions(nil)
}

// bare are the dimensions of a snapshot that names none.
var bare, _, _ = resource.NewDimensions(nil)

// Dimensions sets the names to which the Dimension numbers of all Amounts refer. Call it once, first.
func (b *Builder) Dimensions(names []string) {
	dims, index, err := bare, []int(nil), error(nil)
	if len(names) > 0 {
		dims, index, err = resource.NewDimensions(names)
	}
	if err != nil {
		b.faults.Add("dimensions", "%s", err)
		dims, index = bare, nil
	}
	b.undimensioned = err != nil
	b.m.Dims, b.index, b.width, b.known = dims, index, dims.Len(), len(names)
	b.m.given = names
	b.scratch = b.slab.row(b.width, 0)
	b.m.Requests = append(b.m.Requests[:0], b.slab.row(b.width, resource.Base))
	if b.requestIDs == nil {
		b.requestIDs = map[string]int32{}
	}
	clear(b.requestIDs)
	b.key = requestKey(b.key[:0], b.m.Requests[0])
	b.requestIDs[string(b.key)] = 0
}

// Total sets the cluster's total instead of the sum of all nodes.
func (b *Builder) Total(total *Amounts) {
	if row := b.row(total, limited, "total", ""); !row.Absent() {
		row.Has |= resource.Base
		b.m.Total, b.m.explicit = row, true
	}
}

// Renumbered returns the position in the model's Order for each position among the given names; nil if both are the same. For a position
// without a name it returns one that does not exist.
func (b *Builder) Renumbered() func(given uint32) uint32 {
	same := len(b.index) == b.m.Dims.Len()
	for i := 0; same && i < len(b.index); i++ {
		same = b.m.Dims.Position(b.index[i]) == i
	}
	if same {
		return nil
	}
	return func(given uint32) uint32 {
		if int64(given) >= int64(len(b.index)) {
			return math.MaxUint32
		}
		return uint32(b.m.Dims.Position(b.index[given]))
	}
}

// Node adds a node.
func (b *Builder) Node(s NodeSpec) {
	i, at := len(b.m.Nodes), NodeID(len(b.m.Nodes))
	if b.change != nil {
		i = b.change.nodes
		b.change.nodes++
	}
	path := func(field string) string { return fmt.Sprintf("nodes[%d].%s", i, field) }
	if s.Name == "" {
		b.faults.Add(path("name"), "a node needs a name")
	} else if b.change != nil {
		at = b.nodeToSet(s.Name, path("name"))
	} else if first, fresh := b.m.nodeIndex.add(s.Name, int32(i), b.m.nodeName); !fresh {
		b.faults.Add(path("name"), "node %q is nodes[%d] already", s.Name, first)
	}
	node := Node{
		Name: b.text.keep(s.Name), Group: b.text.again(&b.label, s.Group), Labelled: s.Labelled,
		zone: b.zoneOf(s.RevocableZone),
	}
	if u := s.Unschedulable; u != nil {
		node.Unschedulable = &Unschedulable{Cause: u.Cause, Detail: b.text.keep(u.Detail)}
	}
	node.Pods = b.nodePods(s.Pods, path)
	node.reserved = b.reservations(s.Reservations, path)
	node.Allocatable = b.account(s.Allocatable, path, "allocatable")
	node.UsedByOthers = b.account(s.UsedByOthers, path, "used_by_others")
	b.m.Nodes = put(b.m.Nodes, at, node)
}

// put replaces the entry at a position, which may be the one after the last.
func put[ID ~int32, T any](list []T, at ID, entry T) []T {
	if int(at) == len(list) {
		return append(list, entry)
	}
	list[at] = entry
	return list
}

// Queue adds a queue.
func (b *Builder) Queue(s QueueSpec) {
	i, at := len(b.m.Queues), QueueID(len(b.m.Queues))
	if b.change != nil {
		i = b.change.queues
		b.change.queues++
	}
	path := func(field string) string { return queuePath(i, field) }
	if s.Name == "" {
		b.faults.Add(path("name"), "a queue needs a name")
	} else if b.change != nil {
		at = b.queueToSet(s.Name, path("name"))
	} else if first, fresh := b.m.queueIndex.add(s.Name, int32(i), b.m.queueName); !fresh {
		b.faults.Add(path("name"), "queue %q is queues[%d] already", s.Name, first)
	}
	if s.Weight > math.MaxInt32 {
		b.faults.Add(path("weight"), "weight %d is above %d", s.Weight, math.MaxInt32)
	}
	b.m.Queues = put(b.m.Queues, at, Queue{
		Name: b.text.keep(s.Name), Parent: b.text.again(&b.parent, s.Parent), Weight: int32(s.Weight & math.MaxInt32),
		Priority: s.Priority, State: s.State,
		Reclaimable: s.Reclaimable, Affinity: s.Affinity, Hierarchy: b.hierarchy(s.Hierarchy), CreateTime: s.CreateTime,
		Capability: b.rowAt(s.Capability, unlimited, path, "capability"),
		Guarantee:  b.rowAt(s.Guarantee, limited, path, "guarantee"),
		Deserved:   b.rowAt(s.Deserved, limited, path, "deserved"),
		Memory:     b.queueMemory(s.Memory, i),
		NodeLimits: b.nodeLimits(s.NodeLimits, path),
		Extra:      s.Extra,
	})
}

func queuePath(queue int, field string) string { return fmt.Sprintf("queues[%d].%s", queue, field) }

// hierarchy returns a copy of a queue's place in the tree, nil for nil.
func (b *Builder) hierarchy(h *Hierarchy) *Hierarchy {
	if h == nil {
		return nil
	}
	return &Hierarchy{Path: b.text.keep(h.Path), Weights: b.text.keep(h.Weights)}
}

// Job begins a job; the following groups belong to it.
func (b *Builder) Job(s JobSpec) {
	b.closeJob()
	b.job++
	b.group = -1
	job := Job{Queue: None, FirstGroup: GroupID(len(b.groups)), FirstTask: TaskID(len(b.tasks))}
	was := b.recognize(&s)
	b.describe(&job, &s, b.queueAgain(was.Queue, s.Queue), was)
	b.jobs = append(b.jobs, job)
}

// describe sets the fields of the newest job. queue is None if no queue has its name. It shares texts that the job had before.
func (b *Builder) describe(job *Job, s *JobSpec, queue QueueID, was *Job) {
	job.UID, job.Condition = b.text.keepAs(was.UID, s.UID), b.text.keepAs(was.Condition, s.Condition)
	if job.Namespace = was.Namespace; s.Namespace != was.Namespace {
		job.Namespace = b.text.again(&b.namespace, s.Namespace)
	}
	job.Priority, job.Phase, job.CreateTime = s.Priority, s.Phase, s.CreateTime
	job.ExpectedEnd, job.EndIsDeadline, job.Extra = s.ExpectedEnd, s.EndIsDeadline, s.Extra
	if job.ExpectedRuntime = s.ExpectedRuntime; s.ExpectedRuntime < 0 {
		b.faults.Add(b.jobPath("expected_runtime"), "%d is negative", s.ExpectedRuntime)
	}
	if job.Owner = was.Owner; s.Owner != was.Owner {
		job.Owner = b.text.again(&b.owner, s.Owner)
	}
	job.MinAvailable = int32(min(s.MinAvailable, math.MaxInt32))
	if job.UID == "" {
		job.UID = b.text.join(s.Namespace, s.Name)
		job.Name = job.UID[len(job.UID)-len(s.Name):]
	} else {
		job.Name = b.text.keepAs(was.Name, s.Name)
	}
	if s.MinAvailable > math.MaxInt32 {
		b.faults.Add(b.jobPath("min_available"), "%d is above %d", s.MinAvailable, math.MaxInt32)
	}
	if s.UID == "" && s.Name == "" {
		b.faults.Add(b.jobPath("uid"), "a job needs a uid or a name")
	}
	if job.Queue = queue; queue == None {
		b.faults.Add(b.jobPath("queue"), "no queue %q", s.Queue)
	}
	if s.MinResources != nil {
		job.MinResources = b.row(s.MinResources, limited, "", "min_resources")
	}
	job.Detail = b.jobDetail(s.Detail)
}

// Group begins a task group of the newest job.
func (b *Builder) Group(s GroupSpec) {
	b.closeGroup()
	b.group++
	b.task = -1
	id := GroupID(len(b.groups))
	role := b.text.again(&b.role, s.Role)
	if b.group > 0 {
		b.checkRole(role, b.groups[b.jobs[len(b.jobs)-1].FirstGroup:])
	}
	group := Group{
		Job: JobID(len(b.jobs) - 1), Role: role, MinAvailable: -1, FirstCount: int32(len(b.counts)), Unjudged: s.Unjudged,
		NodeSet: b.nodeSet(s.NodeSet, b.groupPath), PodClass: b.podClass(s.PodClass, b.groupPath), Unstated: s.Unstated,
	}
	if s.HasMin {
		if s.MinAvailable > math.MaxInt32 {
			b.faults.Add(b.groupPath("min_available"), "%d is above %d", s.MinAvailable, math.MaxInt32)
		}
		group.MinAvailable = int32(min(s.MinAvailable, math.MaxInt32))
	}
	b.groups = append(b.groups, group)
	b.groups[id].Request = b.request(s.Request, b.groupPath)
	b.blank = Task{Job: group.Job, Group: id, Request: b.groups[id].Request, Node: None, Detail: None}
}

// checkRole records a role that an earlier group of the newest job has. Most jobs have so few that they need no set.
func (b *Builder) checkRole(role string, groups []Group) {
	const few = 16
	var twice bool
	if len(groups) <= few {
		twice = slices.ContainsFunc(groups, func(g Group) bool { return g.Role == role })
	} else {
		if len(groups) == few+1 {
			b.roles = make(map[string]struct{}, 2*few)
			for i := range groups {
				b.roles[groups[i].Role] = struct{}{}
			}
		}
		_, twice = b.roles[role]
		b.roles[role] = struct{}{}
	}
	if twice {
		b.faults.Add(b.groupPath("role"), "role %q is given twice", role)
	}
}

// Count adds equal tasks without identity to the newest group.
func (b *Builder) Count(status Status, gate Gate, n uint32) {
	b.counted += int64(n)
	if b.counted > maxCount {
		if b.counted-int64(n) <= maxCount {
			b.faults.Add(b.groupPath("counts"), "more than %d tasks in all", maxCount)
		}
		return
	}
	b.counts = append(b.counts, Count{Group: GroupID(len(b.groups) - 1), Status: status, Gate: gate, N: int32(n)})
}

// Task adds a task to the newest group. The builder does not retain s.
func (b *Builder) Task(s *TaskSpec) {
	b.task++
	b.counted++
	// Fill the task in place: copying it would double the cost.
	b.tasks = append(b.tasks, b.blank)
	task := &b.tasks[len(b.tasks)-1]
	if b.change == nil {
		task.uid, task.name = b.write(s.UID), b.write(s.Name)
	} else {
		b.recognizeTask(task, s)
	}
	task.CreateTime, task.Priority, task.Index = s.CreateTime, s.Priority, s.Index
	task.Status, task.Gate, task.Preemptable = s.Status, s.Gate, s.Preemptable
	if s.Node != None {
		if b.placed(s.Node) {
			task.Node = s.Node
		} else {
			b.faults.Add(b.taskPath("node"), "no node %d, there are %d nodes", s.Node, len(b.m.Nodes))
		}
	}
	if s.Detail != nil {
		task.Detail = int32(len(b.details))
		detail := *s.Detail
		detail.PriorityClass = b.text.again(&b.class, detail.PriorityClass)
		detail.Condition = b.text.again(&b.condition, detail.Condition)
		detail.NodeSet = b.nodeSet(s.NodeSet, b.detailPath)
		detail.PodClass = b.podClass(s.PodClass, b.detailPath)
		detail.rare = b.rare(s.Rare)
		b.details = append(b.details, detail)
	}
	if s.Request != nil {
		task.Request = b.request(s.Request, b.detailPath)
	}
}

// write copies a text of a task.
func (b *Builder) write(s string) span {
	if s == "" {
		return span{}
	}
	from := b.start + len(b.written)
	if len(s) > maxText-from {
		b.faults.Add(b.taskPath("uid"), "the uids and names of all tasks together exceed %d bytes", maxText)
		return span{}
	}
	b.written = append(b.written, s...)
	return span{uint32(from), uint32(from + len(s))}
}

func (b *Builder) jobPath(field string) string { return fmt.Sprintf("jobs[%d].%s", b.job, field) }

func (b *Builder) groupPath(field string) string {
	return fmt.Sprintf("jobs[%d].groups[%d].%s", b.job, b.group, field)
}

func (b *Builder) taskPath(field string) string {
	return fmt.Sprintf("jobs[%d].groups[%d].tasks[%d].%s", b.job, b.group, b.task, field)
}

func (b *Builder) detailPath(field string) string { return b.taskPath("detail." + field) }
