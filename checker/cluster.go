// Package checker checks whether an answer follows from the request by the rules of docs/fair.md and docs/semantics.md: it forms the answer
// anew and compares the two, field by field. It shares no code with the engine, so that a fault in one is not a fault in the other.
// check_answer.py does the same in Python for plugin `fair`.
package checker

import (
	"cmp"
	"math"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// unlimited is a capability without a limit, root the position of a root that is not a queue, and aside that of the leaf of jobs that are
// set aside.
const (
	unlimited = math.MaxInt64
	root      = -1
	aside     = -2
)

// largest is the most that amounts of a dimension may add up to under fair; a capability above it limits nothing.
const largest = 1 << 60

// task is one task, or several equal ones, as far as `fair` looks at it.
type task struct {
	// stated is the request in the snapshot, request it in whole amounts.
	stated   *apportionv1.Resource
	request  []int64
	job      int
	leaf     int
	node     *uint32
	set      string
	priority int32
	created  int64
	number   int
	// message is it in the snapshot; nil if it is given as a count.
	message *apportionv1.Task
	// name is its uid, or namespace/name.
	name        string
	status      apportionv1.TaskStatus
	preemptable bool
}

// job is a job with its tasks that wait and count. Queue is its queue, also if it is set aside; leaf is then aside.
type job struct {
	message     *apportionv1.Job
	queue, leaf int
	held        int64
	heldRow     []int64
	// asks is what its pending tasks ask for that could run on an empty cluster.
	asks    []int64
	waiting []*task
	// tasks are those with numbers; fitting of them could run on an empty cluster. counted tasks hold something without a number.
	tasks            []*task
	fitting, counted int64
}

// cluster is a snapshot: its tree, and what tasks hold, demand, occupy and release, in whole amounts. Queues are known by index.
type cluster struct {
	*apportionv1.Snapshot

	settings *apportionv1.Fair
	dims     []string
	// byDimension are the dimensions cpu, memory, then the others by name: the first of several that decide alike is named in reasons.
	byDimension []int
	unit        []int64
	top         int
	index       map[string]int
	// refused says why a queue is set aside.
	refused map[int]apportionv1.HierarchyFault
	parent  map[int]int
	kids    map[int][]int
	// order lists the queues that take part, parents first.
	order []int
	// capability is by queue, in raw amounts.
	capability map[int][]int64
	open       map[int]bool
	// all is the amount that is divided among the queues.
	all, total   []int64
	held, demand map[int][]int64
	// free is what can be given away now, by node; of the cluster under root. future is what will be free once all that is being released
	// is.
	free, future map[int][]int64
	sets         map[string][]uint32
	tolerant     map[string]bool
	// byName are the nodes in order of their names.
	byName []int
	tasks  []*task
	jobs   []*job
}

func read(s *apportionv1.Snapshot, settings *apportionv1.Fair) *cluster {
	c := &cluster{
		Snapshot: s, settings: settings, dims: slices.Clone(s.GetDimensions()), sets: map[string][]uint32{}, tolerant: map[string]bool{},
	}
	for _, name := range []string{"cpu", "memory"} {
		if !slices.Contains(c.dims, name) {
			c.dims = append(c.dims, name)
		}
	}
	for d := range c.dims {
		c.byDimension = append(c.byDimension, d)
	}
	rank := func(d int) int { return slices.Index([]string{"memory", "cpu"}, c.dims[d]) }
	slices.SortFunc(c.byDimension, func(l, r int) int {
		return cmp.Or(cmp.Compare(rank(r), rank(l)), cmp.Compare(c.dims[l], c.dims[r]))
	})
	for _, name := range c.dims {
		unit := map[string]int64{"cpu": 1, "pods": 1, "memory": 1 << 20}[name]
		if unit == 0 {
			unit = 1000
		}
		for _, q := range settings.GetQuanta() {
			if q.GetName() == name {
				unit = int64(q.GetAmount())
			}
		}
		c.unit = append(c.unit, unit)
	}
	for _, set := range s.GetNodeSets() {
		c.sets[set.GetName()], c.tolerant[set.GetName()] = set.GetNodes(), set.GetToleratesCordon()
	}
	for i := range s.GetNodes() {
		c.byName = append(c.byName, i)
	}
	slices.SortFunc(c.byName, func(l, r int) int { return cmp.Compare(s.GetNodes()[l].GetName(), s.GetNodes()[r].GetName()) })
	c.grow()
	c.count()
	return c
}

// depth is the number of levels of queues below the root that take part.
const depth = 256

// grow builds the tree. A queue whose way up does not reach the root takes no part.
func (c *cluster) grow() {
	c.index = map[string]int{}
	for i, q := range c.GetQueues() {
		c.index[q.GetName()] = i
	}
	c.top = root
	if i, ok := c.index["root"]; ok {
		c.top = i
	}
	c.refused, c.parent, c.kids, c.order = map[int]apportionv1.HierarchyFault{}, map[int]int{}, map[int][]int{}, []int{c.top}
	for i := range c.GetQueues() {
		if fault := c.way(i); fault != 0 {
			c.refused[i] = fault
		} else if i != c.top {
			c.parent[i] = c.above(i)
			c.kids[c.parent[i]] = append(c.kids[c.parent[i]], i)
		}
	}
	for k := 0; k < len(c.order); k++ {
		slices.SortFunc(c.kids[c.order[k]], func(l, r int) int {
			return cmp.Or(cmp.Compare(c.GetQueues()[r].GetPriority(), c.GetQueues()[l].GetPriority()), cmp.Compare(c.age(l), c.age(r)),
				cmp.Compare(c.GetQueues()[l].GetName(), c.GetQueues()[r].GetName()))
		})
		c.order = append(c.order, c.kids[c.order[k]]...)
	}
	c.open, c.capability = map[int]bool{}, map[int][]int64{}
	for _, q := range c.order {
		var capability *apportionv1.Resource
		if q != root {
			capability = c.GetQueues()[q].GetCapability()
		}
		c.capability[q] = c.row(capability, math.Floor, unlimited)
		c.budgets(q)
		open := q == root || c.GetQueues()[q].GetState() <= apportionv1.QueueState_QUEUE_STATE_OPEN
		c.open[q] = open && (q == c.top || c.open[c.parent[q]])
	}
}

// above is the parent of a queue; aside if there is no such queue.
func (c *cluster) above(i int) int {
	name := c.GetQueues()[i].GetParent()
	if name == "" || name == "root" {
		return c.top
	}
	if up, ok := c.index[name]; ok {
		return up
	}
	return aside
}

// way returns why the way up from a queue does not reach the root; 0 if it does.
func (c *cluster) way(i int) apportionv1.HierarchyFault {
	steps := 0
	for ; i != c.top && steps <= len(c.GetQueues()); steps++ {
		if i = c.above(i); i == aside {
			return apportionv1.HierarchyFault_HIERARCHY_FAULT_UNKNOWN_PARENT
		}
	}
	switch {
	case i != c.top:
		return apportionv1.HierarchyFault_HIERARCHY_FAULT_CYCLE
	case steps > depth:
		return apportionv1.HierarchyFault_HIERARCHY_FAULT_TOO_DEEP
	}
	return 0
}

// age is when a queue was created; one whose time is not known comes last.
func (c *cluster) age(q int) int64 {
	if t := c.GetQueues()[q].GetCreateTime(); t != 0 {
		return t
	}
	return math.MaxInt64
}

// path lists a queue and all above it.
func (c *cluster) path(q int) []int {
	list := []int{q}
	for q != c.top {
		q = c.parent[q]
		list = append(list, q)
	}
	return list
}

// row is a resource by dimension of the answer.
func (c *cluster) row(r *apportionv1.Resource, round func(float64) float64, absent int64) []int64 {
	out := make([]int64, len(c.dims))
	for d := range out {
		out[d] = absent
	}
	for i, d := range r.GetDimension() {
		at := slices.Index(c.dims, c.GetDimensions()[d])
		if x := r.GetAmount()[i]; x > largest && absent == unlimited {
			out[at] = unlimited
		} else {
			out[at] = int64(round(min(x, largest)))
		}
	}
	return out
}

// limit is the amount that a queue states for a dimension, in quanta; absent if it states none.
func (c *cluster) limit(q, d int, field func(*apportionv1.Queue) *apportionv1.Resource, absent int64) int64 {
	if q == root {
		return absent
	}
	x := c.row(field(c.GetQueues()[q]), math.Floor, absent)[d]
	if x == unlimited || x < 0 {
		return x
	}
	return x / c.unit[d]
}

// nodeRow is what a node has if nothing runs on it.
func (c *cluster) nodeRow(n *apportionv1.Node) []int64 {
	row := c.row(n.GetAllocatable(), math.Floor, 0)
	add(row, c.row(n.GetUsedByOthers(), math.Ceil, 0), -1)
	return row
}

// takes reports whether a node takes new tasks that are restricted to a set.
func (c *cluster) takes(node int, set string) bool {
	closed := c.GetNodes()[node].GetUnschedulable()
	open := closed == nil || c.tolerant[set] && closed.GetCause() == apportionv1.UnschedulableCause_UNSCHEDULABLE_CAUSE_CORDONED
	return open && (set == "" || slices.Contains(c.sets[set], uint32(node)))
}

// reserved reports whether a node is kept as a whole, now or later: no job claims room there.
func (c *cluster) reserved(node int) bool {
	return slices.ContainsFunc(c.GetNodes()[node].GetReservations(), func(r *apportionv1.NodeReservation) bool {
		return r.GetRequest() == nil && (r.GetUntil() == 0 || r.GetUntil() > c.GetAsOf())
	})
}

// mayUse reports whether a node takes a task, and no part of it is kept for others while the task runs.
func (c *cluster) mayUse(node int, t *task) bool {
	return c.takes(node, t.set) && !c.kept(node, t, false)
}

// kept reports whether a node is kept for others while a task runs; whole: as a whole.
func (c *cluster) kept(node int, t *task, whole bool) bool {
	holder := nameOf(c.jobs[t.job].message)
	return slices.ContainsFunc(c.GetNodes()[node].GetReservations(), func(r *apportionv1.NodeReservation) bool {
		over := r.GetUntil() != 0 && r.GetUntil() <= c.GetAsOf()
		own := r.GetHolder() != "" && r.GetHolder() == holder
		return !over && !own && r.GetFrom() < c.endOf(t) && (!whole || r.GetRequest() == nil)
	})
}

// endOf returns when a task ends that starts now, the greatest time if that is not known.
func (c *cluster) endOf(t *task) int64 {
	j := c.jobs[t.job]
	end, runs := int64(math.MaxInt64), j.held > 0
	switch at := j.message.GetExpectedEnd(); {
	case at > c.GetAsOf() && (runs || j.message.GetEndIsDeadline()):
		end = at
	case at != 0 && runs:
		return end
	}
	if runtime := j.message.GetExpectedRuntime(); runtime > 0 && runtime < math.MaxInt64-max(c.GetAsOf(), 0) {
		end = min(end, c.GetAsOf()+runtime)
	}
	return end
}

func within(request, room []int64) bool {
	for d, x := range request {
		if x > 0 && x > room[d] {
			return false
		}
	}
	return true
}

func add(to, row []int64, times int64) {
	for d, x := range row {
		to[d] += times * x
	}
}

func sum(tasks []*task, width int) []int64 {
	all := make([]int64, width)
	for _, t := range tasks {
		add(all, t.request, 1)
	}
	return all
}
