// Package catalogue lists the policies of this program. All code that needs the policies reads the list: the contract's decoder, digests,
// metrics, the client, the command line and the reader of Volcano's configuration. A new policy is a package under engine/policy, a message
// in policy.proto, and a row in Policies.
package catalogue

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/drf"
	"github.com/apportion/apportion/engine/policy/gang"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Policy is a row of the list.
type Policy struct {
	// Name of the plugin in answers, reasons and metrics. If Volcano has the plugin, it is Volcano's name. Rows that are forms of one
	// plugin share its name.
	Name string
	// Settings converts between the contract's message and the plugin.
	Settings Settings
	// Decisions in which the plugin, in at least one of its forms, takes part.
	Decisions engine.Decisions
	// Forms are the names by which the plugin is selected without its message. Empty: it is selected by message only.
	Forms []Form
	// Volcano is true if a volcano-scheduler.conf may name the plugin.
	Volcano bool
	// Clock is true if answers depend on the snapshot's `as_of`.
	Clock bool
	// Ends is true if answers depend on when jobs are expected to end.
	Ends bool
	// Sums are the questions that the plugin answers from sums of tasks, so that a snapshot need not be read task by task.
	Sums Sums
	// Levels reports whether a plugin does work for a queue at each level of the tree of queues. nil: never.
	Levels func(policy.Plugin) bool
	// Derive adds to the shares of the plugin how it came by them. nil: they stand alone.
	Derive Derivation
	// Terms are the words for what the plugin divides; see TermsOf for the usual ones.
	Terms Terms
}

// Sums is a set of questions: each value contains the questions of the values before it.
type Sums uint8

const (
	// SumsNever is the value of a plugin that reads single tasks for every question.
	SumsNever Sums = iota
	// SumsForShares is the value of a plugin that reads single tasks only for questions other than shares.
	SumsForShares
	// SumsForEnqueue is the value of a plugin that reads single tasks only for questions other than shares and who may be enqueued.
	SumsForEnqueue
)

// SumsOf returns the questions that all plugins of a policy answer from sums of tasks.
func SumsOf(p *apportionv1.Policy) Sums {
	sums := SumsForEnqueue
	for _, tier := range p.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			row, ok := Of(plugin)
			if !ok {
				return SumsNever
			}
			sums = min(sums, row.Sums)
		}
	}
	return sums
}

// Terms are the displayed names of the numbers of a plugin that divides.
type Terms struct {
	// Deserved is the amount that the division gives a queue, Would the amount that it would give, Overused a queue that gets nothing more.
	Deserved, Would, Overused string
}

// TermsOf returns the words for the numbers of the plugin with a name.
func TermsOf(name string) Terms {
	for i := range Policies {
		if row := &Policies[i]; row.Name == name && row.Terms != (Terms{}) {
			return row.Terms
		}
	}
	return Terms{Deserved: "deserved", Would: "would deserve", Overused: "overused"}
}

// ChoosesVictims reports whether the plugin takes part in decisions about victims.
func (r *Policy) ChoosesVictims() bool {
	return r.Decisions.Has(engine.Reclaimable) || r.Decisions.Has(engine.Preemptable)
}

// Form is a plugin with settings, under a name.
type Form struct {
	// Name is the name of the plugin, possibly with a suffix for the settings, such as Hierarchical.
	Name string
	// Settings is the message of the policy. nil: one without any field set.
	Settings proto.Message
	// Preset, if not nil, is a whole policy that divides by this form: the names of forms, tier by tier.
	Preset [][]string
}

// Hierarchical is the suffix of the form that Volcano's switch `enableHierarchy` selects.
const Hierarchical = "/hierarchical"

// Of returns the row of a plugin's message, and whether there is one.
func Of(p *apportionv1.Plugin) (*Policy, bool) {
	member := reflect.TypeOf(p.GetPlugin())
	if member == nil {
		return nil, false
	}
	for i := range Policies {
		if row := &Policies[i]; row.Settings.member == member {
			return row, true
		}
	}
	return nil, false
}

// Named reports whether this is the name of a plugin in answers.
func Named(name string) bool {
	for i := range Policies {
		if Policies[i].Name == name {
			return true
		}
	}
	return false
}

// Plugin returns the message of a form, and whether there is one of that name. The caller owns the message.
func Plugin(form string) (*apportionv1.Plugin, bool) {
	for i := range Policies {
		for k := range Policies[i].Forms {
			if f := &Policies[i].Forms[k]; f.Name == form {
				return Policies[i].Settings.plugin(f.Settings), true
			}
		}
	}
	return nil, false
}

// VolcanoPlugin returns the message of the plugin that a volcano-scheduler.conf names, with or without `enableHierarchy`, and whether
// there is one.
func VolcanoPlugin(name string, hierarchy bool) (*apportionv1.Plugin, bool) {
	known := false
	for i := range Policies {
		known = known || Policies[i].Volcano && Policies[i].Name == name
	}
	if !known {
		return nil, false
	}
	if p, ok := Plugin(name + Hierarchical); hierarchy && ok {
		return p, true
	}
	return Plugin(name)
}

// Forms returns the names of all forms, in the order of the list.
func Forms() []string {
	var names []string
	for i := range Policies {
		for k := range Policies[i].Forms {
			names = append(names, Policies[i].Forms[k].Name)
		}
	}
	return names
}

// Read returns the plugin with the settings of p, a message of this row. It calls fault for each invalid setting, with the setting's path
// below p.
func (r *Policy) Read(p *apportionv1.Plugin, fault Fault) policy.Plugin {
	prefix := r.Settings.field.TextName() + "."
	return r.Settings.read(r.Settings.message(p), func(field, format string, args ...any) { fault(prefix+field, format, args...) })
}

// Canonical returns p, a message of this row, as it is read: with defaults, with effective settings instead of equivalent ones, and without
// unknown fields. Only the plugin is set.
func (r *Policy) Canonical(p *apportionv1.Plugin) *apportionv1.Plugin {
	return r.Settings.plugin(r.Settings.canonical(r.Settings.message(p)))
}

// Clocked reports whether answers by a policy depend on the snapshot's `as_of`.
func Clocked(p *apportionv1.Policy) bool {
	for _, tier := range p.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			if row, ok := Of(plugin); ok && row.Clock {
				return true
			}
		}
	}
	return false
}

// HasEnds reports whether answers by a policy depend on when jobs are expected to end.
func HasEnds(p *apportionv1.Policy) bool {
	return HasTurns(p) || slices.ContainsFunc(p.GetTiers(), func(t *apportionv1.Tier) bool {
		return slices.ContainsFunc(t.GetPlugins(), func(p *apportionv1.Plugin) bool {
			row, ok := Of(p)
			return ok && row.Ends
		})
	})
}

// Turns returns the turns that the preset `fair` has, and the policies that are converted to fair: jobs of one task have them after half
// a day.
func Turns() *apportionv1.FairTurns { return &apportionv1.FairTurns{SingleWaitSeconds: 12 * 60 * 60} }

// HasTurns reports whether gangs may hold reservations under a policy.
func HasTurns(p *apportionv1.Policy) bool {
	return slices.ContainsFunc(p.GetTiers(), func(t *apportionv1.Tier) bool {
		return slices.ContainsFunc(t.GetPlugins(), func(p *apportionv1.Plugin) bool { return p.GetFair().GetTurns() != nil })
	})
}

// Installed is the name of the preset that is the configuration which Volcano's installers ship.
const Installed = "volcano"

// installed are the plugins of that configuration, tier by tier; spared are those that take no part in preemption there.
var (
	installed = volcanoDefault("drf", "predicates", "proportion", "nodeorder", "binpack")
	spared    = []string{gang.Plugin{}.Name(), drf.Plugin{}.Name()}
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

// Releases returns the releases of schedulers as which policies decide, in ascending order of name.
func Releases() []*apportionv1.MirroredRelease {
	return []*apportionv1.MirroredRelease{{Name: "kueue", Version: "v0.19.2"}, {Name: "volcano", Version: "v1.15.1"}}
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
		if name == Installed {
			cycle := &apportionv1.VolcanoCycle{Actions: []string{engine.ActionEnqueue, engine.ActionAllocate, engine.ActionBackfill}}
			out.Cycle = &apportionv1.Policy_Volcano{Volcano: cycle}
		}
		return out, true
	}
	return nil, false
}

// presetPlugin returns a plugin of a preset.
func presetPlugin(preset, form string) *apportionv1.Plugin {
	p, _ := Plugin(form)
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
