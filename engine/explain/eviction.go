package explain

import (
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/cycle/volcano"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
)

// maxEvicted bounds the tasks that are taken away to see whether the rest leaves room.
const maxEvicted = 10_000

// PlannedJobs is the maximum number of named jobs for which one explanation computes plans and forecasts. For more jobs it lists the
// evictable tasks, and reports whether there would be room without all of them, which costs much less.
const PlannedJobs = 4

// plannedEviction finds the tasks to evict for the job by a plan. Without a plan it also returns the evictable tasks, or the reasons that
// protect them.
func (x *explainer) plannedEviction(e *Explanation, w *engine.Need) error {
	if err := plan.Spend(x.Host); err != nil {
		return err
	}
	plan, err := volcano.Plan(x.Host, &plan.Question{Job: e.Job, Means: plan.ByAny})
	if err != nil {
		return err
	}
	e.Plan = plan
	f := judge.Finding{Check: judge.CheckEviction, Outcome: judge.Noted, Task: model.None}
	if plan.Miss == nil {
		f.Enough = true
		f.Preempt = len(plan.Victims) > 0
		for i := range plan.Victims {
			f.Tasks = append(f.Tasks, plan.Victims[i].Task)
			f.Preempt = f.Preempt && plan.Victims[i].Own
		}
		f.Amount = x.Sum(f.Tasks)
		e.Add(f)
		return nil
	}
	if why := plan.Miss.Reasons; len(why) > 0 && why[0].Code == policy.NotInCycle {
		f.Reasons, f.Counts = why, []int{0}
	} else if check := plan.Miss.Check; check == judge.CheckNodes || check == judge.CheckEviction {
		could, err := x.evictable(e.Job, w, false)
		if err != nil {
			return err
		}
		f.Tasks, f.Amount, f.Preempt, f.Reasons, f.Counts = could.Tasks, could.Amount, could.Preempt, could.Reasons, could.Counts
	}
	e.Add(f)
	return nil
}

// eviction asks which tasks could be evicted, without a plan: all tasks, and whether there is room without evictions.
func (x *explainer) eviction(e *Explanation, w *engine.Need) error {
	could, err := x.evictable(e.Job, w, true)
	if err != nil {
		return err
	}
	e.Add(*could)
	return nil
}

// evictable asks which tasks could be evicted for each kind of task, in other queues, then in the job's own. It returns the first such
// choice, or, with room, the first that makes room for what the gang needs. If there is no plan, it gives the reasons that protect the
// tasks.
func (x *explainer) evictable(j model.JobID, w *engine.Need, room bool) (*judge.Finding, error) {
	var held protectedTasks
	var first *judge.Finding
	for _, t := range w.Kinds {
		for _, preempt := range []bool{false, true} {
			var why policy.Reasons
			action := x.VictimsOf(preempt)
			if !action.Runs(&why) || !action.Asks(j, &why) || !preempt && !x.Preemptive([]model.TaskID{t}, &why, nil) {
				held.Add(why.List, 0)
				continue
			}
			f, err := x.evict(w, t, preempt, room, &held)
			if err != nil {
				return nil, err
			}
			if f != nil && (f.Enough || !room) {
				return f, nil
			}
			if first == nil {
				first = f
			}
		}
	}
	if first != nil {
		return first, nil
	}
	f := &judge.Finding{Check: judge.CheckEviction, Outcome: judge.Noted, Task: model.None}
	f.Reasons, f.Counts = held.Most()
	return f, nil
}

// protectedTasks counts the tasks that reasons protect, each once however many claimants it is protected from.
type protectedTasks struct {
	judge.Frequency

	// seen holds the tasks that are counted, by the position of the reason.
	seen []map[model.TaskID]bool
}

func (p *protectedTasks) protect(t model.TaskID, reason policy.Reason) {
	p.Add([]policy.Reason{reason}, 0)
	for len(p.seen) < len(p.Reasons) {
		p.seen = append(p.seen, map[model.TaskID]bool{})
	}
	if i := p.At[reason]; !p.seen[i][t] {
		p.seen[i][t] = true
		p.Counts[i]++
	}
}

// evict returns a finding if some task could be evicted for t; else it counts what protects the candidates and returns nil.
func (x *explainer) evict(w *engine.Need, t model.TaskID, preempt, room bool, held *protectedTasks) (*judge.Finding, error) {
	v := x.View()
	if err := v.Work.Spend(v.Tasks.Len(), v.Dims.Len()*max(x.Reclaim().Voters(), 1)); err != nil {
		return nil, err
	}
	victims, err := x.victimsFor(w, t, preempt, held)
	if err != nil || len(victims) == 0 {
		return nil, err
	}
	f := &judge.Finding{Check: judge.CheckEviction, Outcome: judge.Noted, Task: t, Tasks: victims, Preempt: preempt, Amount: x.Sum(victims)}
	if room && len(victims) <= maxEvicted {
		f.Enough, err = x.roomWithout(w.Needed, victims)
	}
	return f, err
}

// victimsFor returns the tasks that t may evict, in order of eviction; without any it counts what protects the candidates.
func (x *explainer) victimsFor(w *engine.Need, t model.TaskID, preempt bool, held *protectedTasks) ([]model.TaskID, error) {
	if !preempt {
		victims, err := x.reclaims.Known(t)
		if err != nil || len(victims) > 0 {
			x.Order().SortVictims(t, victims)
			return victims, err
		}
	}
	candidates, err := x.candidates(t, preempt)
	if err != nil {
		return nil, err
	}
	choice := x.choice(w, t, preempt, candidates)
	if len(choice.Victims) == 0 {
		return nil, x.protected(t, preempt, &choice, candidates, held)
	}
	x.Order().SortVictims(t, choice.Victims)
	return choice.Victims, nil
}

// candidates lists what Victims.Candidates does.
func (x *explainer) candidates(claimant model.TaskID, preempt bool) ([]model.TaskID, error) {
	if preempt {
		return x.Preempt().Candidates(claimant)
	}
	return x.reclaims.Candidates(x.View().QueueOf(claimant))
}

// choice decides which candidates t may evict; under a policy that plans, all tasks that the gang needs claim together.
func (x *explainer) choice(w *engine.Need, t model.TaskID, preempt bool, candidates []model.TaskID) engine.Choice {
	claim := &policy.Claim{Tasks: []model.TaskID{t}, Candidates: candidates}
	switch {
	case preempt:
		return x.Preempt().Choose(claim, false)
	case x.Reclaim().Plans():
		x.Order().SortVictims(t, candidates)
		return x.Reclaim().Choose(&policy.Claim{Tasks: w.Needed, Candidates: candidates, Room: policy.Room{Kind: policy.AnyNodes}}, false)
	}
	return x.Reclaim().Choose(claim, false)
}

// protected counts what protects candidates, and what keeps running tasks from being candidates that would be in the right queues.
func (x *explainer) protected(
	claimant model.TaskID, preempt bool, choice *engine.Choice, candidates []model.TaskID, held *protectedTasks,
) error {
	protected := choice.Protections(x.View())
	for _, t := range candidates {
		if check := protected[t]; check != nil {
			reason := check.Reason
			// What differs from candidate to candidate would make a reason of each.
			reason.Have, reason.Need, reason.Limit, reason.Queue, reason.Dimension = 0, 0, 0, model.None, -1
			held.protect(t, reason)
		}
	}
	v := x.View()
	looked := 0
	for _, j := range v.Present() {
		job := v.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			if looked++; v.Stopped(looked) {
				return policy.ErrStopped
			}
			if v.Status(t) != model.Running || preempt != (job.Queue == v.QueueOf(claimant)) {
				continue
			}
			reason, eligible := x.VictimsOf(preempt).Eligible(claimant, t)
			if !eligible && (reason.Code == policy.NotPreemptable || reason.Code == policy.QueueNotReclaimable) {
				reason.Queue = model.None
				held.protect(t, reason)
			}
		}
	}
	return nil
}

// roomWithout reports whether tasks could be allocated if others were gone.
func (x *explainer) roomWithout(tasks, gone []model.TaskID) (bool, error) {
	enough := false
	err := x.Tried(func() error {
		for _, other := range gone {
			x.Unbook(other, model.Failed)
		}
		if !x.Allocatable(tasks, policy.InSession, nil, nil) {
			return nil
		}
		placement, err := place.Tasks(x.Session, tasks, x.View().NodeOrder)
		enough = placement.Outcome == place.Placed
		return err
	})
	return enough, err
}
