package explain

import (
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// maxPlaced bounds the tasks of jobs that come first which one explanation places, and maxTurns the jobs that it looks at in one queue.
const (
	maxPlaced = 10_000
	maxTurns  = 2_000
)

// order reports whether a job that could start alone can still start after the jobs that come first.
func (x *explainer) order(e *Explanation, w *engine.Need) error {
	// Jobs that are admitted now are served in the same turn.
	if x.entry == nil {
		if err := x.enter(); err != nil {
			return err
		}
	}
	if t := x.entry[e.Job]; t != nil && !t.ok {
		e.Find(judge.CheckOrder, judge.Failed, t.reasons...).Jobs = t.first
		return nil
	}
	if len(w.Tasks) == 0 {
		return nil
	}
	q := x.View().Jobs.At(e.Job).Queue
	if x.turns[q] == nil {
		if err := x.serve(q); err != nil {
			return err
		}
	}
	t := x.turns[q][e.Job]
	switch {
	case t == nil:
		e.Find(judge.CheckOrder, judge.Noted)
	case t.ok:
		e.Find(judge.CheckOrder, judge.Passed).Jobs = t.first
	default:
		e.Find(judge.CheckOrder, judge.Failed, t.reasons...).Jobs = t.first
	}
	return nil
}

// enter lets the enqueue action take its course and notes how each pending job fares.
func (x *explainer) enter() error {
	x.entry = make(map[model.JobID]*turn)
	return x.Tried(func() error {
		var first []model.JobID
		for i, j := range x.Order().Pending() {
			if x.View().Stopped(i) {
				return policy.ErrStopped
			}
			var why policy.Reasons
			admitted := x.Job(j).Enqueue(&why)
			x.entry[j] = &turn{ok: admitted, check: judge.CheckAdmission, reasons: why.List, first: slices.Clip(first)}
			if admitted && !x.View().Jobs.At(j).MinResources.Absent() {
				first = append(first, j)
			}
		}
		return nil
	})
}

// serve places the admitted jobs of a queue one after the other, each that has enough for its gang, and notes how each fares.
func (x *explainer) serve(q model.QueueID) error {
	turns := make(map[model.JobID]*turn)
	x.turns[q] = turns
	jobs := x.queueJobs(q)
	return x.Tried(func() error {
		var first []model.JobID
		brief := x.Brief
		x.Booked, x.Seats, x.Brief = []model.NodeID{}, true, true
		defer func() { x.Booked, x.Seats, x.Brief = nil, false, brief }()
		// Later the queue would also hold what is booked until then.
		if err := x.LookAhead(); err != nil {
			return err
		}
		for i, j := range jobs {
			if i == maxTurns || len(x.Booked) > maxPlaced {
				return nil
			}
			t := &turn{first: slices.Clip(first)}
			d, err := x.next(j, t)
			if err != nil {
				return err
			}
			turns[j] = t
			if !t.ok {
				continue
			}
			for k, task := range d.Tasks {
				x.Book(task, model.Allocated, d.Nodes[k])
			}
			x.Booked = append(x.Booked, d.Nodes...)
			first = append(first, j)
		}
		return nil
	})
}

// queueJobs lists the admitted jobs of a queue that have tasks to place, in order of service. The jobs of all queues are examined once.
func (x *explainer) queueJobs(q model.QueueID) []model.JobID {
	if x.served == nil {
		x.served = make([][]model.JobID, len(x.View().Queues))
		for _, j := range x.View().Present() {
			entry := x.entry[j]
			if x.View().Account(j).Tasks[model.Pending] > 0 && x.View().Phase(j) != model.PhaseCompleted && (entry == nil || entry.ok) {
				of := x.View().Jobs.At(j).Queue
				x.served[of] = append(x.served[of], j)
			}
		}
	}
	x.Order().SortJobs(x.served[q])
	return x.served[q]
}

// next asks whether a job goes on in the present state, and where.
func (x *explainer) next(j model.JobID, t *turn) (*judge.Judgement, error) {
	w := x.NeedOf(j)
	d := &judge.Judgement{Job: j, Tasks: w.Needed}
	var why policy.Reasons
	if len(w.Tasks) == 0 || !x.Job(j).Valid(&why) {
		t.check, t.reasons = judge.CheckTasks, why.List
		return d, nil
	}
	if err := x.Placement(d, w); err != nil {
		return nil, err
	}
	against := d.Against()
	if t.ok = against == nil; !t.ok {
		t.check, t.reasons = against.Check, against.Reasons
	}
	return d, nil
}
