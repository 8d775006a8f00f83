package client

import (
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
)

// Tier returns a tier of plugins with their default settings, by the names that Plugins returns.
type Tier []string

// Plugins returns the names of plugins, in no particular order: Volcano's name if Volcano has the plugin, with a suffix for some forms,
// such as capacity/hierarchical.
func Plugins() []string { return catalogue.Forms() }

// Policy returns a policy of the given tiers, combined as in Volcano.
func Policy(tiers ...Tier) (*apportionv1.Policy, error) {
	policy := &apportionv1.Policy{TierWalk: apportionv1.TierWalk_TIER_WALK_VOLCANO}
	for _, names := range tiers {
		tier, err := catalogue.Tier(names)
		if err != nil {
			return nil, err
		}
		policy.Tiers = append(policy.Tiers, tier)
	}
	return policy, nil
}

// VolcanoDefault returns Volcano's default configuration, without the plugins that take no part in Apportion's decisions (predicates,
// nodeorder): priority, gang and conformance; overcommit, drf and proportion.
func VolcanoDefault() *apportionv1.Policy {
	policy, _ := Preset("proportion")
	return policy
}

// Presets returns the valid names for Preset.
func Presets() []string {
	var names []string
	for name := range catalogue.Presets() {
		names = append(names, name)
	}
	return names
}

// Preset returns a policy by name, and whether it exists: Volcano's default configuration with the division of that name, such as
// proportion (the default itself) or capacity-hierarchical; fair, kueue; or volcano, the configuration that Volcano's installers ship. Every
// server has these as names of policies.
func Preset(name string) (*apportionv1.Policy, bool) { return catalogue.Preset(name) }
