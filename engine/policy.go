package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Decision is a kind of decision in which a plugin takes part; the values are those of the contract's Decision.
type Decision uint8

// The decisions.
const (
	QueueOrder       Decision = 1
	JobOrder         Decision = 2
	TaskOrder        Decision = 3
	JobReady         Decision = 4
	JobPipelined     Decision = 5
	JobStarving      Decision = 6
	JobEnqueued      Decision = 7
	Overused         Decision = 8
	Allocatable      Decision = 9
	Preemptive       Decision = 10
	Reclaimable      Decision = 11
	Preemptable      Decision = 12
	Predicate        Decision = 13
	NodeOrder        Decision = 14
	JobValid         Decision = 15
	VictimQueueOrder Decision = 16
	Victim           Decision = 17
)

// Decisions is a set of decisions.
type Decisions uint32

// DecisionsOf returns the set of the given decisions.
func DecisionsOf(list ...Decision) Decisions { return Decisions(0).With(list...) }

// With returns the set with more decisions in it.
func (s Decisions) With(more ...Decision) Decisions {
	for _, d := range more {
		s |= 1 << d
	}
	return s
}

// Has reports whether d is in the set.
func (s Decisions) Has(d Decision) bool { return s>>d&1 != 0 }

// absentee is a plugin that is not modelled, with the decisions that it votes on.
type absentee struct {
	name  string
	votes Decisions
}

// NotModelled returns why a decision is not known: the first plugin of the policy that votes on it and is not modelled; false if there is
// none.
func (h Host) NotModelled(d Decision) (policy.Reason, bool) {
	for _, a := range h.by.absent {
		if a.votes.Has(d) {
			return policy.Because(a.name, policy.PluginNotModelled, model.None), true
		}
	}
	return policy.Reason{}, false
}

// Entry is a plugin in a tier.
type Entry struct {
	Plugin policy.Plugin
	// Disabled are the decisions from which the plugin is excluded.
	Disabled Decisions
}

// Tier is a list of plugins that decide together.
type Tier []Entry

// Walk selects how tiers are combined when plugins choose victims.
type Walk uint8

const (
	// Strict lets the first tier in which some plugin voted decide, even if there are no victims.
	Strict Walk = iota
	// Volcano lets the next plugin start afresh after an empty intersection, and a tier without victims leaves the decision to the next
	// (pkg/scheduler/framework/session_plugins.go, Reclaimable and Preemptable).
	Volcano
)

// Policy is the policy of a session.
type Policy struct {
	Tiers []Tier
	Walk  Walk
	// Release is the release of Volcano whose decisions the plugins take.
	Release policy.Release
	// Actions are what a cycle does, in order. nil: the policy does not say, and questions are answered as if it did everything.
	Actions []string
}

// Check returns a *model.Error if a plugin occurs twice, because its votes would be counted twice, or beside one that excludes it.
func (p Policy) Check() error {
	var faults model.Error
	seen := map[string]string{}
	for i, tier := range p.Tiers {
		for k, entry := range tier {
			path := fmt.Sprintf("tiers[%d].plugins[%d]", i, k)
			if entry.Plugin == nil {
				faults.Add(path, "no plugin is named")
				continue
			}
			name := entry.Plugin.Name()
			if first, twice := seen[name]; twice {
				faults.Add(path, "plugin %q is %s already", name, first)
				continue
			}
			seen[name] = path
		}
	}
	p.exclude(seen, &faults)
	return faults.OrNil()
}

// exclude adds the plugins that another one excludes. paths has where each plugin is, by name.
func (p Policy) exclude(paths map[string]string, faults *model.Error) {
	for _, tier := range p.Tiers {
		for _, entry := range tier {
			excluder, ok := entry.Plugin.(policy.Excluder)
			if !ok {
				continue
			}
			for _, other := range slices.Sorted(maps.Keys(paths)) {
				if why := excluder.Excludes(other); why != "" {
					name := entry.Plugin.Name()
					faults.Add(paths[other], "plugin %q does not go with %q, which is %s: %s", other, name, paths[name], why)
				}
			}
		}
	}
}
