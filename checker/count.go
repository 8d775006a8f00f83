package checker

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
	c.total, c.held, c.demand, c.free, c.future = zero(), map[int][]int64{}, map[int][]int64{}, map[int][]int64{}, map[int][]int64{}
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
		c.future[i] = slices.Clone(free)
		add(c.future[i], a.moved[i], 1)
		for d, x := range a.moved[i] {
			free[d] += min(0, x)
		}
		c.free[i] = free
	}
}

func (c *cluster) job(a *accounts, message *apportionv1.Job) {
	queue := c.index[message.GetQueue()]
	leaf := queue
	if c.refused[queue] != 0 || len(c.kids[queue]) > 0 {
		leaf = aside
	}
	j := &job{message: message, queue: queue, leaf: leaf, heldRow: make([]int64, len(c.dims)), asks: make([]int64, len(c.dims))}
	c.jobs = append(c.jobs, j)
	for _, g := range message.GetGroups() {
		for _, m := range g.GetTasks() {
			t := &task{
				message: m, job: len(c.jobs) - 1, leaf: leaf, node: m.Node, set: cmp.Or(m.GetDetail().GetNodeSet(), g.GetNodeSet()),
				priority: 1, created: m.GetCreateTime(), number: len(c.tasks), name: taskName(message, m),
				stated: g.GetRequest(), status: m.GetStatus(),
				preemptable: orEmpty(m.GetDetail()).Preemptable == nil || m.GetDetail().GetPreemptable(),
			}
			if m.Priority != nil {
				t.priority = m.GetPriority()
			}
			if own := m.GetDetail().GetRequest(); own != nil {
				t.stated = own
			}
			t.request = c.row(t.stated, math.Ceil, 0)
			c.tasks, j.tasks = append(c.tasks, t), append(j.tasks, t)
			if c.fits(a, t) {
				j.fitting++
				pending := m.GetStatus() <= apportionv1.TaskStatus_TASK_STATUS_PENDING
				if pending && m.GetDetail().GetGate() != apportionv1.TaskGate_TASK_GATE_OTHER {
					add(j.asks, t.request, 1)
				}
			}
			if c.book(a, j, t, m.GetStatus(), m.GetDetail().GetGate(), 1) {
				j.waiting = append(j.waiting, t)
			}
		}
		for _, m := range g.GetCounts() {
			t := &task{job: len(c.jobs) - 1, leaf: leaf, set: g.GetNodeSet(), request: c.row(g.GetRequest(), math.Ceil, 0)}
			before := j.held
			c.book(a, j, t, m.GetStatus(), m.GetGate(), int64(m.GetCount()))
			j.counted += j.held - before
		}
	}
	slices.SortFunc(j.waiting, func(l, r *task) int {
		return cmp.Or(cmp.Compare(r.priority, l.priority), cmp.Compare(l.created, r.created), cmp.Compare(l.number, r.number))
	})
}

// taskName is how a task is referred to: by its uid, or namespace/name.
func taskName(j *apportionv1.Job, t *apportionv1.Task) string {
	if t.GetUid() != "" || t.GetName() == "" || j.GetNamespace() == "" {
		return cmp.Or(t.GetUid(), t.GetName())
	}
	return j.GetNamespace() + "/" + t.GetName()
}

// book adds n equal tasks and reports whether they wait and count.
func (c *cluster) book(a *accounts, j *job, t *task, status apportionv1.TaskStatus, gate apportionv1.TaskGate, n int64) bool {
	pipelined, releasing := status == apportionv1.TaskStatus_TASK_STATUS_PIPELINED, status == apportionv1.TaskStatus_TASK_STATUS_RELEASING
	running := status == apportionv1.TaskStatus_TASK_STATUS_ALLOCATED || status >= apportionv1.TaskStatus_TASK_STATUS_BINDING &&
		status <= apportionv1.TaskStatus_TASK_STATUS_RUNNING
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
	if j.leaf == aside {
		return false
	}
	return c.want(a, j, t, n, running || pipelined, releasing, status <= apportionv1.TaskStatus_TASK_STATUS_PENDING &&
		gate != apportionv1.TaskGate_TASK_GATE_OTHER)
}

// want adds what n equal tasks hold and demand, and reports whether they wait and count.
func (c *cluster) want(a *accounts, j *job, t *task, n int64, held, releasing, pending bool) bool {
	counts := c.open[j.leaf] && c.fits(a, t)
	waits := counts && pending
	if held {
		add(c.held[j.leaf], t.request, n)
		add(j.heldRow, t.request, n)
		j.held += n
	}
	if held || waits || counts && releasing {
		add(c.demand[j.leaf], t.request, n)
	}
	return waits
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

// copyRooms returns rooms that can be changed.
func copyRooms(rooms map[int][]int64) map[int][]int64 {
	out := maps.Clone(rooms)
	for i := range out {
		out[i] = slices.Clone(out[i])
	}
	return out
}

// minimum is what a job needs to start, in whole amounts.
func (c *cluster) minimum(j *job) []int64 { return c.row(j.message.GetMinResources(), math.Ceil, 0) }
