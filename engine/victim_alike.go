package engine

import (
	"encoding/binary"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Reclaims finds which tasks claimants may reclaim in one state, once for all claimants that are alike.
type Reclaims struct {
	s *Session
	// Plainly: no claimants are treated as alike.
	Plainly bool
	// reclaimable are the tasks of all queues that the reclaim action considers; nil until needed.
	reclaimable []model.TaskID
	// found is what was found for some classes.
	found map[claimants]*reclaimed
}

// Reclaims returns what finds the tasks that claimants may reclaim in the present state.
func (h Host) Reclaims() Reclaims { return Reclaims{s: h.Session} }

// claimants are claimants that are alike, which may reclaim the same.
type claimants struct {
	// class holds the class of each plugin that chooses.
	class string
	// queue of the claimants; None: any.
	queue model.QueueID
}

// reclaimed is what claimants that are alike may reclaim.
type reclaimed struct {
	// victims may be of a claimant's own queue, which it may not reclaim.
	victims []model.TaskID
	// alone are the queues whose claimants are not among these: without the tasks of such a queue the tiers of the policy would be walked
	// otherwise.
	alone []model.QueueID
}

// alike returns the claimants that a task is one of; false: it is one by itself.
func (r *Reclaims) alike(claimant model.TaskID) (claimants, bool) {
	of := claimants{queue: model.None}
	if r.Plainly {
		return of, false
	}
	var key []byte
	for i := range r.s.by.reclaim {
		v := &r.s.by.reclaim[i]
		if v.class == nil {
			return of, false
		}
		class, local := v.class(claimant)
		if key = binary.AppendUvarint(key, class); !local {
			of.queue = r.s.view.QueueOf(claimant)
		}
	}
	of.class = string(key)
	return of, true
}

// Candidates lists the tasks that the reclaim action considers for a claimant of a queue, as Victims.Candidates does; for no queue it lists
// those of all queues. Those of all queues are listed once.
func (r *Reclaims) Candidates(mine model.QueueID) ([]model.TaskID, error) {
	if r.reclaimable == nil {
		all, err := r.s.Reclaim().candidates(model.None, model.None)
		if err != nil {
			return nil, err
		}
		// An empty list is known too.
		r.reclaimable = append(make([]model.TaskID, 0, len(all)), all...)
	}
	candidates := make([]model.TaskID, 0, len(r.reclaimable))
	for i, t := range r.reclaimable {
		if r.s.view.Stopped(i + 1) {
			return nil, policy.ErrStopped
		}
		if mine == model.None || r.s.view.QueueOf(t) != mine {
			candidates = append(candidates, t)
		}
	}
	return candidates, nil
}

// by chooses what the claimants that one of them stands for may reclaim.
func (r *Reclaims) by(of claimants, one model.TaskID) (*reclaimed, error) {
	candidates, err := r.Candidates(of.queue)
	if err != nil {
		return nil, err
	}
	found := &reclaimed{}
	// The tasks of a claimant's own queue are no candidates. That only matters where others are not chosen either.
	relied := func(tasks []model.TaskID) {
		q := r.s.view.QueueOf(tasks[0])
		if !slices.ContainsFunc(tasks, func(t model.TaskID) bool { return r.s.view.QueueOf(t) != q }) && !slices.Contains(found.alone, q) {
			found.alone = append(found.alone, q)
		}
	}
	if of.queue != model.None {
		relied = nil
	}
	claim := policy.Claim{Tasks: []model.TaskID{one}, Candidates: candidates}
	found.victims = r.s.chooseOn(r.s.by.reclaim, &claim, nil, relied).Victims
	return found, nil
}

// mostFound bounds the classes for which victims are remembered, each of which may have all tasks.
const mostFound = 4

// Known returns the tasks that a claimant may reclaim, in no particular order, if others are like it; none if there are none, or if it is
// one by itself.
func (r *Reclaims) Known(claimant model.TaskID) ([]model.TaskID, error) {
	of, ok := r.alike(claimant)
	if !ok {
		return nil, nil
	}
	found := r.found[of]
	if found == nil {
		var err error
		if found, err = r.by(of, claimant); err != nil {
			return nil, err
		}
		if r.found == nil || len(r.found) == mostFound {
			r.found = make(map[claimants]*reclaimed, mostFound)
		}
		r.found[of] = found
	}
	mine := r.s.view.QueueOf(claimant)
	if slices.Contains(found.alone, mine) {
		return nil, nil
	}
	victims := make([]model.TaskID, 0, len(found.victims))
	for _, t := range found.victims {
		if r.s.view.QueueOf(t) != mine {
			victims = append(victims, t)
		}
	}
	return victims, nil
}

// briefly makes plans for many claimants. What is the same for all of them is found once, and once more where something has moved: the
// candidates of each queue in their order of eviction that the other plugins of the planner's tier let go.
type briefly struct {
	s       *Session
	planner policy.Planner
	// others are the other plugins of the planner's tier. steady: what is listed of a queue stays the same until one of its tasks moves.
	others []voter
	steady bool
	// queues are those that have jobs, jobs those of each queue.
	queues []model.QueueID
	jobs   [][]model.JobID
	// class is the class of claimants that lists are for, by queue; listed: they are complete. at and back say when they were made.
	class  string
	lists  [][]model.TaskID
	listed bool
	at     []uint32
	back   uint64
	// sorted are lists, the one first of which victims are taken first.
	sorted []policy.QueueTasks
}

// brief returns what makes plans for many claimants in the present state; nil if the policy does not reclaim by plans of one tier, the
// first that chooses, if it orders the queues of victims by another plugin or by who claims, or if a plugin chooses by the tasks of several
// queues.
func (s *Session) brief() *briefly {
	if s.plans != nil {
		s.plans.s = s
		return s.plans
	}
	by := &s.by
	i := slices.IndexFunc(by.reclaim, func(v voter) bool { return v.planner != nil })
	if i < 0 || len(by.victimQueueOrder) > 0 || len(by.queueOrder) != 1 || by.queueOrder[0] != policy.QueueOrderer(by.reclaim[i].planner) {
		return nil
	}
	b := &briefly{s: s, planner: by.reclaim[i].planner, steady: by.steady()}
	for k := range by.reclaim {
		v := &by.reclaim[k]
		switch {
		case k == i, v.tier > by.reclaim[i].tier:
		case v.planner != nil, v.tier < by.reclaim[i].tier, v.class == nil:
			return nil
		default:
			b.others, b.steady = append(b.others, *v), b.steady && v.steady
		}
	}
	n := len(s.view.Queues)
	b.jobs, b.lists, b.at = make([][]model.JobID, n), make([][]model.TaskID, n), make([]uint32, n)
	for _, j := range s.view.Present() {
		q := s.view.Jobs.At(j).Queue
		if b.jobs[q] == nil {
			b.queues = append(b.queues, q)
		}
		b.jobs[q] = append(b.jobs[q], j)
	}
	s.plans = b
	return b
}

// steady reports whether the jobs and tasks of a queue keep their order until one of them moves.
func (t *table) steady() bool {
	return !slices.ContainsFunc(t.jobOrder, func(p policy.JobOrderer) bool { return !steady(p) }) &&
		!slices.ContainsFunc(t.taskOrder, func(p policy.TaskOrderer) bool { return !steady(p) })
}

func steady(plugin any) bool {
	p, ok := plugin.(policy.Steady)
	return ok && p.Steadily()
}

// ListedBytes returns the memory of the lists of candidates that are kept for further claims.
func (h Host) ListedBytes() int64 {
	if h.plans == nil {
		return 0
	}
	const perQueue = 128
	return perQueue*int64(len(h.view.Queues)) + 4*int64(h.view.Tasks.Len()+h.view.Jobs.Len())
}

// classOf returns the class of a claimant; false: it may be one by itself.
func (b *briefly) classOf(claimant model.TaskID) (string, bool) {
	var key []byte
	for i := range b.others {
		class, local := b.others[i].class(claimant)
		if !local {
			return "", false
		}
		key = binary.AppendUvarint(key, class)
	}
	return string(key), true
}

// plan returns the plan that Choose of Reclaim makes for a claim with the action's own candidates in their order of eviction. known is
// false if that must be asked itself. spend is called with the number of jobs and tasks before they are looked at.
func (b *briefly) plan(claim *policy.Claim, spend func(n int) error) (plan policy.Plan, known bool, err error) {
	class, ok := b.classOf(claim.Tasks[0])
	if !ok {
		return policy.Plan{}, false, nil
	}
	if err := b.renew(class, claim.Tasks[0], spend); err != nil {
		return policy.Plan{}, true, err
	}
	if err := b.s.view.Work.Spend(len(b.sorted), b.s.view.Dims.Len()); err != nil {
		return policy.Plan{}, true, err
	}
	if plan = b.planner.PlanBriefly(claim, b.sorted); plan.Stopped {
		return plan, true, policy.ErrStopped
	}
	return plan, true, nil
}

// renew brings the lists up to date for claimants of a class like one.
func (b *briefly) renew(class string, one model.TaskID, spend func(n int) error) error {
	moves, back := b.s.view.Moves()
	current, still := b.listed && b.class == class && b.back == back, slices.Equal(b.at, moves)
	if current && still && b.sorted != nil {
		return nil
	}
	all := !current || !b.steady && !still
	b.listed, b.class, b.back = false, class, back
	for _, q := range b.queues {
		if !all && b.at[q] == moves[q] {
			continue
		}
		n := len(b.jobs[q])
		for _, j := range b.jobs[q] {
			job := b.s.view.Jobs.At(j)
			n += int(job.EndTask - job.FirstTask)
		}
		if err := spend(n); err != nil {
			return err
		}
		list, err := b.s.Reclaim().candidatesOf(b.jobs[q], one, model.None)
		if err != nil {
			return err
		}
		sortVictims(b.s.view, &b.s.by, one, list)
		b.lists[q], b.at[q] = b.letGo(one, list), moves[q]
	}
	b.listed = true
	b.sortLists()
	return nil
}

// begin says that the order of the queues may have changed since the last claim.
func (b *briefly) begin() { b.sorted = nil }

// sortLists sorts the lists. By policy.Planner there is one order of the queues; victims are taken of the last first.
func (b *briefly) sortLists() {
	queues := slices.Clone(b.queues)
	b.s.Order().SortQueues(queues)
	b.sorted = make([]policy.QueueTasks, 0, len(queues))
	for _, q := range slices.Backward(queues) {
		if len(b.lists[q]) > 0 {
			b.sorted = append(b.sorted, policy.QueueTasks{Queue: q, Tasks: b.lists[q]})
		}
	}
}

// letGo returns the candidates of one queue that every other plugin of the tier lets go.
func (b *briefly) letGo(one model.TaskID, list []model.TaskID) []model.TaskID {
	left := slices.Clone(list)
	for i := range b.others {
		if victims, vote := b.others[i].choose(one, list, nil, nil); vote != policy.Abstain {
			left = intersect(left, victims)
		}
	}
	return slices.Clone(left)
}

// ReclaimPlan returns the plan of Choose of Reclaim for a claim with the action's own candidates in their order of eviction; nil if no plan
// decided. Candidates of the claim are not considered. It returns policy.ErrStopped if it is stopped, or a *policy.WorkError before work
// that costs more than is left.
func (s *Session) ReclaimPlan(claim *policy.Claim) (*policy.Plan, error) {
	if claim.Room.Kind == policy.AnyNodes {
		// Each task looks for a node with room, and then for one on which enough can be evicted.
		if err := s.view.Work.Spend(len(claim.Tasks), 2*len(s.view.NodeOrder)); err != nil {
			return nil, err
		}
	}
	spend := func(n int) error { return s.view.Work.Spend(n, s.view.Dims.Len()*max(len(s.by.reclaim), 1)) }
	if b := s.brief(); b != nil {
		b.begin()
		if plan, known, err := b.plan(claim, spend); known {
			return &plan, err
		}
	}
	if err := spend(s.view.Tasks.Len()); err != nil {
		return nil, err
	}
	all := *claim
	var err error
	if all.Candidates, err = s.Reclaim().Candidates(claim.Tasks[0]); err != nil {
		return nil, err
	}
	s.Order().SortVictims(claim.Tasks[0], all.Candidates)
	choice := s.chooseOn(s.by.reclaim, &all, nil, nil)
	if choice.Plan != nil && choice.Plan.Stopped || s.view.Stop != nil && s.view.Stop() {
		return nil, policy.ErrStopped
	}
	return choice.Plan, nil
}
