package agreement_test

import (
	"fmt"

	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// dice draws the parts of a cluster.
type dice struct{ *rapid.T }

func (d dice) between(least, most int) int { return rapid.IntRange(least, most).Draw(d.T, "n") }

func (d dice) chance(percent int) bool { return d.between(0, 99) >= 100-percent }

// amounts are cpu in cores, and GPUs.
func amounts(cpu, gpu int) *apportionv1.Resource {
	return &apportionv1.Resource{Dimensions: []uint32{0, 1}, Amounts: []float64{1000 * float64(cpu), 1000 * float64(gpu)}}
}

// cluster is a snapshot while it is put together.
type cluster struct {
	dice
	*apportionv1.Snapshot

	// cpu and gpu are the free amounts of the nodes.
	cpu, gpu []int
	leaves   []string
	// ending: all tasks of the job that run are being released.
	ending bool
}

// now is the time of every cluster.
const now = 1_000_000

// clusters draws small busy clusters: flat and nested queues, nodes of several shapes, gangs with roles of which some tasks are gated,
// counted, restricted to nodes, placed by constraints that nothing judges, or more than the minimum, tasks and whole jobs that are being
// released, and running tasks of which some are protected. Some clusters have no nodes, or only nodes without allocatable amounts.
var clusters = rapid.Custom(func(t *rapid.T) *apportionv1.Snapshot {
	c := cluster{dice: dice{t}, Snapshot: &apportionv1.Snapshot{AsOf: now, Dimensions: []string{"cpu", "nvidia.com/gpu"}}}
	c.NodeSets = []*apportionv1.NodeSet{{Name: "some", Rule: "node selector zone=a"}}
	for n := range c.between(1, 4) * min(c.between(0, 24), 1) {
		c.node(n)
	}
	if c.chance(4) {
		// The nodes do not state what they offer.
		for _, node := range c.Nodes {
			node.Allocatable = nil
		}
	}
	if c.chance(4) {
		c.Total = amounts(c.between(2, 20), c.between(0, 6))
	}
	c.queues()
	for j := range c.between(2, 6) {
		c.job(j)
	}
	return c.Snapshot
})

// obstruct changes a cluster so that no node takes the waiting jobs, even if it is empty, and so that their queues lack quota: of every other
// job the tasks ask for more than any node offers, those of the others tolerate none.
func obstruct(s *apportionv1.Snapshot) {
	s.NodeSets = append(s.NodeSets, &apportionv1.NodeSet{Name: "none", Rule: "taint closed"})
	used := map[string]bool{}
	for i, job := range s.GetJobs() {
		used[job.GetQueue()] = true
		if job.GetPhase() == apportionv1.JobPhase_JOB_PHASE_RUNNING {
			continue
		}
		for _, group := range job.GetGroups() {
			if i%2 == 0 {
				group.NodeSet = "none"
			} else {
				group.Request = amounts(9, 1)
			}
		}
	}
	for _, queue := range s.GetQueues() {
		if used[queue.GetName()] {
			queue.Capability, queue.Guarantee = amounts(2, 1), nil
		}
	}
}

func (c *cluster) node(n int) {
	cpu, gpu := c.between(2, 8), c.between(0, 3)
	node := &apportionv1.Node{Name: fmt.Sprintf("n%d", n), Allocatable: amounts(cpu, gpu)}
	if c.chance(8) {
		node.Unschedulable = &apportionv1.NodeUnschedulable{Cause: apportionv1.UnschedulableCause_UNSCHEDULABLE_CAUSE_CORDONED}
	}
	if c.chance(10) {
		node.UsedByOthers = amounts(1, 0)
		cpu--
	}
	if c.chance(50) {
		node.Group = new([]string{"a", "b"}[c.between(0, 1)])
	}
	c.cpu, c.gpu = append(c.cpu, cpu), append(c.gpu, gpu)
	c.Nodes = append(c.Nodes, node)
	if c.chance(50) {
		c.NodeSets[0].Nodes = append(c.NodeSets[0].Nodes, uint32(n))
	}
}

func (c *cluster) queues() {
	if c.chance(50) {
		for q := range c.between(1, 3) {
			c.queue(fmt.Sprintf("q%d", q), "", "root", true)
		}
		return
	}
	c.Queues = append(c.Queues, &apportionv1.Queue{Name: "root"})
	for p := range c.between(1, 2) {
		parent := fmt.Sprintf("p%d", p)
		c.queue(parent, "root", "root", false)
		for q := range c.between(1, 2) {
			c.queue(fmt.Sprintf("q%d%d", p, q), parent, "root/"+parent, true)
		}
	}
}

func (c *cluster) queue(name, parent, path string, leaf bool) {
	queue := &apportionv1.Queue{Name: name, Parent: parent, Weight: new(uint32(c.between(1, 3))), CreateTime: int64(c.between(0, 2))}
	most := 6 * max(len(c.Nodes), 1)
	if c.chance(50) {
		queue.Deserved = amounts(c.between(1, most), c.between(0, 2*len(c.Nodes)))
	}
	if c.chance(20) {
		queue.Capability = amounts(c.between(2, most), c.between(1, 3*max(len(c.Nodes), 1)))
	} else if c.chance(8) {
		queue.Capability = amounts(max(c.between(-most, most), 0), c.between(0, 1))
	}
	if leaf && c.chance(15) {
		queue.Guarantee = amounts(c.between(1, 2), 0)
	}
	if leaf && c.chance(10) {
		queue.Reclaimable = new(false)
	}
	if leaf && c.chance(5) {
		queue.State = apportionv1.QueueState_QUEUE_STATE_CLOSED
	}
	if leaf && c.chance(15) {
		queue.NodeGroupAffinity = &apportionv1.NodeGroupAffinity{Affinity: &apportionv1.NodeGroupTerms{RequiredGroups: []string{"a"}}}
	}
	if leaf && c.chance(50) {
		queue.FairShareHierarchy = &apportionv1.FairShareHierarchy{Path: path + "/" + name, Weights: "1/1/1"}
	}
	c.Queues = append(c.Queues, queue)
	if leaf {
		c.leaves = append(c.leaves, name)
	}
}

func (c *cluster) job(j int) {
	waits := j > 0 && c.chance(60)
	job := &apportionv1.Job{
		Uid: fmt.Sprintf("u%d", j), Name: fmt.Sprintf("j%d", j), Namespace: "ns", Queue: c.leaves[c.between(0, len(c.leaves)-1)],
		Priority: int32(c.between(0, 2)), MinAvailable: uint32(c.between(0, 3)), Phase: apportionv1.JobPhase_JOB_PHASE_INQUEUE,
		CreateTime: int64(c.between(0, 3)),
	}
	if !waits {
		job.Phase = apportionv1.JobPhase_JOB_PHASE_RUNNING
		if c.chance(50) {
			job.ExpectedEnd = now + int64(c.between(-1, 5))
		}
	} else if c.chance(35) {
		job.Phase = apportionv1.JobPhase_JOB_PHASE_PENDING
		if c.chance(70) {
			job.MinResources = amounts(c.between(1, 8), c.between(0, 2))
		}
	}
	c.Jobs = append(c.Jobs, job)
	if waits && c.chance(4) {
		return
	}
	c.ending = !waits && c.chance(12)
	for g := range c.between(1, 3) {
		job.Groups = append(job.Groups, c.group(job, g, waits))
	}
}

func (c *cluster) group(job *apportionv1.Job, g int, waits bool) *apportionv1.TaskGroup {
	group := &apportionv1.TaskGroup{Role: fmt.Sprintf("r%d", g)}
	cpu, gpu := c.between(1, 4), max(c.between(-3, 2), 0)
	if !c.chance(3) {
		group.Request = amounts(cpu, gpu)
	}
	if c.chance(25) {
		group.MinAvailable = new(uint32(c.between(1, 2)))
	}
	if c.chance(12) {
		group.NodeSet = "some"
	}
	if waits && c.chance(3) {
		group.Counts = []*apportionv1.TaskCount{{Count: uint32(c.between(1, 2))}}
	}
	if waits && c.chance(8) {
		group.UnjudgedConstraints = []apportionv1.PlacementConstraint{apportionv1.PlacementConstraint(c.between(1, 6))}
	}
	for k := range c.between(1, 3) {
		group.Tasks = append(group.Tasks, c.task(fmt.Sprintf("%s-%d-%d", job.GetUid(), g, k), cpu, gpu, waits))
	}
	return group
}

// task draws a task: a waiting task, or a task on a node with room; without such a node it waits.
func (c *cluster) task(uid string, cpu, gpu int, waits bool) *apportionv1.Task {
	task := &apportionv1.Task{
		Uid: uid, Name: uid, Priority: new(int32(c.between(0, 1))), CreateTime: int64(c.between(0, 3)), Detail: &apportionv1.TaskDetail{},
	}
	if c.chance(12) {
		task.Detail.Preemptable = new(false)
	}
	if c.chance(5) {
		task.Detail.PriorityClass = "system-node-critical"
	}
	if c.chance(8) {
		task.Detail.ScheduleTime, task.Detail.Cooldown = new(int64(now-1)), new(int64(c.between(0, 3)))
	}
	if len(c.cpu) == 0 {
		return task
	}
	n := c.between(0, len(c.cpu)-1)
	switch room := c.cpu[n] >= cpu && c.gpu[n] >= gpu; {
	case room && (!waits || c.chance(8)):
		c.cpu[n] -= cpu
		c.gpu[n] -= gpu
		task.Node, task.Status = new(uint32(n)), apportionv1.TaskStatus_TASK_STATUS_RUNNING
		if c.ending || c.chance(15) {
			task.Status = apportionv1.TaskStatus_TASK_STATUS_RELEASING
		} else if c.chance(5) {
			task.Status = apportionv1.TaskStatus_TASK_STATUS_BOUND
		}
	case c.chance(3):
		task.Node, task.Status = new(uint32(n)), apportionv1.TaskStatus_TASK_STATUS_PIPELINED
	case waits && c.chance(3):
		task.Status = apportionv1.TaskStatus_TASK_STATUS_FAILED
	case c.chance(8):
		task.Detail.Gate = apportionv1.TaskGate_TASK_GATE_OTHER
	case c.chance(10):
		task.Detail.Request = amounts(c.between(1, 6), gpu)
	}
	return task
}
