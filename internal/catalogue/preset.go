package catalogue

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Installed is the name of the preset that is the configuration which Volcano's installers ship.
const Installed = "volcano"

// installed are the plugins of that configuration, tier by tier; spared are those that take no part in preemption there.
var (
	installed = [][]string{{"priority", "gang", "conformance"}, {"overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"}}
	spared    = []string{"gang", "drf"}
)

// OwnPreset returns the tiers of the preset of a policy that Volcano does not have; false if Volcano has it, or there is no such preset.
func OwnPreset(name string) ([][]string, bool) {
	for i := range Policies {
		if p := &Policies[i]; !p.Volcano && p.Name == name && len(p.Forms) > 0 && p.Forms[0].Preset != nil {
			return p.Forms[0].Preset, true
		}
	}
	return nil, false
}

// Presets yields the presets with their names and tiers: each divides by one form and has its name, with a dash instead of the slash; and
// the configuration of Volcano's installers.
func Presets() iter.Seq2[string, [][]string] {
	return func(yield func(string, [][]string) bool) {
		for i := range Policies {
			for _, f := range Policies[i].Forms {
				if f.Preset != nil && !yield(strings.ReplaceAll(f.Name, "/", "-"), f.Preset) {
					return
				}
			}
		}
		yield(Installed, installed)
	}
}

// Preset returns the policy of a preset, and whether there is one of that name. The caller owns the message.
func Preset(name string) (*apportionv1.Policy, bool) {
	for known, tiers := range Presets() {
		if known != name {
			continue
		}
		out := &apportionv1.Policy{TierWalk: apportionv1.TierWalk_TIER_WALK_VOLCANO}
		for _, names := range tiers {
			tier := &apportionv1.Tier{}
			for _, form := range names {
				tier.Plugins = append(tier.Plugins, presetPlugin(name, form))
			}
			out.Tiers = append(out.Tiers, tier)
		}
		return out, true
	}
	return nil, false
}

// presetPlugin returns a plugin of a preset. One without a form takes no part in decisions.
func presetPlugin(preset, form string) *apportionv1.Plugin {
	p, ok := Plugin(form)
	if !ok {
		return &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Undecided{Undecided: &apportionv1.Undecided{Name: form}}}
	}
	if preset == Installed && slices.Contains(spared, form) {
		p.DisabledDecisions = []apportionv1.Decision{apportionv1.Decision_DECISION_PREEMPTABLE}
	}
	return p
}

// Tier returns a tier of plugins by the names of their forms.
func Tier(names []string) (*apportionv1.Tier, error) {
	tier := &apportionv1.Tier{}
	for _, name := range names {
		plugin, ok := Plugin(name)
		if !ok {
			return nil, fmt.Errorf("no plugin %q; there are %s", name, strings.Join(slices.Sorted(slices.Values(Forms())), ", "))
		}
		tier.Plugins = append(tier.Plugins, plugin)
	}
	return tier, nil
}
