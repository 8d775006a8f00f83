package delegation

import (
	"fmt"
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/policy/pdb"
	"github.com/apportion/apportion/engine/policy/quota"
	"github.com/apportion/apportion/engine/policy/sla"
	"github.com/apportion/apportion/engine/policy/tdm"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
)

// function is a decision that Volcano offers to an extender, and that plugins take part in by votes.
type function struct {
	decision apportionv1.Decision
	// verb is the extender's name for it, flag the switch of a plugin, and event the extender's name for its outcome, if there is one.
	verb, flag, event string
	// others are plugins of Volcano v1.15.1 that take part in it and that Apportion does not decide for.
	others []string
	// obstacleOf returns why a vote of another plugin keeps Apportion's from being the same as those of the plugins that it decides for, if
	// the extender is asked where it is; empty if nothing does. Volcano's walks are in pkg/scheduler/framework/session_plugins.go.
	obstacleOf func(other voter, ours []voter, where slot) string
}

const (
	jobEnqueued = apportionv1.Decision_DECISION_JOB_ENQUEUED
	reclaimable = apportionv1.Decision_DECISION_RECLAIMABLE
)

// functions are in the order in which they are listed. The extender's other functions stay with the plugins: predicate and prioritize would
// cost a request for each task and node, and a failure of jobReady counts as ready.
var functions = []function{
	{
		decision: apportionv1.Decision_DECISION_OVERUSED, verb: "queueOverused", flag: "enabledOverused",
		// One plugin's yes is final, and plugins do not see each other's votes.
		obstacleOf: func(voter, []voter, slot) string { return "" },
	},
	{
		// Volcano 1.16 has the event, and 1.15 ignores its argument.
		decision: jobEnqueued, verb: "jobEnqueueable", flag: "enableJobEnqueued", event: "jobEnqueued",
		others: []string{"resourcequota", "sla"}, obstacleOf: admissionObstacle,
	},
	{
		decision: reclaimable, verb: "reclaimable", flag: "enableReclaimable",
		others: []string{"pdb"}, obstacleOf: reclaimObstacle,
	},
	{
		decision: apportionv1.Decision_DECISION_PREEMPTABLE, verb: "preemptable", flag: "enablePreemptable",
		others: []string{"pdb", "tdm"}, obstacleOf: victimObstacle,
	},
}

// unsent are the plugins that read what Volcano does not send to an extender: quotas, budgets, zones, how long jobs may wait. Apportion
// does not decide for them there.
var unsent = []string{sla.Name, quota.Name, pdb.Name, tdm.Name}

// otherOf returns the name of a plugin that Apportion does not decide for, or "".
func otherOf(p *apportionv1.Plugin) string {
	if row, ok := catalogue.Of(p); ok && slices.Contains(unsent, row.Name) {
		return row.Name
	}
	return p.GetUndecided().GetName()
}

// silent are the plugins of Volcano v1.15.1 that take part in none of the functions and that Apportion does not implement. Any other plugin
// is assumed to take part in all of them.
var silent = []string{
	"deviceshare", "resource-strategy-fit", "task-topology", "numa-aware", "rescheduling", "usage", "network-topology-aware",
}

// orders are the plugins of Volcano v1.15.1 that take part in the order of jobs or tasks and that Apportion does not decide for. Any other
// plugin is assumed to take part in an order, whatever is switched off: the order of victims' queues has no switch.
var orders = map[string]apportionv1.Decision{
	"sla": apportionv1.Decision_DECISION_JOB_ORDER, "tdm": apportionv1.Decision_DECISION_JOB_ORDER,
	"task-topology": apportionv1.Decision_DECISION_TASK_ORDER,
}

// ordersVictims reports whether a plugin that Apportion does not implement takes part in the session's order of jobs and tasks.
func ordersVictims(name string, disabled []apportionv1.Decision) bool {
	if order, ok := orders[name]; ok {
		return !slices.Contains(disabled, order)
	}
	return !isVolcanos(name)
}

// voter is a plugin that takes part in a function, or that another one may depend on.
type voter struct {
	name string
	// tier and place count from 0.
	tier, place int
	line        int
	// decided says that Apportion implements it, votes that it takes part in the function, orders that it changes the order of victims.
	decided, votes, orders bool
}

func decided(v voter) bool { return v.decided }

// voters are the plugins that take part in a function and are not switched off there, and those that order victims, in the order of the
// walk.
func voters(f *function, policy *apportionv1.Policy, d *document) []voter {
	var list []voter
	for tier, t := range policy.GetTiers() {
		for place, p := range t.GetPlugins() {
			v := voter{tier: tier, place: place, line: d.plugin(tier, place).Line}
			v.votes = !slices.Contains(p.GetDisabledDecisions(), f.decision)
			if other := otherOf(p); other != "" {
				v.name, v.orders = other, f.decision == reclaimable && ordersVictims(other, p.GetDisabledDecisions())
				v.votes = v.votes && (slices.Contains(f.others, other) || !isVolcanos(other))
			} else if row, ok := catalogue.Of(p); ok {
				v.name, v.decided = row.Name, true
				v.votes = v.votes && row.Decisions.Has(engine.Decision(f.decision))
			}
			if v.votes || v.orders {
				list = append(list, v)
			}
		}
	}
	return list
}

// isVolcanos reports whether a plugin that Apportion does not implement is one of Volcano's own.
func isVolcanos(name string) bool {
	return slices.Contains(silent, name) ||
		slices.ContainsFunc(functions, func(f function) bool { return slices.Contains(f.others, name) })
}

// slot is the position of the extender: in a tier, before the plugin of this number.
type slot struct{ tier, place int }

// choose returns the slot in which most functions can be delegated, of several the first one at the end of a tier; false if none can be.
func choose(all [][]voter, policy *apportionv1.Policy) (best slot, found bool) {
	most := 0
	try := func(s slot) {
		n := 0
		for i, list := range all {
			if slices.ContainsFunc(list, decided) && functions[i].obstacle(list, s) == nil {
				n++
			}
		}
		if n > most {
			best, most = s, n
		}
	}
	for tier, t := range policy.GetTiers() {
		if n := len(t.GetPlugins()); n > 0 {
			try(slot{tier, n})
		}
	}
	for tier, t := range policy.GetTiers() {
		for place := range t.GetPlugins() {
			try(slot{tier, place})
		}
	}
	return best, most > 0
}

// obstacle returns what keeps a function from being delegated to an extender in a slot; nil if nothing does.
func (f *function) obstacle(list []voter, where slot) *Kept {
	ours := slices.DeleteFunc(slices.Clone(list), func(v voter) bool { return !v.decided })
	for _, other := range list {
		if other.decided {
			continue
		}
		if reason := f.obstacleOf(other, ours, where); reason != "" {
			return &Kept{Verb: f.verb, Line: other.line, Reason: reason}
		}
	}
	return nil
}

// elsewhere is the reason where the extender would have to stand in another place than for the other functions.
const elsewhere = "the extender would have to be asked before or after %s, where another decision cannot be delegated"

// reclaimObstacle: capacity takes candidates in the session's order, until what a queue has over is used up, so the order decides which.
func reclaimObstacle(other voter, ours []voter, where slot) string {
	switch capacity := func(v voter) bool { return v.name == "capacity" }; {
	case other.orders && slices.ContainsFunc(ours, capacity):
		return fmt.Sprintf("capacity chooses victims in the order of jobs and tasks, in which %s takes part", other.name)
	case !other.votes:
		return ""
	}
	return victimObstacle(other, ours, where)
}

// victimObstacle: the first tier that names victims decides. Within a tier lists are intersected one after the other, a list that is empty
// ends the tier, and after an intersection that is empty the next list counts alone; so what plugins of one tier say cannot be put
// together beforehand.
func victimObstacle(other voter, ours []voter, where slot) string {
	first, last := ours[0], ours[len(ours)-1]
	switch {
	case other.tier >= first.tier && other.tier <= last.tier:
		return fmt.Sprintf("%s names victims in the same tier as plugins that Apportion implements, or between them", other.name)
	case (other.tier < first.tier) != (other.tier < where.tier) || other.tier == where.tier:
		return fmt.Sprintf(elsewhere, other.name)
	}
	return ""
}

// admissionObstacle: a rejection by one plugin is final, and the first tier with a permit admits the job. Proportion and capacity book a
// job when they permit it, but overcommit books it when it is admitted, and Apportion knows only its own vote.
func admissionObstacle(other voter, ours []voter, where slot) string {
	books := slices.ContainsFunc(ours, func(v voter) bool { return v.name == "overcommit" })
	first, last := ours[0], ours[len(ours)-1]
	one := first.tier == last.tier
	before := one && other.tier == first.tier && other.place < first.place
	after := one && other.tier == first.tier && other.place > last.place
	switch {
	case other.tier >= first.tier && other.tier <= last.tier && !before && !after:
		return fmt.Sprintf("%s votes between plugins that Apportion implements", other.name)
	case books && (after || other.tier < first.tier):
		return fmt.Sprintf("overcommit books admitted jobs, and Apportion does not know the vote of %s", other.name)
	case before && (where.tier != other.tier || where.place <= other.place),
		after && (where.tier != other.tier || where.place > other.place),
		other.tier < first.tier && other.tier >= where.tier,
		other.tier > last.tier && other.tier <= where.tier:
		return fmt.Sprintf(elsewhere, other.name)
	}
	return ""
}
