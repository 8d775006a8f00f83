package volcano

import (
	"container/heap"

	"github.com/apportion/apportion/engine/model"
)

// line is a heap as Volcano's priority queues are: an entry whose place in the order changes while it stands in line is not sorted anew.
type line[ID ~int32] struct{ entries entries[ID] }

func lineOf[ID ~int32](less func(l, r ID) bool, ids ...ID) *line[ID] {
	l := &line[ID]{entries[ID]{less: less}}
	for _, id := range ids {
		l.push(id)
	}
	return l
}

func (l *line[ID]) empty() bool { return l == nil || len(l.entries.ids) == 0 }

func (l *line[ID]) push(id ID) { heap.Push(&l.entries, id) }

// pop removes the first entry.
func (l *line[ID]) pop() ID {
	first, _ := heap.Pop(&l.entries).(ID)
	return first
}

type entries[ID ~int32] struct {
	less func(l, r ID) bool
	ids  []ID
}

// Len, Less, Swap, Push and Pop are for package heap.
func (e *entries[ID]) Len() int { return len(e.ids) }

func (e *entries[ID]) Less(i, k int) bool { return e.less(e.ids[i], e.ids[k]) }

func (e *entries[ID]) Swap(i, k int) { e.ids[i], e.ids[k] = e.ids[k], e.ids[i] }

// Push is for package heap.
func (e *entries[ID]) Push(x any) {
	if id, ok := x.(ID); ok {
		e.ids = append(e.ids, id)
	}
}

// Pop is for package heap.
func (e *entries[ID]) Pop() any {
	last := e.ids[len(e.ids)-1]
	e.ids = e.ids[:len(e.ids)-1]
	return last
}

func (r *run) queueLine(queues ...model.QueueID) *line[model.QueueID] {
	return lineOf(func(l, k model.QueueID) bool { return r.Order().CompareQueues(l, k).Less }, queues...)
}

func (r *run) jobLine(jobs ...model.JobID) *line[model.JobID] {
	return lineOf(func(l, k model.JobID) bool { return r.Order().CompareJobs(l, k).Less }, jobs...)
}

func (r *run) taskLine(tasks []model.TaskID) *line[model.TaskID] {
	return lineOf(func(l, k model.TaskID) bool { return r.Order().CompareTasks(l, k).Less }, tasks...)
}

// victimLine sorts victims by who is evicted first for a claimant.
func (r *run) victimLine(claimant model.TaskID, victims []model.TaskID) *line[model.TaskID] {
	return lineOf(func(l, k model.TaskID) bool { return r.Order().CompareVictims(l, k, claimant).Less }, victims...)
}

// lines are the jobs of each queue, and the queues that have some.
type lines struct {
	queues *line[model.QueueID]
	jobs   map[model.QueueID]*line[model.JobID]
}

// lineUp lines up jobs by queue.
func (r *run) lineUp(jobs []model.JobID) lines {
	w := lines{queues: r.queueLine(), jobs: map[model.QueueID]*line[model.JobID]{}}
	for _, j := range jobs {
		q := r.queueOf(j)
		if w.jobs[q] == nil {
			w.jobs[q] = r.jobLine()
			w.queues.push(q)
		}
		w.jobs[q].push(j)
	}
	return w
}
