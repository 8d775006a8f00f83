package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/engine/timeline"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// checkpoint is the interval at which a task saves its work. Work after the last checkpoint is repeated after an eviction.
const checkpoint = 10 * minute

// never is a time after every event.
const never = timeline.Never

// Job is a submission in the course of a simulation.
type Job struct {
	*Submission
	Tasks []Task
	// Admitted jobs may be given tasks.
	Admitted bool
	// Remaining work, in seconds of one task.
	Remaining int64
	// Began is the time when its minimum first ran, Ended the time when all its work was done.
	Began, Ended int64
}

// Task is one of a job's workers.
type Task struct {
	// Node it runs on, or idle.
	Node int
	// Since when it runs there.
	Since int64
}

// idle is the node of a task that does not run.
const idle = -1

func newJob(s *Submission) *Job {
	job := &Job{Submission: s, Tasks: make([]Task, s.Tasks), Remaining: int64(s.Tasks) * s.Seconds, Began: never, Ended: never}
	for i := range job.Tasks {
		job.Tasks[i].Node = idle
	}
	return job
}

// running counts the tasks that run.
func (j *Job) running() int64 {
	count := int64(0)
	for i := range j.Tasks {
		if j.Tasks[i].Node != idle {
			count++
		}
	}
	return count
}

// task names a task, as nodeName names a node and nodeNumber reads its name.
func (j *Job) task(task int) string { return fmt.Sprintf("%s-%d", j.Name, task) }

func nodeName(node int) string { return fmt.Sprintf("gpu-%d", node) }

func nodeNumber(name string) int {
	node, err := strconv.Atoi(strings.TrimPrefix(name, "gpu-"))
	if err != nil {
		return idle
	}
	return node
}

// block returns the tasks that a job places together: the tasks that its gang lacks, or else one task; nil if all run.
func (j *Job) block() []int {
	size := max(1, j.Min-int(j.running()))
	var block []int
	for task := range j.Tasks {
		if j.Tasks[task].Node == idle && len(block) < size {
			block = append(block, task)
		}
	}
	return block
}

// end returns the time when the job will be done if nothing changes.
func (j *Job) end(now int64) int64 {
	running := j.running()
	if running == 0 {
		return never
	}
	return now + (j.Remaining+running-1)/running
}

func (j *Job) phase() apportionv1.JobPhase {
	switch {
	case !j.Admitted:
		return apportionv1.JobPhase_JOB_PHASE_PENDING
	case j.running() == 0:
		return apportionv1.JobPhase_JOB_PHASE_INQUEUE
	}
	return apportionv1.JobPhase_JOB_PHASE_RUNNING
}

// State is the cluster at one moment.
type State struct {
	cluster *Cluster
	now     int64
	// jobs that have arrived and are not done, in order of arrival.
	jobs []*Job
	// free room on each node.
	free []Room
}

func newState(c *Cluster) *State {
	return &State{cluster: c, free: slices.Repeat([]Room{c.Nodes.Each}, c.Nodes.Count)}
}

func (s *State) place(job *Job, task, node int) {
	job.Tasks[task] = Task{Node: node, Since: s.now}
	s.free[node] = s.free[node].minus(job.Each)
}

func (s *State) remove(job *Job, task int) {
	node := job.Tasks[task].Node
	s.free[node] = s.free[node].plus(job.Each)
	job.Tasks[task] = Task{Node: idle}
}

// midnight is the beginning of a trace's day; any date serves.
var midnight = time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)

// snapshot describes the moment to Apportion: nodes, queues and jobs in the order in which this state lists them.
func (s *State) snapshot() (*apportionv1.Snapshot, error) {
	at := func(second int64) time.Time { return midnight.Add(time.Duration(second) * time.Second) }
	snapshot := client.NewSnapshot().AsOf(at(s.now))
	s.cluster.declare(snapshot)
	for _, job := range s.jobs {
		group := client.Group{Role: "worker", Request: job.Each.resources(), Tasks: make([]client.Task, len(job.Tasks))}
		for i := range job.Tasks {
			task := &group.Tasks[i]
			task.UID, task.Name, task.Index = job.task(i), job.task(i), new(uint32(i))
			if node := job.Tasks[i].Node; node != idle {
				task.Status, task.Node = apportionv1.TaskStatus_TASK_STATUS_RUNNING, nodeName(node)
			}
		}
		snapshot.Job(client.Job{
			UID: job.Name, Name: job.Name, Queue: job.Queue, Priority: job.Priority, Phase: job.phase(), Created: at(job.Arrival),
			MinAvailable: uint32(job.Min), MinResources: job.Each.times(int64(job.Min)).resources(), Groups: []client.Group{group},
		})
	}
	return snapshot.Build()
}
