package volcano

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/tree"
	"github.com/apportion/apportion/internal/wire/catalogue"
)

// ReadConfiguration reads a volcano-scheduler.conf. Input that Volcano ignores (a misspelt switch, an argument of the wrong type) gives a
// warning, input that it refuses an *Error.
func ReadConfiguration(source Source) (*apportionv1.Policy, []*apportionv1.Warning, error) {
	c := configuration{doc: &document{name: source.Name, data: source.Data, lines: true}}
	policy := &apportionv1.Policy{TierWalk: apportionv1.TierWalk_TIER_WALK_VOLCANO, VolcanoRelease: releaseOf(source.Release)}
	if root := c.parse(); root != nil {
		policy.Tiers = c.tiers(root)
	}
	if err := c.found.err(); err != nil {
		return nil, nil, err
	}
	return policy, c.warnings.all(), nil
}

// configuration reads one volcano-scheduler.conf.
type configuration struct {
	doc      *document
	found    problems
	warnings warnings
	// places are the positions of plugins; nil if they are not recorded.
	places map[*apportionv1.Plugin]*value
}

// parse returns the root of the file's first document, the only one that Volcano reads; nil if there is none or it is invalid.
func (c *configuration) parse() *value {
	var node yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(c.doc.data)).Decode(&node)
	if err != nil && !errors.Is(err, io.EOF) {
		line, message := yamlFault(err)
		if tree.Packed(c.doc.data) {
			message = tree.FaultOfPacked
		}
		c.found.addText(c.doc, line, "%s", message)
		return nil
	}
	if len(node.Content) == 0 {
		c.warnings.add(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, func() string { return c.doc.name },
			"nothing is configured: everything is permitted")
		return nil
	}
	t := builder{doc: c.doc, found: &c.found}
	root := t.value(node.Content[0], configurationShape)
	if root.kind != object {
		c.found.add(c.doc, root, "not a volcano-scheduler.conf")
		return nil
	}
	if root.field("kind") != nil {
		c.found.add(c.doc, root.field("kind"), "an object of Kubernetes; give only the text under data.volcano-scheduler.conf")
		return nil
	}
	return root
}

// configurationShape keeps all names, so that unknown ones can be warned of.
var configurationShape = &shape{names: true, fields: fields{
	"actions": leaf, "kind": leaf,
	"tiers": {names: true, fields: fields{
		"plugins": {fields: fields{"arguments": leaf}, rest: leaf},
	}},
}}

// tiers reads the tiers below the root.
func (c *configuration) tiers(root *value) []*apportionv1.Tier {
	for _, item := range root.items {
		switch item.key {
		case "actions":
			c.is(item, text)
		case "tiers", "metrics":
		case "configurations":
			c.ignored(item, "settings of actions have no effect on decisions")
		default:
			c.ignored(item, "Volcano has no such setting")
		}
	}
	list := root.field("tiers")
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
func (c *configuration) tier(v *value) *apportionv1.Tier {
	tier := &apportionv1.Tier{}
	if v.kind == null || !c.is(v, object) {
		return tier
	}
	for _, item := range v.items {
		if item.key != "plugins" {
			c.ignored(item, "Volcano has no such setting of a tier")
		}
	}
	var proportion, hierarchical *value
	for _, item := range c.list(v.field("plugins")) {
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
		c.found.add(c.doc, hierarchical, "drf with enableHierarchy and proportion exclude each other within a tier")
	}
	return tier
}

// plugin reads one plugin; nil if its name is missing.
func (c *configuration) plugin(v *value) *apportionv1.Plugin {
	if !c.is(v, object) {
		return nil
	}
	name := v.textOf(nameField)
	if name == "" {
		c.found.add(c.doc, v, "a plugin without a name")
		return nil
	}
	var s switches
	for _, item := range v.items {
		if item.key != nameField && item.key != "arguments" {
			c.flip(&s, item)
		}
	}
	args := &arguments{c: c, plugin: name, v: v.field("arguments")}
	if args.v != nil && !c.is(args.v, object) {
		args.v = nil
	}
	plugin := c.settings(name, s.hierarchy, v, args)
	plugin.Disabled = s.disabled
	if c.places != nil {
		c.places[plugin] = v
	}
	if plugin.GetUndecided() == nil {
		args.warnUnread()
	}
	return plugin
}

// settings returns the plugin of a name with its arguments.
func (c *configuration) settings(name string, hierarchy bool, v *value, args *arguments) *apportionv1.Plugin {
	plugin, ok := catalogue.VolcanoPlugin(name, hierarchy)
	if preset, own := catalogue.OwnPreset(name); !ok && own {
		c.found.add(c.doc, v, "%s is a policy of Apportion, not a plugin of Volcano: use the preset %s, or write it in a policy file as %s",
			name, name, written(preset))
	}
	if !ok {
		c.warn(apportionv1.WarningCode_WARNING_CODE_PLUGIN_UNDECIDED, v, "plugin %s takes part in no decision of Apportion", name)
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
	"enabledVictim":            apportionv1.Decision_DECISION_UNSPECIFIED,
	"enabledHyperNodeOrder":    apportionv1.Decision_DECISION_UNSPECIFIED,
	"enabledHyperNodeGradient": apportionv1.Decision_DECISION_UNSPECIFIED,
	"enabledSubJobReady":       apportionv1.Decision_DECISION_UNSPECIFIED,
	"enabledSubJobPipelined":   apportionv1.Decision_DECISION_UNSPECIFIED,
	"enabledSubJobOrder":       apportionv1.Decision_DECISION_UNSPECIFIED,
}

// flip reads a flag of a plugin. All except enableHierarchy are on by default.
func (c *configuration) flip(s *switches, v *value) {
	decision, known := decisionOf[v.key]
	hierarchy := v.key == "enableHierarchy"
	if !known && !hierarchy {
		c.ignored(v, "Volcano has no such switch%s", c.similar(v.key))
		return
	}
	if v.kind == null {
		return
	}
	on, ok := v.truth()
	if !ok {
		c.found.add(c.doc, v, "neither true nor false%s", shown(v))
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
func (c *configuration) list(v *value) []*value {
	if v == nil || !c.is(v, array) {
		return nil
	}
	return v.items
}

// is reports whether v has a kind, and adds a problem if it has another one.
func (c *configuration) is(v *value, want kind) bool {
	if v.kind == want {
		return true
	}
	names := map[kind]string{text: "a text", array: "a list", object: "a map"}
	c.found.add(c.doc, v, "not %s", names[want])
	return false
}

func (c *configuration) warn(code apportionv1.WarningCode, v *value, format string, args ...any) {
	c.warnings.add(code, func() string { return place(c.doc, v) }, format, args...)
}

func (c *configuration) ignored(v *value, format string, args ...any) {
	c.warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v, format, args...)
}
