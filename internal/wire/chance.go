package wire

import (
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
)

// choosers are the plugins that name some tasks of a job, which ones by an order: gang by that of the candidates, which is random in
// Volcano.
var choosers = [2]string{"gang", "capacity"}

// chosenByChance reports whether another order of the candidates may have other victims: in one tier gang and capacity each name some of
// the candidates of one job, and not all. Only tiers up to the one that decided count, and Volcano has no plugin that plans.
func (s *Session) chosenByChance(candidates []model.TaskID, choice *engine.Choice) bool {
	if choice.Plan != nil {
		return false
	}
	for i := range choice.Ballots {
		one := &choice.Ballots[i]
		if one.Plugin != choosers[0] || choice.Tier >= 0 && one.Tier > choice.Tier {
			continue
		}
		for k := range choice.Ballots {
			other := &choice.Ballots[k]
			if other.Plugin == choosers[1] && other.Tier == one.Tier && s.partOfOneJob(candidates, one.Victims, other.Victims) {
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

// plannedByChance reports whether Volcano may evict none of the victims of a plan: gang and capacity of one tier let a victim go, and gang
// could not let all tasks of its job on the node go, so that it may name another one first.
func (s *Session) plannedByChance(p *plan.Plan) bool {
	v := s.engine.View()
	return slices.ContainsFunc(p.Victims, func(e plan.Evicted) bool {
		if e.Own || slices.ContainsFunc(choosers[:], func(plugin string) bool { return !slices.Contains(e.Plugins, plugin) }) {
			return false
		}
		j := v.Tasks.At(e.Task).Job
		job, beside := v.Jobs.At(j), 0
		for t := job.FirstTask; t < job.EndTask; t++ {
			if v.NodeOf(t) == e.Node && v.Status(t) == model.Running && v.Tasks.At(t).Preemptable {
				beside++
			}
		}
		return beside > int(v.Account(j).Ready()-job.MinAvailable)
	})
}
