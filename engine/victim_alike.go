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
