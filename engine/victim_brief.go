package engine

import (
	"encoding/binary"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// briefly makes plans for many claimants in one state. What is the same for all of them is found once: the candidates of each queue in
// their order of eviction that the other plugins of the planner's tier let go, and the order of the queues.
type briefly struct {
	s       *Session
	planner policy.BriefPlanner
	// others are the other plugins of the planner's tier.
	others []voter
	// lists are those of each class of claimants.
	lists map[string][][]model.TaskID
}

// brief returns what makes plans for many claimants; nil if the policy does not reclaim by plans of one tier, the first that chooses, if
// it orders the queues of victims by another plugin or by who claims, or if a plugin chooses by who claims or by the tasks of several
// queues.
func (s *Session) brief() *briefly {
	by := &s.by
	i := slices.IndexFunc(by.reclaim, func(v voter) bool { return v.brief != nil })
	if i < 0 || len(by.victimQueueOrder) > 0 || len(by.queueOrder) != 1 || by.queueOrder[0] != policy.QueueOrderer(by.reclaim[i].brief) {
		return nil
	}
	b := &briefly{s: s, planner: by.reclaim[i].brief, lists: map[string][][]model.TaskID{}}
	for k := range by.reclaim {
		v := &by.reclaim[k]
		switch {
		case k == i, v.tier > by.reclaim[i].tier:
		case v.planner != nil, v.tier < by.reclaim[i].tier, v.class == nil:
			return nil
		default:
			b.others = append(b.others, *v)
		}
	}
	return b
}

// class returns the class of a claimant; false: it may be one by itself.
func (b *briefly) class(claimant model.TaskID) (string, bool) {
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
// false if that must be asked itself. spend is called with the number of tasks before they are listed.
func (b *briefly) plan(claim *policy.Claim, spend func(tasks int) error) (plan policy.Plan, known bool, err error) {
	class, ok := b.class(claim.Tasks[0])
	if !ok {
		return policy.Plan{}, false, nil
	}
	lists, listed := b.lists[class]
	if !listed {
		if err := spend(b.s.view.Tasks.Len()); err != nil {
			return policy.Plan{}, true, err
		}
		if lists, err = b.list(claim.Tasks[0]); err != nil {
			return policy.Plan{}, true, err
		}
		if len(b.lists) == mostFound {
			clear(b.lists)
		}
		b.lists[class] = lists
	}
	if err := b.s.view.Work.Spend(len(lists), b.s.view.Dims.Len()); err != nil {
		return policy.Plan{}, true, err
	}
	if plan = b.planner.PlanBriefly(claim, lists); plan.Stopped {
		return plan, true, policy.ErrStopped
	}
	return plan, true, nil
}

// list lists the candidates of each queue for claimants like one, the queue first of which victims are taken first.
func (b *briefly) list(one model.TaskID) ([][]model.TaskID, error) {
	s := b.s
	jobs := make([][]model.JobID, len(s.view.Queues))
	var queues []model.QueueID
	for _, j := range s.view.Present() {
		q := s.view.Jobs.At(j).Queue
		if jobs[q] == nil {
			queues = append(queues, q)
		}
		jobs[q] = append(jobs[q], j)
	}
	s.Order().SortQueues(queues)
	slices.Reverse(queues)
	lists := make([][]model.TaskID, 0, len(queues))
	for _, q := range queues {
		list, err := s.Reclaim().candidatesOf(jobs[q], one, model.None)
		if err != nil {
			return nil, err
		}
		sortVictims(s.view, &s.by, one, list)
		if list = b.letGo(one, list); len(list) > 0 {
			lists = append(lists, list)
		}
	}
	return lists, nil
}

// letGo returns the candidates of one queue that every other plugin of the tier lets go.
func (b *briefly) letGo(one model.TaskID, list []model.TaskID) []model.TaskID {
	all := list
	for i := range b.others {
		victims, vote := b.others[i].choose(one, all, nil, nil)
		if vote != policy.Abstain {
			list = intersect(slices.Clone(list), victims)
		}
	}
	return list
}
