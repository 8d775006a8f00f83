package plan

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Choosers are the plugins that name some tasks of a job, which ones by an order: gang by that of the candidates, which is random in
// Volcano.
var Choosers = [2]string{"gang", "capacity"}

// ByChance reports whether Volcano may evict none of the victims of a plan: gang and capacity of one tier let a victim go, and gang could
// not let all tasks of its job on the node go, so that it may name another one first.
func (p *Plan) ByChance(v *policy.View) bool {
	return slices.ContainsFunc(p.Victims, func(e Evicted) bool {
		if e.Own || slices.ContainsFunc(Choosers[:], func(plugin string) bool { return !slices.Contains(e.Plugins, plugin) }) {
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
