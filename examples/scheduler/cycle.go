package main

import (
	"context"
	"fmt"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/client/round"
	"github.com/apportion/apportion/engine/cycle"
)

// Eviction is a task that had to give way.
type Eviction struct {
	At    int64
	Queue string
	// Within is true for a preemption by a job of the same queue, false for a reclaim by another queue.
	Within bool
	// LostSeconds is the time of work that an evicted task has to repeat, on GPUs each.
	LostSeconds, GPUs int64
}

// moment is a cycle on the state: what Apportion decides is carried out at once.
type moment struct {
	*State

	jobs      map[string]*Job
	tasks     map[string]running
	evictions []Eviction
	// seen are the states after the plans of the cycle, and repeats counts those that were seen before.
	seen    map[string]bool
	repeats int
}

// running is a task of a job.
type running struct {
	job  *Job
	task int
}

// decide runs a cycle on the state and returns who was evicted, and how often the cluster came back to where it was before.
func decide(ctx context.Context, decider *client.Client, policy Policy, state *State) (evictions []Eviction, repeats int, err error) {
	if len(state.jobs) == 0 {
		return nil, 0, nil
	}
	snapshot, err := state.snapshot()
	if err != nil {
		return nil, 0, err
	}
	m := &moment{State: state, jobs: map[string]*Job{}, tasks: map[string]running{}, seen: map[string]bool{state.key(): true}}
	waiting := make([]*round.Job, len(state.jobs))
	for i, job := range state.jobs {
		placed := int(job.running())
		waiting[i] = &round.Job{
			UID: job.Name, Queue: job.Queue, Admitted: job.Admitted, Least: job.Min, Placed: placed, Pending: len(job.Tasks) - placed,
			Shape: fmt.Sprint(job.Each, job.Priority, job.Min, len(job.Tasks), placed),
		}
		m.jobs[job.Name] = job
		for task := range job.Tasks {
			m.tasks[job.task(task)] = running{job, task}
		}
	}
	in := client.Input{Snapshot: snapshot, Policy: policy.Message}
	err = round.Decide(ctx, decider, in, waiting, round.Told{Admitted: m.admit, Planned: m.carryOut}, cycle.All()...)
	return m.evictions, m.repeats, err
}

// admit lets jobs in.
func (m *moment) admit(jobs []string) {
	for _, name := range jobs {
		m.jobs[name].Admitted = true
	}
}

// carryOut evicts a plan's victims and lets its job run.
func (m *moment) carryOut(plan *round.Plan) {
	for _, victim := range plan.Victims {
		m.evict(m.tasks[victim.Task], victim.Own)
	}
	job := m.jobs[plan.Job]
	for _, at := range plan.Placements {
		m.place(job, m.tasks[at.Task].task, nodeNumber(at.Node))
	}
	if job.Began == never {
		job.Began = m.now
	}
	key := m.key()
	if m.seen[key] {
		m.repeats++
	}
	m.seen[key] = true
}

// evict stops a task, which loses its work since the last checkpoint.
func (m *moment) evict(r running, within bool) {
	lost := (m.now - r.job.Tasks[r.task].Since) % checkpoint
	m.remove(r.job, r.task)
	r.job.Remaining += lost
	m.evictions = append(m.evictions, Eviction{At: m.now, Queue: r.job.Queue, Within: within, LostSeconds: lost, GPUs: r.job.Each.GPU})
}

// key names what runs where.
func (s *State) key() string {
	var key []byte
	for _, job := range s.jobs {
		for task := range job.Tasks {
			key = fmt.Appendf(key, "%d ", job.Tasks[task].Node)
		}
	}
	return string(key)
}

// wasted counts GPUs that are idle although a job waits for them: those of blocks that would fit now.
func (s *State) wasted() int64 {
	free := append([]Room(nil), s.free...)
	gpus := int64(0)
	for _, job := range s.jobs {
		block := job.block()
		if len(block) == 0 {
			continue
		}
		left, fits := append([]Room(nil), free...), 0
		for node := range left {
			for fits < len(block) && left[node].holds(job.Each) {
				left[node] = left[node].minus(job.Each)
				fits++
			}
		}
		if fits == len(block) {
			free, gpus = left, gpus+int64(fits)*job.Each.GPU
		}
	}
	return gpus
}
