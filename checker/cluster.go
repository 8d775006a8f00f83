// Package checker checks whether the numbers of plugin `fair` in an answer follow from the snapshot by the rules of docs/fair.md. It shares
// no code with the engine, so that a fault in one is not a fault in the other. check_fair.py and check_plan.py do the same in Python.
package checker

import (
	"cmp"
	"math"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// unlimited is a capability without a limit; root is a root that is not a queue, aside the leaf of a job that is set aside.
const (
	unlimited = math.MaxInt64
	root      = -1
	aside     = -2
)

// task is one task, or several equal ones, as far as `fair` looks at it.
type task struct {
	request  []int64
	job      int
	leaf     int
	node     *uint32
	set      string
	priority int32
	created  int64
	number   int
	uid      string
}

// job is a job with its tasks that wait and count.
type job struct {
	message *apportionv1.Job
	leaf    int
	held    int64
	waiting []*task
}

// cluster is a snapshot: its tree, and what tasks hold, demand, occupy and release, in whole amounts. Queues are known by index.
type cluster struct {
	*apportionv1.Snapshot

	settings *apportionv1.Fair
	dims     []string
	unit     []int64
	top      int
	parent   map[int]int
	kids     map[int][]int
	// order lists the queues that take part, parents first.
	order []int
	open  map[int]bool
	// all is what there is to divide.
	all, total   []int64
	held, demand map[int][]int64
	// free is what can be given away now, by node; of the cluster under root.
	free  map[int][]int64
	sets  map[string][]uint32
	tasks []*task
	jobs  []*job
}

func read(s *apportionv1.Snapshot, settings *apportionv1.Fair, dims []string) *cluster {
	c := &cluster{Snapshot: s, settings: settings, dims: dims, sets: map[string][]uint32{}}
	for _, name := range dims {
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
		c.sets[set.GetName()] = set.GetNodes()
	}
	c.grow()
	c.count()
	return c
}

// grow builds the tree. A queue whose way up does not reach the root takes no part.
func (c *cluster) grow() {
	index := map[string]int{}
	for i, q := range c.GetQueues() {
		index[q.GetName()] = i
	}
	c.top = root
	if i, ok := index["root"]; ok {
		c.top = i
	}
	above := func(i int) int {
		name := c.GetQueues()[i].GetParent()
		if name == "" || name == "root" {
			return c.top
		}
		if up, ok := index[name]; ok {
			return up
		}
		return aside
	}
	c.parent, c.kids, c.order = map[int]int{}, map[int][]int{}, []int{c.top}
	for i := range c.GetQueues() {
		at := i
		for steps := 0; at != c.top && at != aside && steps <= len(c.GetQueues()); steps++ {
			at = above(at)
		}
		if at == c.top && i != c.top {
			c.parent[i] = above(i)
			c.kids[above(i)] = append(c.kids[above(i)], i)
		}
	}
	for k := 0; k < len(c.order); k++ {
		slices.SortFunc(c.kids[c.order[k]], func(l, r int) int {
			return cmp.Or(cmp.Compare(c.GetQueues()[r].GetPriority(), c.GetQueues()[l].GetPriority()), cmp.Compare(c.age(l), c.age(r)),
				cmp.Compare(c.GetQueues()[l].GetName(), c.GetQueues()[r].GetName()))
		})
		c.order = append(c.order, c.kids[c.order[k]]...)
	}
	c.open = map[int]bool{}
	for _, q := range c.order {
		open := q == root || c.GetQueues()[q].GetState() <= apportionv1.QueueState_QUEUE_STATE_OPEN
		c.open[q] = open && (q == c.top || c.open[c.parent[q]])
	}
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
		if x := r.GetAmount()[i]; math.IsInf(x, 1) {
			out[at] = unlimited
		} else {
			out[at] = int64(round(x))
		}
	}
	return out
}

// limit is what a queue states of a dimension in quanta; absent where it states nothing.
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
	return c.GetNodes()[node].GetUnschedulable() == nil && (set == "" || slices.Contains(c.sets[set], uint32(node)))
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
