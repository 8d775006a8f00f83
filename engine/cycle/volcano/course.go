package volcano

import (
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
)

// Cycles is for how many cycles a course looks ahead: one that admits, one that evicts, and one that places in the room.
const Cycles = 3

// Course is what the next cycles do.
type Course struct {
	// Decisions in their order, cycle by cycle; those of one cycle begin at Begins.
	Decisions []*cycle.Decision
	Begins    []int
}

// Settle makes the state that the next cycle begins with, as if all that was decided had happened at once: bound tasks run, evicted tasks
// and those that were leaving wait, and what was promised is promised no more. Nominations stay.
func (c *Cycle) Settle(s *cycle.State) error {
	v := s.View()
	for j := range model.JobID(v.Jobs.Len()) {
		if !v.HasJob(j) {
			continue
		}
		job := v.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			switch v.Status(t) {
			case model.Binding, model.Bound:
				s.SetStatus(t, model.Running)
			case model.Releasing, model.Pipelined, model.Allocated:
				s.SetStatus(t, model.Pending)
			default:
			}
		}
	}
	return s.Change(nil, func(*model.ChangeBuilder) {})
}

// Foresee runs the next cycles of the policy's actions, until one changes nothing, and undoes them.
func Foresee(h engine.Host, cycles int) (*Course, error) {
	course := &Course{}
	run := &Cycle{}
	for _, name := range h.Policy().Actions {
		run.Actions = append(run.Actions, cycle.Action(name))
	}
	err := h.Tried(func() error {
		s := &cycle.State{Session: h.Session, Told: func(d *cycle.Decision) { course.Decisions = append(course.Decisions, d) }}
		for range cycles {
			from := len(course.Decisions)
			course.Begins = append(course.Begins, from)
			if err := run.Run(s); err != nil {
				return err
			}
			if len(course.Decisions) == from {
				break
			}
			if err := run.Settle(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return course, nil
}

// For returns what the cycles do for a job as a plan, in the first cycle that gives it a place or has tasks evicted for it; nil if none
// does.
func (c *Course) For(h engine.Host, j model.JobID) *plan.Plan {
	for i, from := range c.Begins {
		to := len(c.Decisions)
		if i+1 < len(c.Begins) {
			to = c.Begins[i+1]
		}
		p := &plan.Plan{Job: j, Outcome: plan.Made}
		for _, d := range c.Decisions[from:to] {
			if d.Job == j && d.Action != cycle.Shuffle {
				p.Enters = p.Enters || d.Action == cycle.Enqueue
				add(h, p, d)
			}
		}
		if len(p.Tasks)+len(p.Victims) > 0 {
			account := h.View().Account(j)
			p.Ready = int(account.Ready())+len(p.Tasks) >= int(h.View().Jobs.At(j).MinAvailable)
			return p
		}
	}
	return nil
}

// Plan answers a question for a plan of a job. Under a policy with actions, and unless the question says which tasks or by which means, the
// victims are those of the next cycles: if these evict no task for the job, there is no plan, also where the policy alone would permit one.
// The cycles are run only where they may decide something: not if there is room without evictions, and not if no action evicts.
func Plan(h engine.Host, q *plan.Question) (*plan.Plan, error) {
	permitted, err := plan.For(h.Session, q)
	p := h.Policy()
	switch {
	case err != nil || p.Actions == nil || q.Tasks != nil || q.Means != plan.ByAny,
		permitted.Outcome == plan.Made && len(permitted.Victims) == 0,
		!p.Acts(engine.ActionPreempt, engine.ActionReclaim, engine.ActionGangPreempt, engine.ActionGangReclaim):
		return permitted, err
	}
	course, err := Foresee(h, Cycles)
	if err != nil {
		return nil, err
	}
	done := course.For(h, q.Job)
	switch evicts := done != nil && len(done.Victims) > 0; {
	case !evicts && (permitted.Outcome != plan.Made || permitted.ByChance(h.View())):
		return permitted, nil
	case !evicts:
		return missed(permitted, 0), nil
	case q.MaxVictims > 0 && len(done.Victims) > q.MaxVictims:
		return missed(permitted, len(done.Victims)), nil
	}
	done.Unjudged, done.Looked = permitted.Unjudged, permitted.Looked
	done.Least = permitted.Outcome == plan.Made && permitted.Least && len(permitted.Victims) == len(done.Victims)
	for i := range done.Victims {
		v := &done.Victims[i]
		for k := range permitted.Victims {
			if p := &permitted.Victims[k]; p.Task == v.Task {
				v.Tier, v.Plugins, v.Limit, v.Returns = p.Tier, p.Plugins, p.Limit, p.Returns
			}
		}
	}
	return done, nil
}

// missed returns that there is no plan although the policy permits one: the cycles evict no task for the job, or more tasks than the
// question allows.
func missed(permitted *plan.Plan, victims int) *plan.Plan {
	return &plan.Plan{
		Job: permitted.Job, Outcome: plan.None, Enters: permitted.Enters, Unjudged: permitted.Unjudged, Looked: permitted.Looked,
		Tasks: permitted.Tasks, Miss: &plan.Miss{
			Check: judge.CheckEviction, Task: model.None, Node: model.None, Victims: victims,
			Reasons: []policy.Reason{policy.Because("", policy.NotInCycle, model.None)},
		},
	}
}

// add adds a decision to a plan.
func add(h engine.Host, p *plan.Plan, d *cycle.Decision) {
	v := h.View()
	for i, t := range d.Tasks {
		p.Tasks, p.Nodes, p.Released = append(p.Tasks, t), append(p.Nodes, d.Nodes[i]), append(p.Released, false)
	}
	for i, t := range d.Promised {
		p.Tasks, p.Nodes, p.Released = append(p.Tasks, t), append(p.Nodes, d.Rooms[i]), append(p.Released, false)
	}
	for _, x := range d.Victims {
		at := plan.Evicted{Task: x.Task, Node: v.NodeOf(x.Task), Own: x.Own, For: model.None, Returns: plan.NoReturn}
		for i, t := range d.Promised {
			if d.Rooms[i] == at.Node {
				at.For = t
			}
		}
		p.Victims = append(p.Victims, at)
	}
}
