package engine

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Evictable is which tasks at least one of several claimants may evict, each by itself.
type Evictable struct {
	// Reclaim are tasks of other queues than the claimant's, Preempt those of its own queue, by number.
	Reclaim, Preempt []model.TaskID
	// Left are the claimants that were not looked at, because of the limit.
	Left []model.TaskID
}

// Evictable returns the tasks that Choose of Reclaim, or of Preempt, returns for at least one of the claimants with the action's own
// candidates. Claimants that are alike are answered for together. Once limit candidates have been considered, each as often as it was, the
// other claimants are left; the first one is always looked at. It returns policy.ErrStopped if it is stopped, or a *policy.WorkError before
// work that costs more than is left; what a brief plan costs is known once it is made.
func (s *Session) Evictable(claimants []model.TaskID, limit int) (*Evictable, error) {
	n := s.view.Tasks.Len()
	e := &evicting{
		Session: s, reclaims: s.Host().Reclaims(), plans: s.brief(), reclaim: newTaskSet(n), preempt: newTaskSet(n),
		jobs: make([][]model.JobID, len(s.view.Queues)),
	}
	if e.plans != nil {
		e.plans.begin()
	}
	reclaims, preempts := s.Reclaim().Runs(nil), s.Preempt().Runs(nil)
	for _, j := range s.view.Present() {
		q := s.view.Jobs.At(j).Queue
		e.jobs[q] = append(e.jobs[q], j)
	}
	found := &Evictable{}
	for i, group := range e.groups(claimants) {
		if i > 0 && e.considered >= limit {
			found.Left = append(found.Left, group.tasks...)
			continue
		}
		if reclaims {
			if err := e.reclaimBy(group); err != nil {
				return nil, err
			}
		}
		for k, t := range group.tasks {
			if i+k > 0 && e.considered >= limit {
				found.Left = append(found.Left, group.tasks[k:]...)
				break
			}
			if !preempts {
				continue
			}
			if err := e.preemptBy(t); err != nil {
				return nil, err
			}
		}
	}
	for t := range model.TaskID(n) {
		if e.reclaim.has(t) {
			found.Reclaim = append(found.Reclaim, t)
		}
		if e.preempt.has(t) {
			found.Preempt = append(found.Preempt, t)
		}
	}
	return found, nil
}

// evicting gathers the tasks that may be evicted.
type evicting struct {
	*Session

	reclaims Reclaims
	// plans is nil unless plans are made for many claimants together.
	plans            *briefly
	reclaim, preempt taskSet
	// jobs are those of each queue, by uid.
	jobs [][]model.JobID
	// considered counts candidates, each as often as it was considered.
	considered int
}

// group are claimants that are alike, or one by itself.
type group struct {
	claimants

	alone bool
	tasks []model.TaskID
}

// groups puts claimants that are alike together, in the order of the first of each.
func (e *evicting) groups(tasks []model.TaskID) []*group {
	var list []*group
	at := map[claimants]*group{}
	for i, t := range tasks {
		e.view.Yield(i)
		of, ok := e.reclaims.alike(t)
		g := at[of]
		if g == nil || !ok {
			g = &group{claimants: of, alone: !ok}
			list = append(list, g)
		}
		if ok {
			at[of] = g
		}
		g.tasks = append(g.tasks, t)
	}
	return list
}

// spend spends what a choice among so many tasks costs.
func (e *evicting) spend(tasks, voters int) error {
	e.considered += tasks
	return e.view.Work.Spend(tasks, e.view.Dims.Len()*max(voters, 1))
}

// reclaimBy adds the tasks that the claimants of a group may reclaim.
func (e *evicting) reclaimBy(g *group) error {
	if g.alone {
		return e.reclaimAlone(g.tasks[0])
	}
	if err := e.spend(e.view.Tasks.Len(), len(e.by.reclaim)); err != nil {
		return err
	}
	found, err := e.reclaims.by(g.claimants, g.tasks[0])
	if err != nil {
		return err
	}
	asked := map[model.QueueID]bool{}
	for _, q := range found.alone {
		asked[q] = false
	}
	// Of claimants of several queues each task is of another queue than one of them.
	queues, last := 0, model.QueueID(model.None)
	for _, t := range g.tasks {
		q := e.view.QueueOf(t)
		switch done, alone := asked[q]; {
		case done:
		case alone:
			err = e.reclaimAlone(t)
		default:
			queues, last = queues+1, q
		}
		if err != nil {
			return err
		}
		asked[q] = true
	}
	for _, t := range found.victims {
		if queues > 1 || queues == 1 && e.view.QueueOf(t) != last {
			e.reclaim.add(t)
		}
	}
	return nil
}

// reclaimAlone adds the tasks that one claimant may reclaim.
func (e *evicting) reclaimAlone(t model.TaskID) error {
	if e.plans != nil {
		if known, err := e.reclaimByPlan(t); known {
			return err
		}
	}
	if err := e.spend(e.view.Tasks.Len(), len(e.by.reclaim)); err != nil {
		return err
	}
	candidates, err := e.reclaims.Candidates(e.view.QueueOf(t))
	if err != nil {
		return err
	}
	if e.Reclaim().Plans() {
		e.Order().SortVictims(t, candidates)
	}
	return e.add(e.reclaim, e.by.reclaim, t, candidates)
}

// reclaimByPlan adds the tasks that one claimant may reclaim by a plan. False: they must be found otherwise.
func (e *evicting) reclaimByPlan(t model.TaskID) (bool, error) {
	spend := func(tasks int) error { return e.spend(tasks, len(e.by.reclaim)) }
	plan, known, err := e.plans.plan(&policy.Claim{Tasks: []model.TaskID{t}}, spend)
	if !known || err != nil {
		return known, err
	}
	for _, v := range plan.Victims {
		e.reclaim.add(v)
	}
	return true, spend(plan.Considered)
}

// preemptBy adds the tasks that a claimant may preempt.
func (e *evicting) preemptBy(t model.TaskID) error {
	q, tasks := e.view.QueueOf(t), 0
	for _, j := range e.jobs[q] {
		job := e.view.Jobs.At(j)
		tasks += int(job.EndTask - job.FirstTask)
	}
	if err := e.spend(tasks, len(e.by.preempt)); err != nil {
		return err
	}
	candidates, err := e.Preempt().candidatesOf(e.jobs[q], t, q)
	if err != nil || len(candidates) == 0 {
		return err
	}
	return e.add(e.preempt, e.by.preempt, t, candidates)
}

// add adds the candidates that a claimant may evict.
func (e *evicting) add(to taskSet, voters []voter, t model.TaskID, candidates []model.TaskID) error {
	choice := e.chooseOn(voters, &policy.Claim{Tasks: []model.TaskID{t}, Candidates: candidates}, nil, nil)
	if choice.Plan != nil && choice.Plan.Stopped || e.view.Stop != nil && e.view.Stop() {
		return policy.ErrStopped
	}
	for _, v := range choice.Victims {
		to.add(v)
	}
	return nil
}
