// Package diagnosis asks all that decides whether a job goes on, and says what holds it back.
package diagnosis

import (
	"github.com/apportion/apportion/client/lookup"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Case is a job that somebody asks about.
type Case struct {
	Snapshot *lookup.Snapshot
	Index    uint32
	Job      *apportionv1.Job
	// Waiting are the pending tasks that are not gated, Gated those that something else holds back.
	Waiting, Gated []lookup.Task
	// Counted is how many more wait without being listed one by one, so that nobody can ask about each.
	Counted uint32
	// Needed are the waiting tasks that the gang needs at least.
	Needed []lookup.Task
	// Samples have one waiting task for each role and request.
	Samples []lookup.Task
}

// Of looks at a job of the snapshot.
func Of(snapshot *lookup.Snapshot, index uint32) *Case {
	c := &Case{Snapshot: snapshot, Index: index, Job: snapshot.GetJobs()[index]}
	placed := uint32(0)
	sampled := make(map[*apportionv1.Resource]bool)
	for _, task := range snapshot.TasksOf(index) {
		switch {
		case !task.Pending():
			if occupies(task.GetStatus()) {
				placed++
			}
			continue
		case task.GetDetail().GetGate() != apportionv1.TaskGate_TASK_GATE_UNSPECIFIED:
			c.Gated = append(c.Gated, task)
			continue
		}
		c.Waiting = append(c.Waiting, task)
		if request := task.Request(); !sampled[request] {
			sampled[request] = true
			c.Samples = append(c.Samples, task)
		}
	}
	for _, group := range c.Job.GetGroups() {
		for _, count := range group.GetCounts() {
			if isPending(count.GetStatus()) && count.GetGate() == apportionv1.TaskGate_TASK_GATE_UNSPECIFIED {
				c.Counted += count.GetCount()
			}
		}
	}
	needed := len(c.Waiting)
	if minimum := c.Job.GetMinAvailable(); placed >= minimum {
		needed = min(needed, 1)
	} else {
		needed = min(needed, int(minimum-placed))
	}
	c.Needed = c.Waiting[:needed]
	return c
}

func isPending(status apportionv1.TaskStatus) bool {
	return status == apportionv1.TaskStatus_TASK_STATUS_PENDING || status == apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED
}

// occupies says whether a task in this status counts towards the gang's minimum.
func occupies(status apportionv1.TaskStatus) bool {
	switch status {
	case apportionv1.TaskStatus_TASK_STATUS_ALLOCATED, apportionv1.TaskStatus_TASK_STATUS_PIPELINED,
		apportionv1.TaskStatus_TASK_STATUS_BINDING, apportionv1.TaskStatus_TASK_STATUS_BOUND,
		apportionv1.TaskStatus_TASK_STATUS_RUNNING, apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED:
		return true
	default:
		return false
	}
}

// maxSamples bounds for how many kinds of tasks nodes and victims are asked.
const maxSamples = 4

// Steps asks what decides about the job; mark is the number that the next mark gets.
func (c *Case) Steps(mark uint32) []*apportionv1.Step {
	jobs := &apportionv1.Jobs{Index: []uint32{c.Index}}
	steps := []*apportionv1.Step{
		{Step: &apportionv1.Step_Inspect{Inspect: &apportionv1.InspectStep{Nodes: true}}},
		{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Queues: &apportionv1.Queues{Name: []string{c.Job.GetQueue()}}}}},
		{Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{Jobs: jobs}}},
		{Step: &apportionv1.Step_Mark{Mark: &apportionv1.MarkStep{}}},
		{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Jobs: jobs}}},
		{Step: &apportionv1.Step_Rollback{Rollback: &apportionv1.RollbackStep{Mark: mark}}},
	}
	if len(c.Waiting) == 0 {
		return steps
	}
	needed := &apportionv1.Tasks{}
	for _, task := range c.Needed {
		needed.Index = append(needed.Index, task.Number)
	}
	samples := &apportionv1.Tasks{}
	for _, task := range c.Samples[:min(len(c.Samples), maxSamples)] {
		samples.Index = append(samples.Index, task.Number)
	}
	steps = append(steps,
		&apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: samples}}},
		&apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: needed, Jointly: true}}},
		&apportionv1.Step{Step: &apportionv1.Step_Preemptive{Preemptive: &apportionv1.PreemptiveStep{Tasks: samples}}},
		&apportionv1.Step{Step: &apportionv1.Step_Nodes{Nodes: &apportionv1.NodesStep{Tasks: samples, Explain: true}}},
		&apportionv1.Step{Step: &apportionv1.Step_Nodes{Nodes: &apportionv1.NodesStep{Tasks: needed, Top: 1, Jointly: true}}})
	for _, number := range samples.GetIndex() {
		claimant := &apportionv1.Tasks{Index: []uint32{number}}
		steps = append(steps,
			&apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{Claimant: claimant}}},
			&apportionv1.Step{Step: &apportionv1.Step_Preempt{Preempt: &apportionv1.PreemptStep{Claimant: claimant}}})
	}
	return steps
}

// Answers are the answers to Steps, by question; what was not asked is empty.
type Answers struct {
	accounts             []*apportionv1.InspectedNode
	shares               *apportionv1.SharesAnswer
	job                  *apportionv1.JobStanding
	enqueue, jointly     *apportionv1.Verdict
	samples, preemptives []*apportionv1.TaskVerdict
	nodes                *apportionv1.NodesAnswer
	placement            *apportionv1.Placement
	reclaim, preempt     []*apportionv1.VictimsAnswer
}

// Read sorts answers by their questions. A question that failed counts as one that was not asked.
func Read(answers []*apportionv1.Answer) *Answers {
	a := &Answers{}
	for _, answer := range answers {
		switch got := answer.GetAnswer().(type) {
		case *apportionv1.Answer_Inspect:
			a.accounts = got.Inspect.GetNodes()
		case *apportionv1.Answer_Shares:
			a.shares = got.Shares
		case *apportionv1.Answer_Jobs:
			if jobs := got.Jobs.GetJobs(); len(jobs) == 1 {
				a.job = jobs[0]
			}
		case *apportionv1.Answer_Enqueue:
			if jobs := got.Enqueue.GetJobs(); len(jobs) == 1 {
				a.enqueue = jobs[0].GetVerdict()
			}
		case *apportionv1.Answer_Allocatable:
			if tasks := got.Allocatable.GetTasks(); len(tasks) == 1 && tasks[0].Task == nil {
				a.jointly = tasks[0].GetVerdict()
			} else {
				a.samples = tasks
			}
		case *apportionv1.Answer_Preemptive:
			a.preemptives = got.Preemptive.GetTasks()
		case *apportionv1.Answer_Nodes:
			if got.Nodes.GetPlacement() != nil {
				a.placement = got.Nodes.GetPlacement()
			} else {
				a.nodes = got.Nodes
			}
		case *apportionv1.Answer_Reclaim:
			a.reclaim = append(a.reclaim, got.Reclaim)
		case *apportionv1.Answer_Preempt:
			a.preempt = append(a.preempt, got.Preempt)
		default:
		}
	}
	return a
}

// Shares are those of the job's queue.
func (a *Answers) Shares() *apportionv1.SharesAnswer { return a.shares }
