package check

import (
	"cmp"
	"maps"
	"math"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// accounts are sums over the tasks that were read so far.
type accounts struct {
	offered         []([]int64)
	occupied, moved map[int][]int64
}

// count sums what tasks hold, demand, occupy and release.
func (c *cluster) count() {
	width := len(c.dims)
	zero := func() []int64 { return make([]int64, width) }
	a := accounts{occupied: map[int][]int64{root: zero()}, moved: map[int][]int64{root: zero()}}
	c.total, c.held, c.demand, c.future = zero(), map[int][]int64{}, map[int][]int64{}, map[int][]int64{}
	used := zero()
	for i, n := range c.GetNodes() {
		offered := c.row(n.GetAllocatable(), math.Floor, 0)
		a.offered = append(a.offered, offered)
		a.occupied[i], a.moved[i] = c.row(n.GetUsedByOthers(), math.Ceil, 0), zero()
		add(used, a.occupied[i], 1)
	}
	for d, x := range c.sumOfNodes() {
		c.total[d] = int64(math.Floor(min(x, largest)))
	}
	c.all = slices.Clone(c.total)
	add(c.all, used, -1)
	for _, q := range c.order {
		c.held[q], c.demand[q] = zero(), zero()
	}
	for _, j := range c.GetJobs() {
		c.job(&a, j)
	}
	for d := range c.all {
		c.all[d] = max(0, c.all[d])
	}
	for _, q := range slices.Backward(c.order[1:]) {
		add(c.held[c.parent[q]], c.held[q], 1)
		add(c.demand[c.parent[q]], c.demand[q], 1)
	}
	for i := range a.occupied {
		free := slices.Clone(c.all)
		if i != root {
			free = slices.Clone(a.offered[i])
		}
		add(free, a.occupied[i], -1)
		add(free, a.moved[i], 1)
		c.future[i] = free
	}
}

// sumOfNodes is the cluster's total in floating-point numbers: as stated, or what the nodes offer, added up in order of their names.
func (c *cluster) sumOfNodes() []float64 {
	list := []*apportionv1.Resource{c.GetTotal()}
	if c.GetTotal() == nil {
		list = nil
		byName := func(l, r *apportionv1.Node) int { return cmp.Compare(l.GetName(), r.GetName()) }
		for _, n := range slices.SortedStableFunc(slices.Values(c.GetNodes()), byName) {
			list = append(list, n.GetAllocatable())
		}
	}
	return c.sumOf(list...)
}

// sumOf adds resources of the snapshot up in their order, in floating-point numbers, as the engine does.
func (c *cluster) sumOf(resources ...*apportionv1.Resource) []float64 {
	out := make([]float64, len(c.dims))
	for _, r := range resources {
		for i, d := range r.GetDimensions() {
			out[slices.Index(c.dims, c.GetDimensions()[d])] += r.GetAmounts()[i]
		}
	}
	return out
}

func (c *cluster) job(a *accounts, message *apportionv1.Job) {
	queue := c.index[message.GetQueue()]
	leaf := queue
	if !c.participates(queue) || len(c.kids[queue]) > 0 {
		leaf = aside
	}
	j := &job{message: message, queue: queue, leaf: leaf}
	c.jobs = append(c.jobs, j)
	for _, g := range message.GetGroups() {
		for _, m := range g.GetTasks() {
			t := &task{
				job: len(c.jobs) - 1, leaf: leaf, node: m.Node, set: cmp.Or(m.GetDetail().GetNodeSet(), g.GetNodeSet()),
				number: len(c.tasks), name: referred(m.GetUid(), message.GetNamespace(), m.GetName()),
				stated: g.GetRequest(), status: m.GetStatus(),
				preemptable: orEmpty(m.GetDetail()).Preemptable == nil || m.GetDetail().GetPreemptable(),
			}
			if own := m.GetDetail().GetRequest(); own != nil {
				t.stated = own
			}
			t.request = c.row(t.stated, math.Ceil, 0)
			c.tasks, j.tasks = append(c.tasks, t), append(j.tasks, t)
			c.book(a, j, t, m.GetStatus(), m.GetDetail().GetGate(), 1)
		}
		for _, m := range g.GetCounts() {
			t := &task{job: len(c.jobs) - 1, leaf: leaf, set: g.GetNodeSet(), request: c.row(g.GetRequest(), math.Ceil, 0)}
			c.book(a, j, t, m.GetStatus(), m.GetGate(), int64(m.GetCount()))
		}
	}
}

// nameOf is how a job is referred to.
func nameOf(j *apportionv1.Job) string { return referred(j.GetUid(), j.GetNamespace(), j.GetName()) }

// referred is how an object is referred to: by its uid, or namespace/name.
func referred(uid, namespace, name string) string {
	if uid != "" || name == "" || namespace == "" {
		return cmp.Or(uid, name)
	}
	return namespace + "/" + name
}

// isRunning reports whether a task of a status holds what it asks for on its node.
func isRunning(s apportionv1.TaskStatus) bool {
	return s == apportionv1.TaskStatus_TASK_STATUS_ALLOCATED ||
		s >= apportionv1.TaskStatus_TASK_STATUS_BINDING && s <= apportionv1.TaskStatus_TASK_STATUS_RUNNING
}

// book adds n equal tasks to what is occupied and released, and to what queues hold and demand.
func (c *cluster) book(a *accounts, j *job, t *task, status apportionv1.TaskStatus, gate apportionv1.TaskGate, n int64) {
	pipelined, releasing := status == apportionv1.TaskStatus_TASK_STATUS_PIPELINED, status == apportionv1.TaskStatus_TASK_STATUS_RELEASING
	running := isRunning(status)
	places := []int{root}
	if t.node != nil {
		places = append(places, int(*t.node))
	}
	for _, place := range places {
		if running || releasing {
			if j.leaf == aside && place == root {
				add(c.all, t.request, -n)
				continue
			}
			add(a.occupied[place], t.request, n)
		}
		switch {
		case j.leaf == aside:
		case releasing:
			add(a.moved[place], t.request, n)
		case pipelined:
			add(a.moved[place], t.request, -n)
		}
	}
	if running || status == apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED {
		j.ready += n
	}
	if running || pipelined {
		j.held += n
	}
	if j.leaf != aside {
		c.want(a, t, status, gate, n)
	}
}

// want adds n equal tasks to what their queue holds and demands.
func (c *cluster) want(a *accounts, t *task, status apportionv1.TaskStatus, gate apportionv1.TaskGate, n int64) {
	held := isRunning(status) || status == apportionv1.TaskStatus_TASK_STATUS_PIPELINED
	waits := status <= apportionv1.TaskStatus_TASK_STATUS_PENDING && gate != apportionv1.TaskGate_TASK_GATE_OTHER
	if held {
		add(c.held[t.leaf], t.request, n)
	}
	if waits = waits || status == apportionv1.TaskStatus_TASK_STATUS_RELEASING; held || waits && c.open[t.leaf] && c.fits(a, t) {
		add(c.demand[t.leaf], t.request, n)
	}
}

// fits reports whether a task fits some node that it may use, were it empty, or the cluster where there are no nodes.
func (c *cluster) fits(a *accounts, t *task) bool {
	for i, offered := range a.offered {
		if c.takes(i, t.set) && within(t.request, offered) {
			return true
		}
	}
	return len(a.offered) == 0 && within(t.request, c.total)
}

// copyRows returns rows that can be changed.
func copyRows(rows map[int][]int64) map[int][]int64 {
	out := maps.Clone(rows)
	for i := range out {
		out[i] = slices.Clone(out[i])
	}
	return out
}
