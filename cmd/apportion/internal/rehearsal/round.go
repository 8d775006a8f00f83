package rehearsal

import (
	"container/heap"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// round takes the decisions of one moment.
func (r *run) round() error {
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
		actions = AllActions
	}
	d := &deciding{run: r, plans: r.session.Plans()}
	for _, action := range actions {
		if err := d.act(action); err != nil {
			return err
		}
	}
	d.settle()
	// What an eviction leaves free besides the place that it was for is given out in the next round. Such a round is followed by no other,
	// so that jobs which evict each other do so no more often than something happens.
	r.again = eventful && d.evicted
	return nil
}

// deciding is a round under way.
type deciding struct {
	*run
	// plans says that the policy reclaims by plans.
	plans bool
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

func (d *deciding) act(action Action) error {
	switch action {
	case Enqueue:
		d.enqueue()
		return nil
	case Allocate:
		if d.plans {
			return d.allocateAll()
		}
		return d.allocate()
	case Preempt:
		return d.evictBy(engine.ByPreempt)
	case Reclaim:
		if d.plans {
			return d.reclaimByPlans()
		}
		return d.evictBy(engine.ByReclaim)
	}
	return nil
}

// enqueue lets jobs in.
func (d *deciding) enqueue() {
	for _, id := range d.session.PendingInOrder() {
		if d.session.Enqueue(id, nil) {
			j := d.byID[id]
			j.phase = model.PhaseInqueue
			d.rephased = append(d.rephased, j)
		}
	}
	d.memo.changed()
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
func (l *line) Len() int           { return len(l.jobs) }
func (l *line) Less(i, k int) bool { return l.session.CompareJobs(l.jobs[i], l.jobs[k]).Less }
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

// waiting puts the jobs in line.
func (d *deciding) waiting() *lines {
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

// next is the first queue to be served that has a job waiting; nil if there is none. Those that use all they may count only with all.
func (w *lines) next(all bool) *line {
	rest := w.queues[:0]
	for _, q := range w.queues {
		if w.byQueue[q].Len() > 0 {
			rest = append(rest, q)
		}
	}
	w.queues = rest
	w.session.QueuesInOrder(w.queues)
	for _, q := range w.queues {
		if all || !w.session.IsOverused(q, nil) {
			return w.byQueue[q]
		}
	}
	return nil
}

// allocate gives out what is free: to the first queue in order, there to the first job, and then looks again.
func (d *deciding) allocate() error {
	w := d.waiting()
	var l *line
	for {
		if d.stop() {
			return policy.ErrStopped
		}
		// Where nothing was placed the order of queues is as before.
		if l == nil || l.Len() == 0 {
			if l = w.next(false); l == nil {
				return nil
			}
		}
		id := l.take()
		j := d.byID[id]
		if !d.attempt(j) {
			continue
		}
		if j.running < len(j.started) {
			heap.Push(l, id)
		}
		l = nil
	}
}

// allocateAll gives out what is free until nothing more is taken: a refusal may rest on what others could still have been given.
func (d *deciding) allocateAll() error {
	for {
		before := d.commits
		if err := d.allocate(); err != nil || d.commits == before {
			return err
		}
	}
}

// evictBy lets jobs evict others, of their own queue or of other queues.
func (d *deciding) evictBy(means engine.Means) error {
	w := d.waiting()
	for {
		l := w.next(false)
		if l == nil {
			return nil
		}
		j := d.byID[l.take()]
		plan, err := d.plan(j, means)
		if err != nil {
			return err
		}
		if plan == nil {
			continue
		}
		if err := d.carryOut(j, plan); err != nil {
			return err
		}
	}
}

// reclaimByPlans carries out plans, the first there is, and gives out what is free after each, until there is none.
func (d *deciding) reclaimByPlans() error {
	for {
		moved, err := d.firstPlan()
		if err != nil || !moved {
			return err
		}
		if err := d.allocateAll(); err != nil {
			return err
		}
	}
}

// firstPlan carries out the plan of the first job in order that has one.
func (d *deciding) firstPlan() (bool, error) {
	w := d.waiting()
	d.session.QueuesInOrder(w.queues)
	for _, q := range w.queues {
		for l := w.byQueue[q]; l.Len() > 0; {
			j := d.byID[l.take()]
			plan, err := d.plan(j, engine.ByReclaim)
			if err != nil {
				return false, err
			}
			if plan != nil {
				return true, d.carryOut(j, plan)
			}
		}
	}
	return false, nil
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
