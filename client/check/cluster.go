package check

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
	stated  *apportionv1.Resource
	request []int64
	job     int
	leaf    int
	node    *uint32
	set     string
	number  int
	// name is its uid, or namespace/name.
	name        string
	status      apportionv1.TaskStatus
	preemptable bool
}

// job is a job with its tasks that have numbers. Queue is its queue, also if it is set aside; leaf is then aside.
type job struct {
	message     *apportionv1.Job
	queue, leaf int
	// held counts the tasks that hold something, ready those that run or have succeeded.
	held, ready int64
	tasks       []*task
}

// cluster is a snapshot: its tree, and what tasks hold, demand, occupy and release, in whole amounts. Queues are known by index.
type cluster struct {
	*apportionv1.Snapshot

	settings *apportionv1.Fair
	dims     []string
	unit     []int64
	top      int
	index    map[string]int
	// parent has the queues that take part; kids lists them in rank.
	parent map[int]int
	kids   map[int][]int
	// order lists the queues that take part, parents first.
	order []int
	// capability is by queue, in raw amounts.
	capability map[int][]int64
	open       map[int]bool
	// all is the amount that is divided among the queues.
	all, total   []int64
	held, demand map[int][]int64
	// future is what will be free once all that is being released is, by node; of the cluster under root.
	future   map[int][]int64
	sets     map[string][]uint32
	tolerant map[string]bool
	tasks    []*task
	jobs     []*job
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
	c.parent, c.kids, c.order = map[int]int{}, map[int][]int{}, []int{c.top}
	for i := range c.GetQueues() {
		if c.reaches(i) && i != c.top {
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

// reaches reports whether the way up from a queue reaches the root, so that the queue takes part.
func (c *cluster) reaches(i int) bool {
	steps := 0
	for ; i != c.top && i != aside && steps <= depth; steps++ {
		i = c.above(i)
	}
	return i == c.top && steps <= depth
}

// participates reports whether a queue takes part in the division.
func (c *cluster) participates(q int) bool {
	_, below := c.parent[q]
	return below || q == c.top
}

// age is when a queue was created; one whose time is not known comes last.
func (c *cluster) age(q int) int64 {
	if t := c.GetQueues()[q].GetCreateTime(); t != 0 {
		return t
	}
	return math.MaxInt64
}

// weight is the weight of a queue; 1 if none is stated.
func (c *cluster) weight(q int) int64 {
	if q == root || c.GetQueues()[q].Weight == nil {
		return 1
	}
	return int64(c.GetQueues()[q].GetWeight())
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
	for i, d := range r.GetDimensions() {
		at := slices.Index(c.dims, c.GetDimensions()[d])
		if x := r.GetAmounts()[i]; x > largest && absent == unlimited {
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

// takes reports whether a node takes new tasks that are restricted to a set.
func (c *cluster) takes(node int, set string) bool {
	closed := c.GetNodes()[node].GetUnschedulable()
	open := closed == nil || c.tolerant[set] && closed.GetCause() == apportionv1.UnschedulableCause_UNSCHEDULABLE_CAUSE_CORDONED
	return open && (set == "" || slices.Contains(c.sets[set], uint32(node)))
}

// within reports whether a room has what a request asks for.
func within(request, room []int64) bool {
	for d, x := range request {
		if x > 0 && x > room[d] {
			return false
		}
	}
	return true
}

// add adds a row to another, several times.
func add(to, row []int64, times int64) {
	for d, x := range row {
		to[d] += times * x
	}
}

// tasksOf returns the tasks of a selection by number or name; false if some are not in the snapshot.
func (c *cluster) tasksOf(tasks *apportionv1.Selector) (list []*task, ok bool) {
	for _, i := range tasks.GetIndices() {
		if int(i) >= len(c.tasks) {
			return nil, false
		}
		list = append(list, c.tasks[i])
	}
	for _, name := range tasks.GetNames() {
		at := slices.IndexFunc(c.tasks, func(t *task) bool { return t.name == name })
		if at < 0 || name == "" {
			return nil, false
		}
		list = append(list, c.tasks[at])
	}
	return list, true
}
