package reference

import (
	"cmp"
	"context"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// fairCluster is a scheduler's view of a cluster: its tasks, and the free room.
type fairCluster struct {
	*fairAsked
	tasks []fairTask
	// jobs are the tasks with numbers of each job.
	jobs [][]uint32
	open []bool
}

// fairTask is one task with a number. Requests are by dimension as the snapshot names them.
type fairTask struct {
	uid      string
	job      *apportionv1.Job
	aside    bool
	status   apportionv1.TaskStatus
	node     int
	gated    bool
	priority int32
	created  int64
	request  []float64
	fits     bool
}

func newFairCluster(a *fairAsked) fairCluster {
	c := fairCluster{fairAsked: a}
	for i, j := range a.snapshot.GetJobs() {
		c.jobs = append(c.jobs, nil)
		aside := a.refused[a.queues[j.GetQueue()]]
		for _, g := range j.GetGroups() {
			for _, t := range g.GetTasks() {
				c.jobs[i] = append(c.jobs[i], uint32(len(c.tasks)))
				c.tasks = append(c.tasks, c.task(j, g, t, aside))
			}
		}
	}
	for q := range a.snapshot.GetQueues() {
		c.open = append(c.open, c.isOpen(uint32(q)))
	}
	return c
}

func (c *fairCluster) task(j *apportionv1.Job, g *apportionv1.TaskGroup, t *apportionv1.Task, aside bool) fairTask {
	request := g.GetRequest()
	if own := t.GetDetail().GetRequest(); own != nil {
		request = own
	}
	task := fairTask{
		uid: t.GetUid(), job: j, aside: aside, status: taskStatus(t), node: -1, priority: 1, created: t.GetCreateTime(),
		gated: t.GetDetail().GetGate() == apportionv1.TaskGate_TASK_GATE_OTHER, request: c.amounts(request),
	}
	if t.Node != nil {
		task.node = int(t.GetNode())
	}
	if t.Priority != nil {
		task.priority = t.GetPriority()
	}
	for _, n := range c.snapshot.GetNodes() {
		task.fits = task.fits || covers(c.amounts(n.GetAllocatable()), task.request)
	}
	if len(c.snapshot.GetNodes()) == 0 {
		task.fits = covers(c.amounts(c.snapshot.GetTotal()), task.request)
	}
	return task
}

// amounts is a resource by dimension of the snapshot.
func (c *fairCluster) amounts(r *apportionv1.Resource) []float64 {
	row := make([]float64, len(c.snapshot.GetDimensions()))
	for i, d := range r.GetDimensions() {
		row[d] = r.GetAmounts()[i]
	}
	return row
}

// covers reports whether room suffices for a request in every dimension that it requests.
func covers(room, request []float64) bool {
	for d, x := range request {
		if x > 0 && x > room[d] {
			return false
		}
	}
	return true
}

func (c *fairCluster) isOpen(q uint32) bool {
	for range c.snapshot.GetQueues() {
		queue := c.snapshot.GetQueues()[q]
		if s := queue.GetState(); s != apportionv1.QueueState_QUEUE_STATE_UNSPECIFIED && s != apportionv1.QueueState_QUEUE_STATE_OPEN {
			return false
		}
		parent := cmp.Or(queue.GetParent(), rootName)
		above, ok := c.queues[parent]
		if !ok || queue.GetName() == rootName {
			return true
		}
		q = above
	}
	return true
}

// blocks lists what a queue waits for: job by job the rest of the gang, then, unless that waits, single tasks.
func (c *fairCluster) blocks(ctx context.Context, q uint32) ([][]uint32, error) {
	var jobs []int
	for i, j := range c.snapshot.GetJobs() {
		if c.queues[j.GetQueue()] == q && c.open[q] {
			jobs = append(jobs, i)
		}
	}
	slices.SortFunc(jobs, func(l, r int) int {
		lj, rj := c.snapshot.GetJobs()[l], c.snapshot.GetJobs()[r]
		return cmp.Or(cmp.Compare(rj.GetPriority(), lj.GetPriority()), cmp.Compare(lj.GetCreateTime(), rj.GetCreateTime()),
			cmp.Compare(lj.GetUid(), rj.GetUid()))
	})
	if c.owners && c.open[q] {
		sorted, err := c.jobsInOrder(ctx, c.queueName(q))
		if err != nil {
			return nil, err
		}
		jobs = jobs[:0]
		for _, j := range sorted {
			jobs = append(jobs, int(j))
		}
	}
	var blocks [][]uint32
	for _, i := range jobs {
		blocks = append(blocks, c.blocksOf(i)...)
	}
	return blocks, nil
}

func (c *fairCluster) blocksOf(job int) [][]uint32 {
	var waiting []uint32
	held := 0
	for _, t := range c.jobs[job] {
		task := &c.tasks[t]
		switch {
		case isHeld(task.status):
			held++
		case task.status == apportionv1.TaskStatus_TASK_STATUS_PENDING && !task.gated && task.fits:
			waiting = append(waiting, t)
		}
	}
	for _, g := range c.snapshot.GetJobs()[job].GetGroups() {
		for _, count := range g.GetCounts() {
			if isHeld(count.GetStatus()) {
				held += int(count.GetCount())
			}
		}
	}
	slices.SortFunc(waiting, func(l, r uint32) int {
		lt, rt := &c.tasks[l], &c.tasks[r]
		return cmp.Or(cmp.Compare(rt.priority, lt.priority), cmp.Compare(lt.created, rt.created), cmp.Compare(l, r))
	})
	gang := max(0, int(c.snapshot.GetJobs()[job].GetMinAvailable())-held)
	switch {
	case gang > len(waiting):
		return nil
	case gang > 0:
		return [][]uint32{waiting[:gang]}
	}
	var blocks [][]uint32
	for i := range waiting {
		blocks = append(blocks, waiting[i:i+1])
	}
	return blocks
}

func isHeld(s apportionv1.TaskStatus) bool {
	return isRunning(s) || s == apportionv1.TaskStatus_TASK_STATUS_PIPELINED
}

func isRunning(s apportionv1.TaskStatus) bool {
	switch s { //nolint:exhaustive // The others do not run.
	case apportionv1.TaskStatus_TASK_STATUS_ALLOCATED, apportionv1.TaskStatus_TASK_STATUS_BINDING, apportionv1.TaskStatus_TASK_STATUS_BOUND,
		apportionv1.TaskStatus_TASK_STATUS_RUNNING:
		return true
	}
	return false
}

// firstFit puts each task on the first node that is free for it; without nodes the cluster is the room.
func (c *fairCluster) firstFit(block []uint32) ([]uint32, bool) {
	cluster, rooms := c.free()
	nodes := []uint32{}
	for _, t := range block {
		request := c.tasks[t].request
		n := slices.IndexFunc(rooms, func(room []float64) bool { return covers(room, request) })
		if !covers(cluster, request) || n < 0 && len(rooms) > 0 {
			return nil, false
		}
		take(cluster, request, 1)
		if n >= 0 {
			take(rooms[n], request, 1)
			nodes = append(nodes, uint32(n))
		}
	}
	return nodes, true
}

func take(room, request []float64, n float64) {
	for d, x := range request {
		room[d] -= n * x
	}
}

// usage is the used, the released and the promised part of a room.
type usage struct{ idle, releasing, pipelined []float64 }

func (c *fairCluster) newUsage(offered []float64) *usage {
	return &usage{offered, make([]float64, len(offered)), make([]float64, len(offered))}
}

// add counts n tasks.
func (u *usage) add(status apportionv1.TaskStatus, request []float64, aside bool, n float64) {
	if isRunning(status) || status == apportionv1.TaskStatus_TASK_STATUS_RELEASING {
		take(u.idle, request, n)
	}
	switch {
	case aside:
	case status == apportionv1.TaskStatus_TASK_STATUS_RELEASING:
		take(u.releasing, request, -n)
	case status == apportionv1.TaskStatus_TASK_STATUS_PIPELINED:
		take(u.pipelined, request, -n)
	}
}

func (u *usage) free() []float64 {
	row := make([]float64, len(u.idle))
	for d := range row {
		row[d] = min(u.idle[d], u.idle[d]+u.releasing[d]-u.pipelined[d])
	}
	return row
}

// free returns what is free of the cluster and of each node.
func (c *fairCluster) free() (cluster []float64, nodes [][]float64) {
	all := c.newUsage(c.total())
	var rooms []*usage
	for _, n := range c.snapshot.GetNodes() {
		room := c.newUsage(c.amounts(n.GetAllocatable()))
		take(room.idle, c.amounts(n.GetUsedByOthers()), 1)
		rooms = append(rooms, room)
	}
	for i := range c.tasks {
		t := &c.tasks[i]
		all.add(t.status, t.request, t.aside, 1)
		if t.node >= 0 {
			rooms[t.node].add(t.status, t.request, t.aside, 1)
		}
	}
	for _, j := range c.snapshot.GetJobs() {
		for _, g := range j.GetGroups() {
			for _, count := range g.GetCounts() {
				all.add(count.GetStatus(), c.amounts(g.GetRequest()), c.refused[c.queues[j.GetQueue()]], float64(count.GetCount()))
			}
		}
	}
	for _, room := range rooms {
		nodes = append(nodes, room.free())
	}
	return all.free(), nodes
}

// total is the snapshot's, less what others use.
func (c *fairCluster) total() []float64 {
	total := make([]float64, len(c.snapshot.GetDimensions()))
	for _, n := range c.snapshot.GetNodes() {
		take(total, c.amounts(n.GetAllocatable()), -1)
	}
	if c.snapshot.GetTotal() != nil {
		total = c.amounts(c.snapshot.GetTotal())
	}
	for _, n := range c.snapshot.GetNodes() {
		take(total, c.amounts(n.GetUsedByOthers()), 1)
	}
	return total
}
