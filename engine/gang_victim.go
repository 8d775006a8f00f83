package engine

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
)

// UnifiedEvictable returns the candidates that may be evicted for a whole job, as Volcano's actions gangpreempt and gangreclaim ask: the
// tiers are combined as for other victims, and no plugin is excluded.
func (h Host) UnifiedEvictable(claimant model.JobID, candidates []model.TaskID) []model.TaskID {
	choice := Choice{Tier: -1}
	for _, e := range h.by.gangs {
		ballot := Ballot{Plugin: e.name, Tier: e.tier}
		ballot.Victims, ballot.Vote = e.part.GangEvictable(claimant, candidates, nil)
		choice.Ballots = append(choice.Ballots, ballot)
	}
	h.walk(&choice, nil)
	return choice.Victims
}

// VictimTasks returns those of the running tasks that Volcano's action shuffle evicts, in their order: the first tier with a plugin that
// names some decides, and all that its plugins name go.
func (h Host) VictimTasks(running []model.TaskID) []model.TaskID {
	var chosen []model.TaskID
	for i, e := range h.by.shuffle {
		if i > 0 && e.tier != h.by.shuffle[i-1].tier && len(chosen) > 0 {
			break
		}
		chosen = e.part.Shuffled(running, chosen)
	}
	if len(chosen) == 0 {
		return nil
	}
	return intersect(slices.Clone(running), chosen)
}
