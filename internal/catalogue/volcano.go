package catalogue

import (
	"iter"
	"slices"
)

// others are the plugins of Volcano v1.15.1 that have no row (pkg/scheduler/plugins/factory.go).
var others = []string{
	"deviceshare", "extender", "network-topology-aware", "nodeorder", "numa-aware", "pdb", "predicates", "rescheduling",
	"resource-strategy-fit",
	"resourcequota", "sla", "task-topology", "tdm", "usage",
}

// VolcanoPlugins yields the names of all plugins of Volcano, some of them twice.
func VolcanoPlugins() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range Policies {
			if p := &Policies[i]; p.Volcano && !yield(p.Name) {
				return
			}
		}
		slices.Values(others)(yield)
	}
}

// VolcanoHas reports whether Volcano has a plugin of this name.
func VolcanoHas(name string) bool {
	for known := range VolcanoPlugins() {
		if known == name {
			return true
		}
	}
	return false
}
