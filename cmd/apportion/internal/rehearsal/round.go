package rehearsal

import (
	"container/heap"
	"iter"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// round takes the decisions of one moment.
func (r *run) round() error {
	if err := r.renew(); err != nil {
		return err
	}
	if err := r.follow(); err != nil {
		return err
	}
	r.arrived, r.left, r.rephased = r.arrived[:0], r.left[:0], r.rephased[:0]
	eventful := r.eventful
	r.eventful, r.again, r.latest = false, false, r.now
	r.rounds++
	if err := r.entitle(); err != nil {
		return err
	}
	r.memo.freed()
	actions := r.variant.Actions
	if actions == nil {
		actions = cycle.Actions()
	}
	d := &deciding{run: r}
	run := (&cycle.Cycle[*job]{Scheduler: d, Plans: r.session.Reclaim().Plans()}).Run
	if r.kueue != nil {
		run = d.runKueue
	}
	if err := run(actions...); err != nil {
		return err
	}
	d.settle()
	// What an eviction leaves free besides the place that it was for is given out in the next round. No other round follows such a round,
	// so that jobs which evict each other do so at most once for each event.
	r.again = eventful && d.evicted
	r.noteEntitled()
	return nil
}

// deciding is a round under way: the scheduler of its cycle.
type deciding struct {
	*run
	// placed are tasks that were placed in this round: they start to run after it.
	placed []model.TaskID
	// touched are jobs of which tasks were placed or evicted.
	touched []*job
	// commits counts placements and evictions that were carried out.
	commits int
	evicted bool
	// tentative are the tasks that the attempt under way has placed.
	tentative []placement
	fits      []model.NodeID
	scores    []float64
	total     []float64
}

type placement struct {
	task model.TaskID
	node model.NodeID
}

// Enqueue lets jobs in.
func (d *deciding) Enqueue() error {
	for _, id := range d.session.Order().Pending() {
		if d.session.Job(id).Enqueue(nil) {
			j := d.byID[id]
			j.phase = model.PhaseInqueue
			d.rephased = append(d.rephased, j)
		}
	}
	d.memo.changed()
	return nil
}

// lines are the admitted jobs of each queue that could use another task, the first to be served on top.
type lines struct {
	*deciding
	byQueue map[model.QueueID]*line
	queues  []model.QueueID
}

// line is a heap of jobs by the policy's order.
type line struct {
	session *engine.Session
	jobs    []model.JobID
}

// Len, Less and Swap are for package heap.
func (l *line) Len() int { return len(l.jobs) }

func (l *line) Less(i, k int) bool { return l.session.Order().CompareJobs(l.jobs[i], l.jobs[k]).Less }
func (l *line) Swap(i, k int)      { l.jobs[i], l.jobs[k] = l.jobs[k], l.jobs[i] }

// Push is for package heap.
func (l *line) Push(x any) {
	if id, ok := x.(model.JobID); ok {
		l.jobs = append(l.jobs, id)
	}
}

// Pop is for package heap.
func (l *line) Pop() any {
	last := l.jobs[len(l.jobs)-1]
	l.jobs = l.jobs[:len(l.jobs)-1]
	return last
}

// take removes the first job.
func (l *line) take() model.JobID {
	id, _ := heap.Pop(l).(model.JobID)
	return id
}

// line puts the jobs in line.
func (d *deciding) line() *lines {
	w := &lines{deciding: d, byQueue: map[model.QueueID]*line{}}
	for _, j := range d.live {
		if j.phase == model.PhasePending || j.running == len(j.started) {
			continue
		}
		l := w.byQueue[j.queue]
		if l == nil {
			l = &line{session: d.session}
			w.byQueue[j.queue] = l
			w.queues = append(w.queues, j.queue)
		}
		l.jobs = append(l.jobs, j.id)
	}
	for _, q := range w.queues {
		heap.Init(w.byQueue[q])
	}
	return w
}

// next is the first queue to be served that has a job waiting; nil if there is none. Queues that use all they may count only with all set.
func (w *lines) next(all bool) *line {
	rest := w.queues[:0]
	for _, q := range w.queues {
		if w.byQueue[q].Len() > 0 {
			rest = append(rest, q)
		}
	}
	w.queues = rest
	w.session.Order().SortQueues(w.queues)
	for _, q := range w.queues {
		if all || !w.session.IsOverused(q, nil) {
			return w.byQueue[q]
		}
	}
	return nil
}

// Waiting yields jobs: the first job of the first queue, until there is none. Some actions also serve queues that use all they may.
func (d *deciding) Waiting(action cycle.Action) iter.Seq2[*job, error] {
	return func(yield func(*job, error) bool) {
		all := action.ServesOverused(d.session.Reclaim().Plans())
		w := d.line()
		for l := w.next(all); l != nil; {
			if d.stop() {
				yield(nil, policy.ErrStopped)
				return
			}
			id, before := l.take(), d.commits
			j := d.byID[id]
			if !yield(j, nil) {
				return
			}
			moved := d.commits > before
			if moved && action == cycle.Allocate && j.running < len(j.started) {
				heap.Push(l, id)
			}
			// If nothing was done, the order of queues is unchanged.
			if moved || l.Len() == 0 {
				l = w.next(all)
			}
		}
	}
}

// settle lets the tasks run that were placed, and finds when their jobs will be done.
func (d *deciding) settle() {
	for _, t := range d.placed {
		if d.session.View().Status(t) == model.Allocated {
			d.session.SetStatus(t, model.Running)
		}
	}
	for _, j := range d.touched {
		d.ends.schedule(j, d.now)
	}
	d.rephased = append(d.rephased, d.touched...)
}
