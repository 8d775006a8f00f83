package rehearsal

import (
	"errors"

	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
)

// errNotReady undoes an attempt.
var errNotReady = errors.New("the job does not become ready")

// Allocate places tasks of a job where there is room until the job is ready, and reports whether it became so. If it does not, the state is
// unchanged.
func (d *deciding) Allocate(j *job) (bool, error) {
	if d.memo.refused(d.run, j, 0) {
		return false, nil
	}
	d.tentative = d.tentative[:0]
	ready := nil == d.session.Try(func() error {
		for task, at := j.pendingFrom(0); task >= 0; task, at = j.pendingFrom(at) {
			t := j.first + model.TaskID(task)
			if !d.session.Allocatable([]model.TaskID{t}, policy.InSession, nil, nil) {
				return errNotReady
			}
			n := d.bestNode(t)
			if n == model.None {
				return errNotReady
			}
			if err := d.session.Allocate(t, n); err != nil {
				return err
			}
			d.tentative = append(d.tentative, placement{t, n})
			if d.session.Job(j.id).Ready(nil) {
				return nil
			}
		}
		return errNotReady
	})
	if !ready {
		d.memo.refuse(d.run, j, 0)
		return false, nil
	}
	for _, p := range d.tentative {
		d.place(j, p)
	}
	d.commit(j)
	return true, nil
}

// bestNode is the node with the highest score that has room for a task, the first by name of equal ones; None if none has room.
func (d *deciding) bestNode(t model.TaskID) model.NodeID {
	key := roomKey{d.session.View().Tasks.At(t).Request, d.session.View().NodeSetOf(t), d.session.View().QueueOf(t)}
	if d.memo.full[key] && !d.options.plain && !d.timed {
		return model.None
	}
	fits := d.fits[:0]
	for _, n := range d.nodes {
		if d.session.Nodes().Fits(t, n, nil) && d.session.Nodes().HasRoom(t, n, nil) {
			fits = append(fits, n)
		}
	}
	d.fits = fits
	if len(fits) == 0 {
		if len(d.tentative) == 0 {
			d.memo.fill(key)
		}
		return model.None
	}
	scorers := d.session.Nodes().Scorers()
	if len(scorers) == 0 {
		return fits[0]
	}
	if cap(d.scores) < len(fits) {
		d.scores, d.total = make([]float64, len(d.nodes)), make([]float64, len(d.nodes))
	}
	total := d.total[:len(fits)]
	clear(total)
	for _, s := range scorers {
		scores := d.scores[:len(fits)]
		s.ScoreNodes(t, fits, scores)
		for i, score := range scores {
			total[i] += score
		}
	}
	best := 0
	for i, score := range total {
		if score > total[best] {
			best = i
		}
	}
	return fits[best]
}

// Evict carries out the plan by which a job gets its place, if there is one.
func (d *deciding) Evict(j *job, action cycle.Action) (bool, error) {
	means := plan.ByReclaim
	if action == cycle.Preempt {
		means = plan.ByPreempt
	}
	if d.memo.refused(d.run, j, means) {
		return false, nil
	}
	made, err := plan.For(d.session, &plan.Question{Job: j.id, Means: means, Quick: true})
	if err != nil {
		return false, err
	}
	if made.Outcome != plan.Made {
		d.memo.refuse(d.run, j, means)
		return false, nil
	}
	return true, d.carryOut(j, made)
}

// carryOut evicts a plan's victims and lets its job run.
func (d *deciding) carryOut(j *job, plan *plan.Plan) error {
	var stopped []*job
	for i := range plan.Victims {
		v := &plan.Victims[i]
		victim := d.byID[d.session.View().Tasks.At(v.Task).Job]
		why := byReclaim
		if v.Own {
			why = byPreempt
		}
		if err := d.evict(victim, int(v.Task-victim.first), why); err != nil {
			return err
		}
		if victim.working && victim.running < victim.Min {
			stopped = append(stopped, victim)
		}
	}
	for _, victim := range stopped {
		if err := d.halt(victim); err != nil {
			return err
		}
	}
	for i, t := range plan.Tasks {
		if err := d.session.Allocate(t, plan.Nodes[i]); err != nil {
			return err
		}
		d.place(j, placement{t, plan.Nodes[i]})
	}
	d.memo.freed()
	d.commit(j)
	return nil
}

// halt stops a job of which fewer tasks run than it needs.
func (d *deciding) halt(j *job) error {
	if !j.working {
		return nil
	}
	for task, start := range j.started {
		if start == idle {
			continue
		}
		if err := d.evict(j, task, withGang); err != nil {
			return err
		}
	}
	j.stop(d.now)
	return nil
}

func (d *deciding) place(j *job, p placement) {
	task := int(p.task - j.first)
	j.place(task, d.now)
	j.nodes[task] = p.node
	d.meter.use(j, task, 1)
	d.placed = append(d.placed, p.task)
}

func (d *deciding) evict(j *job, task int, why cause) error {
	if err := d.session.Deallocate(j.first+model.TaskID(task), model.Pending); err != nil {
		return err
	}
	lost := j.evict(task, d.now, d.options.Checkpoint)
	d.meter.use(j, task, -1)
	d.meter.evict(j, task, why, lost)
	d.touched, d.evicted = append(d.touched, j), true
	return nil
}

// commit keeps what was done for a job.
func (d *deciding) commit(j *job) {
	d.commits++
	d.touched = append(d.touched, j)
	d.memo.changed()
}
