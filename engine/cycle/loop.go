package cycle

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
)

// Scheduler answers the questions of a Loop, and carries its decisions out. What it is asked about a job or queue it has named itself.
type Scheduler interface {
	// Plans reports whether the policy reclaims by plans, as fair does.
	Plans() bool
	// Enqueue lets jobs in.
	Enqueue() error
	// Waiting lists the jobs that an action may give another task. Those that have begun go first, in their order and whatever their queue.
	Waiting(action Action) (begun, others []model.JobID, err error)
	// QueueOf returns the queue of a job.
	QueueOf(j model.JobID) model.QueueID
	// Before reports whether a job is served before another one of its queue.
	Before(l, r model.JobID) bool
	// Queues returns those of some queues that are served, in order; without all, those are left out that use all they may.
	Queues(queues []model.QueueID, all bool) ([]model.QueueID, error)
	// Serve gives a job what its gang lacks, or one task more: on what is free (Allocate), or in the place of tasks of its own queue
	// (Preempt) or of others (Reclaim). It reports whether it did, and whether the job could use more. If not, nothing has changed.
	Serve(j model.JobID, action Action) (done, more bool, err error)
}

// Loop carries out the actions of a scheduler.
type Loop struct {
	Scheduler

	// Settled, if not nil, is called when what a plan of reclaim left free is given out. Reclaim ends if it returns true.
	Settled func() bool
}

// Run carries out actions in order. Under a policy with plans, what is free is given out until no job takes more, because a refusal may
// depend on what others could still have been given; so it is after each plan of reclaim.
func (l *Loop) Run(actions ...Action) error {
	for _, action := range actions {
		if err := l.act(action); err != nil {
			return err
		}
	}
	return nil
}

func (l *Loop) act(action Action) error {
	switch {
	case action == Enqueue:
		return l.Enqueue()
	case action == Allocate:
		return l.allocate()
	case action == Reclaim && l.Plans():
		return l.reclaimByPlans()
	}
	_, err := l.serve(action, false)
	return err
}

// allocate gives out what is free.
func (l *Loop) allocate() error {
	for {
		served, err := l.serve(Allocate, false)
		if err != nil || served == 0 || !l.Plans() {
			return err
		}
	}
}

// reclaimByPlans carries out plans, the first there is, and gives out what is free after each, until there is none.
func (l *Loop) reclaimByPlans() error {
	for {
		served, err := l.serve(Reclaim, true)
		if err != nil || served == 0 {
			return err
		}
		if err := l.allocate(); err != nil {
			return err
		}
		if l.Settled != nil && l.Settled() {
			return nil
		}
	}
}

// serve serves the first job of the first queue until each has had its turn, or until one was served. A job that is placed and could use
// more stands in line again. It returns how many were served. Preemption takes from the queue itself, as in Volcano, and reclaim by plans
// asks what each queue is entitled to: both also serve queues that use all they may.
func (l *Loop) serve(action Action, one bool) (served int, err error) {
	begun, others, err := l.Waiting(action)
	if err != nil {
		return 0, err
	}
	if served, err = l.serveBegun(begun, action, one); err != nil || one && served > 0 {
		return served, err
	}
	lines := l.lines(others)
	all := action == Preempt || action == Reclaim && l.Plans()
	var order []model.QueueID
	again := model.JobID(model.None)
	for stale := true; ; {
		if stale {
			if order, err = l.order(lines, again, all); err != nil {
				return served, err
			}
		}
		for len(order) > 0 && lines.of[order[0]].Empty() {
			order = order[1:]
		}
		if len(order) == 0 {
			return served, nil
		}
		line := lines.of[order[0]]
		j := line.Take()
		done, more, err := l.Serve(j, action)
		if stale = done; done {
			served++
		}
		if err != nil || done && one {
			return served, err
		}
		if again = model.None; done && more && action == Allocate {
			again = j
		}
	}
}

// serveBegun serves jobs that have begun, or the first of them that can be served.
func (l *Loop) serveBegun(jobs []model.JobID, action Action, one bool) (served int, err error) {
	for _, j := range jobs {
		done, _, err := l.Serve(j, action)
		if done {
			served++
		}
		if err != nil || done && one {
			return served, err
		}
	}
	return served, nil
}

// lines are the jobs of each queue that wait, the first to be served on top.
type lines struct {
	of map[model.QueueID]*Line[model.JobID]
	// queues are those with jobs in line, in the order of before if it is known: queues that are almost in order are sorted quickly.
	queues []model.QueueID
}

func (l *Loop) lines(jobs []model.JobID) *lines {
	w := &lines{of: map[model.QueueID]*Line[model.JobID]{}}
	for _, j := range jobs {
		q := l.QueueOf(j)
		if w.of[q] == nil {
			w.of[q] = &Line[model.JobID]{Before: l.Before}
			w.queues = append(w.queues, q)
		}
		w.of[q].ids = append(w.of[q].ids, j)
	}
	for _, line := range w.of {
		line.sort()
	}
	return w
}

// order returns the queues with jobs in line that are served. A job that was placed and could use more stands in line again, at the place
// that it has now.
func (l *Loop) order(w *lines, again model.JobID, all bool) ([]model.QueueID, error) {
	w.queues = slices.DeleteFunc(w.queues, func(q model.QueueID) bool {
		return w.of[q].Empty() && (again == model.None || q != l.QueueOf(again))
	})
	if len(w.queues) == 0 {
		return nil, nil
	}
	order, err := l.Queues(slices.Clone(w.queues), all)
	if err != nil {
		return nil, err
	}
	if len(order) == len(w.queues) {
		copy(w.queues, order)
	}
	if again != model.None {
		w.of[l.QueueOf(again)].Put(again)
	}
	return order, nil
}
