package wire

import (
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
)

// chosenByChance reports whether another order of the candidates may have other victims: in one tier gang and capacity each name some of
// the candidates of one job, and not all. Only tiers up to the one that decided count, and Volcano has no plugin that plans.
func (s *Session) chosenByChance(candidates []model.TaskID, choice *engine.Choice) bool {
	if choice.Plan != nil {
		return false
	}
	for i := range choice.Ballots {
		one := &choice.Ballots[i]
		if one.Plugin != plan.Choosers[0] || choice.Tier >= 0 && one.Tier > choice.Tier {
			continue
		}
		for k := range choice.Ballots {
			other := &choice.Ballots[k]
			if other.Plugin == plan.Choosers[1] && other.Tier == one.Tier && s.partOfOneJob(candidates, one.Victims, other.Victims) {
				return true
			}
		}
	}
	return false
}

// partOfOneJob reports whether there is a job of which both lists have a candidate and neither has all.
func (s *Session) partOfOneJob(candidates, one, other []model.TaskID) bool {
	of := func(tasks []model.TaskID) map[model.JobID]int {
		counts := map[model.JobID]int{}
		for _, t := range tasks {
			counts[s.engine.View().Tasks.At(t).Job]++
		}
		return counts
	}
	all, others := of(candidates), of(other)
	for j, n := range of(one) {
		if m := others[j]; n < all[j] && m > 0 && m < all[j] {
			return true
		}
	}
	return false
}
