package catalogue

import "github.com/apportion/apportion/engine"

// unmodelled are the plugins of Volcano v1.15.1 that this program has no policy for, with the decisions that they vote on. A name that is
// neither here nor in Policies is none of Volcano's: its scheduler leaves it out.
var unmodelled = map[string]engine.Decisions{
	"deviceshare": engine.DecisionsOf(engine.Predicate, engine.NodeOrder),
	"extender": engine.DecisionsOf(engine.JobEnqueued, engine.JobReady, engine.Overused, engine.Reclaimable, engine.Preemptable,
		engine.Predicate, engine.NodeOrder),
	"network-topology-aware": engine.DecisionsOf(engine.NodeOrder),
	"numa-aware":             engine.DecisionsOf(engine.Predicate, engine.NodeOrder),
	"rescheduling":           engine.DecisionsOf(engine.Victim),
	"resource-strategy-fit":  engine.DecisionsOf(engine.Predicate, engine.NodeOrder),
	"task-topology":          engine.DecisionsOf(engine.TaskOrder, engine.NodeOrder),
	"usage":                  engine.DecisionsOf(engine.Predicate, engine.NodeOrder),
}
