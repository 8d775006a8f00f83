package engine

import (
	"encoding/binary"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

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
