package volcano

import (
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
)

// lineOf lines up those that wait, in their order.
func lineOf[ID ~int32](before func(l, r ID) bool, ids ...ID) *cycle.Line[ID] {
	l := &cycle.Line[ID]{Before: before}
	for _, id := range ids {
		l.Put(id)
	}
	return l
}

func (r *run) queueLine(queues ...model.QueueID) *cycle.Line[model.QueueID] {
	return lineOf(func(l, k model.QueueID) bool { return r.Order().CompareQueues(l, k).Less }, queues...)
}

func (r *run) jobLine(jobs ...model.JobID) *cycle.Line[model.JobID] {
	return lineOf(func(l, k model.JobID) bool { return r.Order().CompareJobs(l, k).Less }, jobs...)
}

func (r *run) taskLine(tasks []model.TaskID) *cycle.Line[model.TaskID] {
	return lineOf(func(l, k model.TaskID) bool { return r.Order().CompareTasks(l, k).Less }, tasks...)
}

// victimLine sorts victims by who is evicted first for a claimant.
func (r *run) victimLine(claimant model.TaskID, victims []model.TaskID) *cycle.Line[model.TaskID] {
	return lineOf(func(l, k model.TaskID) bool { return r.Order().CompareVictims(l, k, claimant).Less }, victims...)
}

// lines are the jobs of each queue, and the queues that have some.
type lines struct {
	queues *cycle.Line[model.QueueID]
	jobs   map[model.QueueID]*cycle.Line[model.JobID]
}

// lineUp lines up jobs by queue.
func (r *run) lineUp(jobs []model.JobID) lines {
	w := lines{queues: r.queueLine(), jobs: map[model.QueueID]*cycle.Line[model.JobID]{}}
	for _, j := range jobs {
		q := r.queueOf(j)
		if w.jobs[q] == nil {
			w.jobs[q] = r.jobLine()
			w.queues.Put(q)
		}
		w.jobs[q].Put(j)
	}
	return w
}
