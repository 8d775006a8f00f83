package client

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Tier is a tier of plugins by Volcano's names, with their default settings: proportion, capacity, drf, gang, priority, conformance, cdp,
// binpack, nodegroup, overcommit; and hierarchical forms of three: capacity/hierarchical, drf/hierarchical, nodegroup/hierarchical.
type Tier []string

// Policy is a policy of the given tiers, combined as Volcano combines them.
func Policy(tiers ...Tier) (*apportionv1.Policy, error) {
	policy := &apportionv1.Policy{TierWalk: apportionv1.TierWalk_TIER_WALK_VOLCANO}
	for _, names := range tiers {
		tier := &apportionv1.Tier{}
		for _, name := range names {
			plugin, ok := plugins[name]
			if !ok {
				return nil, fmt.Errorf("no plugin %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(plugins)), ", "))
			}
			tier.Plugins = append(tier.Plugins, plugin())
		}
		policy.Tiers = append(policy.Tiers, tier)
	}
	return policy, nil
}

// VolcanoDefault is the configuration that Volcano uses if it is given none, without the plugins that take no part in the decisions made
// here (predicates, nodeorder): priority, gang and conformance; overcommit, drf and proportion.
func VolcanoDefault() *apportionv1.Policy {
	return preset("proportion")
}

// Presets are the names that Preset knows.
func Presets() []string {
	return []string{"proportion", "capacity", "capacity-hierarchical", "drf-hierarchical"}
}

// Preset is Volcano's default configuration with the division of a name: proportion (the default itself), capacity,
// capacity-hierarchical, or drf-hierarchical.
func Preset(name string) (*apportionv1.Policy, bool) {
	if !slices.Contains(Presets(), name) {
		return nil, false
	}
	return preset(name), true
}

func preset(name string) *apportionv1.Policy {
	dividing := Tier{"drf", "proportion"}
	switch name {
	case "capacity":
		dividing = Tier{"drf", "capacity"}
	case "capacity-hierarchical":
		dividing = Tier{"drf", "capacity/hierarchical"}
	case "drf-hierarchical":
		dividing = Tier{"drf/hierarchical"}
	}
	policy := &apportionv1.Policy{TierWalk: apportionv1.TierWalk_TIER_WALK_VOLCANO}
	for _, names := range []Tier{{"priority", "gang", "conformance"}, append(Tier{"overcommit"}, dividing...)} {
		tier := &apportionv1.Tier{}
		for _, name := range names {
			tier.Plugins = append(tier.Plugins, plugins[name]())
		}
		policy.Tiers = append(policy.Tiers, tier)
	}
	return policy
}

// plugins makes plugins by name.
var plugins = map[string]func() *apportionv1.Plugin{
	"proportion": func() *apportionv1.Plugin {
		return &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Proportion{Proportion: &apportionv1.Proportion{}}}
	},
	"capacity": func() *apportionv1.Plugin {
		return &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Capacity{Capacity: &apportionv1.Capacity{}}}
	},
	"capacity/hierarchical": func() *apportionv1.Plugin {
		return &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Capacity{Capacity: &apportionv1.Capacity{Hierarchical: true}}}
	},
	"drf": func() *apportionv1.Plugin {
		return &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Drf{Drf: &apportionv1.Drf{}}}
	},
	"drf/hierarchical": func() *apportionv1.Plugin {
		return &apportionv1.Plugin{Plugin: &apportionv1.Plugin_HierarchicalDrf{HierarchicalDrf: &apportionv1.HierarchicalDrf{}}}
	},
	"gang": func() *apportionv1.Plugin {
		return &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Gang{Gang: &apportionv1.Gang{}}}
	},
	"priority": func() *apportionv1.Plugin {
		return &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Priority{Priority: &apportionv1.Priority{}}}
	},
	"conformance": func() *apportionv1.Plugin {
		return &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Conformance{Conformance: &apportionv1.Conformance{}}}
	},
	"cdp": func() *apportionv1.Plugin {
		return &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Cooldown{Cooldown: &apportionv1.Cooldown{}}}
	},
	"binpack": func() *apportionv1.Plugin {
		return &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Binpack{Binpack: &apportionv1.Binpack{}}}
	},
	"nodegroup": func() *apportionv1.Plugin {
		return &apportionv1.Plugin{Plugin: &apportionv1.Plugin_NodeGroup{NodeGroup: &apportionv1.NodeGroup{}}}
	},
	"nodegroup/hierarchical": func() *apportionv1.Plugin {
		return &apportionv1.Plugin{Plugin: &apportionv1.Plugin_NodeGroup{NodeGroup: &apportionv1.NodeGroup{Hierarchical: true}}}
	},
	"overcommit": func() *apportionv1.Plugin {
		return &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Overcommit{Overcommit: &apportionv1.Overcommit{}}}
	},
}
