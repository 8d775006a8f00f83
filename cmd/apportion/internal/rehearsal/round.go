package rehearsal

import (
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
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
	d := &deciding{run: r}
	s := &cycle.State{Session: r.session, Told: d.carryOut, Gangs: true}
	if !r.options.plain {
		s.Alike = r.alike
	}
	if err := r.cycle.Run(s); err != nil {
		return err
	}
	s.Begin()
	for _, j := range d.touched {
		r.ends.schedule(j, r.now)
	}
	r.rephased = append(r.rephased, d.touched...)
	// What an eviction leaves free besides the place that it was for is given out in the next round. No other round follows such a round,
	// so that jobs which evict each other do so at most once for each event.
	r.again = eventful && d.evicted
	r.noteEntitled()
	return nil
}

// alike is that of the cycle's state. Beside room that is kept it matters when a job that runs ends.
func (r *run) alike(id model.JobID) (kind cycle.Kind, common bool) {
	j := r.byID[id]
	kept := r.timed && !r.turns
	return cycle.Kind{Kind: j.kind, Running: int32(j.running)}, j.running == 0 || len(j.Groups) == 1 && !kept
}

// deciding is a round under way.
type deciding struct {
	*run
	// touched are jobs of which tasks were placed or evicted, or that were let in.
	touched []*job
	evicted bool
}

// carryOut books a decision of the cycle. A job of which fewer tasks run than it needs stops.
func (d *deciding) carryOut(decision *cycle.Decision) {
	j := d.byID[decision.Job]
	if decision.Action == cycle.Enqueue {
		j.phase = model.PhaseInqueue
		d.rephased = append(d.rephased, j)
		return
	}
	for _, v := range decision.Victims {
		d.evict(v)
	}
	for _, v := range decision.Victims {
		if victim := d.owner(v.Task); victim.working && victim.running < max(1, victim.Min) {
			victim.stop(d.now)
			d.kueue.booked(victim, -1)
		}
	}
	for i, t := range decision.Tasks {
		task := int(t - j.first)
		j.place(task, d.now)
		if j.nodes[task] = model.None; decision.Nodes != nil {
			j.nodes[task] = decision.Nodes[i]
		}
		d.meter.use(j, task, 1)
	}
	if len(decision.Tasks) > 0 {
		d.kueue.booked(j, 1)
		d.touched = append(d.touched, j)
	}
}

// owner is the job of a task.
func (r *run) owner(t model.TaskID) *job { return r.byID[r.session.View().Tasks.At(t).Job] }

func (d *deciding) evict(v cycle.Victim) {
	j, why := d.owner(v.Task), byReclaim
	switch {
	case v.Gang:
		why = withGang
	case v.Own:
		why = byPreempt
	}
	task := int(v.Task - j.first)
	lost := j.evict(task, d.now, d.options.Checkpoint)
	d.meter.use(j, task, -1)
	d.meter.evict(j, task, why, lost)
	d.touched, d.evicted = append(d.touched, j), true
}
