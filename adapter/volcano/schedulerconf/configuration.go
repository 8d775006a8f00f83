// Package schedulerconf reads volcano-scheduler.conf, the configuration of Volcano's scheduler, to the policy that decides as it does, and
// proposes the nearest policy of plugin fair. It finds the configuration, and the release of Volcano that uses it, among the objects of a
// cluster. It reads none of these otherwise.
package schedulerconf

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/spelling"
	"github.com/apportion/apportion/internal/tree"
)

// Read reads a volcano-scheduler.conf. Input that Volcano ignores (a misspelt switch, an argument of the wrong type, a plugin that it does
// not have) gives a warning, input that it refuses a *RefusedError, and input that only Apportion refuses an *objects.Error.
func Read(source objects.Source) (*apportionv1.Policy, []*apportionv1.Warning, error) {
	policy, warnings, err := ReadAll(source)
	for _, tier := range policy.GetTiers() {
		tier.Plugins = slices.DeleteFunc(tier.GetPlugins(), func(p *apportionv1.Plugin) bool {
			name := p.GetUndecided().GetName()
			return p.GetUndecided() != nil && !catalogue.VolcanoHas(name)
		})
	}
	return policy, warnings, err
}

// ReadAll is Read with the plugins that Volcano does not have, each in its place, as those that take part in no decision.
func ReadAll(source objects.Source) (*apportionv1.Policy, []*apportionv1.Warning, error) {
	c := configuration{doc: &objects.Document{Name: source.Name, Data: trimmed(source.Data), Lines: true}}
	policy := &apportionv1.Policy{
		TierWalk: apportionv1.TierWalk_TIER_WALK_VOLCANO, VolcanoRelease: releaseOf(source.Release), Source: sourceOf(source.Name),
	}
	if root := c.parse(); root != nil {
		if cycle := c.actions(root); cycle != nil {
			policy.Cycle = cycle
		}
		policy.Tiers = c.tiers(root)
	}
	if err := c.err(); err != nil {
		return nil, nil, err
	}
	return policy, c.warnings.All(), nil
}

// configuration reads one volcano-scheduler.conf.
type configuration struct {
	doc      *objects.Document
	found    objects.Problems
	warnings objects.Warnings
	// refused says that there is a fault for which Volcano refuses the file.
	refused bool
	// places are the positions of plugins; nil if they are not recorded.
	places map[*apportionv1.Plugin]*objects.Value
}

// parse returns the root of the file's first document, the only one that Volcano reads; nil if there is none or it is invalid.
func (c *configuration) parse() *objects.Value {
	var node yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(c.doc.Data)).Decode(&node)
	if err != nil && !errors.Is(err, io.EOF) {
		line, message := objects.YAMLFault(err)
		if tree.Packed(c.doc.Data) {
			message = tree.FaultOfPacked
		}
		c.refused = true
		c.found.AddText(c.doc, line, "%s", message)
		return nil
	}
	if len(node.Content) == 0 {
		c.refused = true
		c.found.AddText(c.doc, 1, "nothing is configured, so there are no actions")
		return nil
	}
	root := objects.ValueOf(c.doc, node.Content[0], configurationShape, &c.found)
	if root.Type != objects.Map {
		c.refuse(root, "not a volcano-scheduler.conf")
		return nil
	}
	if root.Field("kind") != nil {
		c.found.Add(c.doc, root.Field("kind"), "an object of Kubernetes; give only the text under data.volcano-scheduler.conf")
		return nil
	}
	return root
}

// configurationShape keeps all names, so that unknown ones can be warned of.
var configurationShape = &objects.Shape{Names: true, Fields: objects.Fields{
	"actions": objects.Leaf, "kind": objects.Leaf,
	"tiers": {Names: true, Fields: objects.Fields{
		"plugins": {Fields: objects.Fields{"arguments": objects.Leaf}, Rest: objects.Leaf},
	}},
}}

// tiers reads the tiers below the root.
func (c *configuration) tiers(root *objects.Value) []*apportionv1.Tier {
	for _, item := range root.Items {
		switch item.Key {
		case "actions", "tiers", "metrics":
		case "configurations":
			c.ignored(item, "settings of actions have no effect on decisions")
		default:
			c.ignored(item, "Volcano has no such setting")
		}
	}
	list := root.Field("tiers")
	if list == nil {
		c.ignored(root, "there are no tiers: everything is permitted")
		return nil
	}
	var tiers []*apportionv1.Tier
	for _, item := range c.list(list) {
		tiers = append(tiers, c.tier(item))
	}
	return tiers
}

// tier reads one tier.
func (c *configuration) tier(v *objects.Value) *apportionv1.Tier {
	tier := &apportionv1.Tier{}
	if v.Type == objects.Null || !c.is(v, objects.Map) {
		return tier
	}
	for _, item := range v.Items {
		if item.Key != "plugins" {
			c.ignored(item, "Volcano has no such setting of a tier")
		}
	}
	var proportion, hierarchical *objects.Value
	for _, item := range c.list(v.Field("plugins")) {
		plugin := c.plugin(item)
		if plugin == nil {
			continue
		}
		tier.Plugins = append(tier.Plugins, plugin)
		if plugin.GetProportion() != nil {
			proportion = item
		}
		if plugin.GetHierarchicalDrf() != nil {
			hierarchical = item
		}
	}
	if proportion != nil && hierarchical != nil {
		c.refuse(hierarchical, "drf with enableHierarchy and proportion exclude each other within a tier")
	}
	return tier
}

// plugin reads one plugin; nil if its name is missing.
func (c *configuration) plugin(v *objects.Value) *apportionv1.Plugin {
	if !c.is(v, objects.Map) {
		return nil
	}
	name := v.TextOf(objects.NameField)
	var s switches
	for _, item := range v.Items {
		if item.Key != objects.NameField && item.Key != "arguments" {
			c.flip(&s, name, item)
		}
	}
	args := &arguments{c: c, plugin: name, v: v.Field("arguments")}
	if args.v != nil && !c.is(args.v, objects.Map) {
		args.v = nil
	}
	plugin := c.settings(name, s.hierarchy, v, args)
	plugin.DisabledDecisions = s.disabled
	if c.places != nil {
		c.places[plugin] = v
	}
	if plugin.GetUndecided() == nil {
		args.warnUnread()
	}
	return plugin
}

// settings returns the plugin of a name with its arguments.
func (c *configuration) settings(name string, hierarchy bool, v *objects.Value, args *arguments) *apportionv1.Plugin {
	plugin, ok := catalogue.VolcanoPlugin(name, hierarchy)
	if preset, own := catalogue.OwnPreset(name); !ok && own {
		c.found.Add(c.doc, v, "%s is a policy of Apportion, not a plugin of Volcano: use the preset %s, or write it in a policy file as %s",
			name, name, written(preset))
	}
	switch {
	case ok:
	case name == "":
		c.warn(apportionv1.WarningCode_WARNING_CODE_PLUGIN_UNDECIDED, v, "a plugin without a name, which Volcano leaves out")
	case !catalogue.VolcanoHas(name):
		like := spelling.Suggestion(strings.ToLower(name), catalogue.VolcanoPlugins())
		c.warn(apportionv1.WarningCode_WARNING_CODE_PLUGIN_UNDECIDED, v, "Volcano has no plugin %s and leaves it out%s", name, like)
	default:
		c.warn(apportionv1.WarningCode_WARNING_CODE_PLUGIN_UNDECIDED, v, "plugin %s takes part in no decision of Apportion", name)
	}
	if !ok {
		return &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Undecided{Undecided: &apportionv1.Undecided{Name: name}}}
	}
	args.into(plugin)
	return plugin
}

// written returns the tiers of a preset as a policy file states them.
func written(preset [][]string) string {
	tiers := make([]string, len(preset))
	for i, names := range preset {
		tiers[i] = "{plugins: [{" + strings.Join(names, ": {}}, {") + ": {}}]}"
	}
	return "tiers: [" + strings.Join(tiers, ", ") + "]"
}

// switches holds the flags of a plugin.
type switches struct {
	hierarchy bool
	disabled  []apportionv1.Decision
}

// decisionOf returns the decision that a flag switches. Flags of decisions that are not made here have no name.
var decisionOf = map[string]apportionv1.Decision{
	"enableQueueOrder":         apportionv1.Decision_DECISION_QUEUE_ORDER,
	"enableJobOrder":           apportionv1.Decision_DECISION_JOB_ORDER,
	"enableTaskOrder":          apportionv1.Decision_DECISION_TASK_ORDER,
	"enableJobReady":           apportionv1.Decision_DECISION_JOB_READY,
	"enableJobPipelined":       apportionv1.Decision_DECISION_JOB_PIPELINED,
	"enableJobStarving":        apportionv1.Decision_DECISION_JOB_STARVING,
	"enableJobEnqueued":        apportionv1.Decision_DECISION_JOB_ENQUEUED,
	"enabledOverused":          apportionv1.Decision_DECISION_OVERUSED,
	"enabledAllocatable":       apportionv1.Decision_DECISION_ALLOCATABLE,
	"enablePreemptive":         apportionv1.Decision_DECISION_PREEMPTIVE,
	"enableReclaimable":        apportionv1.Decision_DECISION_RECLAIMABLE,
	"enablePreemptable":        apportionv1.Decision_DECISION_PREEMPTABLE,
	"enablePredicate":          apportionv1.Decision_DECISION_PREDICATE,
	"enableNodeOrder":          apportionv1.Decision_DECISION_NODE_ORDER,
	"enabledClusterOrder":      apportionv1.Decision_DECISION_UNSPECIFIED,
	"enableBestNode":           apportionv1.Decision_DECISION_UNSPECIFIED,
	"enableTargetJob":          apportionv1.Decision_DECISION_UNSPECIFIED,
	"enableReservedNodes":      apportionv1.Decision_DECISION_UNSPECIFIED,
	"enabledVictim":            apportionv1.Decision_DECISION_VICTIM,
	"enabledHyperNodeOrder":    apportionv1.Decision_DECISION_UNSPECIFIED,
	"enabledHyperNodeGradient": apportionv1.Decision_DECISION_UNSPECIFIED,
	"enabledSubJobReady":       apportionv1.Decision_DECISION_UNSPECIFIED,
	"enabledSubJobPipelined":   apportionv1.Decision_DECISION_UNSPECIFIED,
	"enabledSubJobOrder":       apportionv1.Decision_DECISION_UNSPECIFIED,
}

// flip reads a flag of a plugin. All except enableHierarchy are on by default.
func (c *configuration) flip(s *switches, plugin string, v *objects.Value) {
	decision, known := decisionOf[v.Key]
	hierarchy := v.Key == "enableHierarchy"
	if !known && !hierarchy && isArgument(plugin, v.Key) {
		c.ignored(v, "without effect here: it is an argument: indent it below arguments")
		return
	}
	if !known && !hierarchy {
		c.ignored(v, "Volcano has no such switch%s", c.similar(v.Key))
		return
	}
	if v.Type == objects.Null {
		return
	}
	on, ok := v.Truth()
	if !ok {
		c.refuse(v, "neither true nor false%s", objects.Shown(v))
		return
	}
	if hierarchy {
		s.hierarchy = on
	} else if !on && decision != apportionv1.Decision_DECISION_UNSPECIFIED {
		s.disabled = append(s.disabled, decision)
	}
}

// similar suggests the switch that differs only in enable and enabled, or in capitals: Volcano has both forms, each for other switches.
func (c *configuration) similar(name string) string {
	plain := func(name string) string {
		name = strings.TrimPrefix(strings.ToLower(name), "enable")
		return strings.TrimPrefix(name, "d")
	}
	if plain(name) == plain("enableHierarchy") {
		return "; did you mean enableHierarchy?"
	}
	for known := range decisionOf {
		if plain(name) == plain(known) {
			return "; did you mean " + known + "?"
		}
	}
	return ""
}

// list is the elements of a list; what is null has none.
func (c *configuration) list(v *objects.Value) []*objects.Value {
	if v == nil || !c.is(v, objects.List) {
		return nil
	}
	return v.Items
}

// is reports whether v has a kind, and adds a problem if it has another one.
func (c *configuration) is(v *objects.Value, want objects.Type) bool {
	if v.Type == want {
		return true
	}
	names := map[objects.Type]string{objects.Text: "a text", objects.List: "a list", objects.Map: "a map"}
	c.refuse(v, "not %s", names[want])
	return false
}

func (c *configuration) warn(code apportionv1.WarningCode, v *objects.Value, format string, args ...any) {
	c.warnings.Add(code, func() string { return objects.Place(c.doc, v) }, format, args...)
}

func (c *configuration) ignored(v *objects.Value, format string, args ...any) {
	c.warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v, format, args...)
}
