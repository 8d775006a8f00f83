package schedulerconf

import (
	"fmt"
	"strings"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
)

// Warnings of a proposal about its changes.
const (
	oneTier = "all plugins are in one tier: in Volcano the first tier with victims decides alone, beside fair each " +
		"plugin protects its tasks"
	drfLeftOut = "drf is left out: it orders jobs by dominant share, but fair reserves room for jobs by priority " +
		"and age, and they must be served in that order"
	hdrfLeftOut = "drf with enableHierarchy is left out: its tree of annotations orders queues, which fair does by the " +
		"parents of queues; write the weights there"
	overcommitKept = "overcommit is kept: it keeps jobs outside that fair would let in, so that room they could use may " +
		"stay idle"
	proportionBecomes = "proportion becomes fair with base NONE: weights decide the whole share, a guarantee lifts it; " +
		"shares are whole units and add up to no more than there is"
	unusedIsLent    = "what a queue cannot use is lent; in Volcano a queue never holds more than it deserves"
	guaranteeIsLent = "a guarantee that is not used is lent and taken back when it is needed; set reserve_guarantee to " +
		"withhold it as Volcano does"
	capacityBecomes = "capacity becomes fair with base DESERVED: each queue is entitled to what it deserves, as far as it " +
		"has a use for it"
	surplusByWeight = "what is left beyond that is divided by weight, which capacity does not look at; in Volcano it goes " +
		"to the queue that comes first"
	deservedCut = "deserved amounts that do not fit together are cut in proportion; in Volcano they are promised all " +
		"the same"
	ancestorsCount = "ancestorReclaimLevel %d is not carried over: under fair every queue between the victim and the " +
		"nearest common ancestor must hold more than its line"
)

// ReadAsFair reads a volcano-scheduler.conf and proposes the nearest policy of plugin fair. The warnings list the settings
// that are not carried over, or have another meaning, with the reason.
func ReadAsFair(source objects.Source) (*apportionv1.Policy, []*apportionv1.Warning, error) {
	c := configuration{
		doc:    &objects.Document{Name: source.Name, Data: trimmed(source.Data), Lines: true},
		places: map[*apportionv1.Plugin]*objects.Value{},
	}
	var tiers []*apportionv1.Tier
	if root := c.parse(); root != nil {
		c.actions(root)
		tiers = c.tiers(root)
	}
	if err := c.err(); err != nil {
		return nil, nil, err
	}
	return c.fair(tiers), c.warnings.All(), nil
}

// AsFair is ReadAsFair for a policy; its warnings contain no lines.
func AsFair(policy *apportionv1.Policy) (*apportionv1.Policy, []*apportionv1.Warning) {
	c := configuration{doc: &objects.Document{Name: "policy"}}
	return c.fair(policy.GetTiers()), c.warnings.All()
}

// fair puts the plugins that are compatible with fair into one tier, and fair last: it decides about the candidates that all the others
// permit.
func (c *configuration) fair(tiers []*apportionv1.Tier) *apportionv1.Policy {
	tier := &apportionv1.Tier{}
	var divides *apportionv1.Plugin
	filled := 0
	for _, t := range tiers {
		if len(t.GetPlugins()) == 0 {
			continue
		}
		if filled++; filled == 2 {
			c.changed(t.GetPlugins()[0], oneTier)
		}
		for _, p := range t.GetPlugins() {
			switch {
			case p.GetProportion() != nil, p.GetCapacity() != nil:
				if divides != nil {
					c.changed(p, "%s is left out: %s divides among the queues already", nameOf(p), nameOf(divides))
					continue
				}
				divides = p
			case p.GetDrf() != nil:
				c.changed(p, drfLeftOut)
			case p.GetHierarchicalDrf() != nil:
				c.changed(p, hdrfLeftOut)
			case p.GetOvercommit() != nil:
				tier.Plugins = append(tier.Plugins, p)
				c.changed(p, overcommitKept)
			default:
				tier.Plugins = append(tier.Plugins, p)
			}
		}
	}
	tier.Plugins = append(tier.Plugins, c.dividing(divides))
	return &apportionv1.Policy{Tiers: []*apportionv1.Tier{tier}, TierWalk: apportionv1.TierWalk_TIER_WALK_STRICT}
}

// dividing returns fair with the settings nearest to those of a plugin of Volcano that divides; nil if there is none.
func (c *configuration) dividing(p *apportionv1.Plugin) *apportionv1.Plugin {
	settings := &apportionv1.Fair{Base: apportionv1.FairBase_FAIR_BASE_NONE, Turns: catalogue.Turns()}
	out := &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Fair{Fair: settings}, DisabledDecisions: p.GetDisabledDecisions()}
	switch {
	case p == nil:
		return out
	case p.GetProportion() != nil:
		c.changed(p, proportionBecomes)
		c.changed(p, unusedIsLent)
		c.changed(p, guaranteeIsLent)
	default:
		settings.Base = apportionv1.FairBase_FAIR_BASE_DESERVED
		c.changed(p, capacityBecomes)
		c.changed(p, surplusByWeight)
		c.changed(p, deservedCut)
		c.changed(p, guaranteeIsLent)
	}
	if level := p.GetCapacity().GetAncestorReclaimLevel(); level > 0 {
		c.changed(p, ancestorsCount, level)
	}
	if len(p.GetDisabledDecisions()) > 0 {
		var names []string
		for _, d := range p.GetDisabledDecisions() {
			names = append(names, strings.ToLower(strings.TrimPrefix(d.String(), "DECISION_")))
		}
		c.changed(p, "decisions that are switched off stay so (%s); the properties of fair hold only if it takes all of them",
			strings.Join(names, ", "))
	}
	return out
}

// changed warns that a setting of a plugin is not carried over unchanged.
func (c *configuration) changed(p *apportionv1.Plugin, format string, args ...any) {
	where := c.doc.Name
	if v := c.places[p]; v != nil {
		where = objects.Place(c.doc, v)
	}
	c.warnings.Add(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, func() string { return where }, "%s", fmt.Sprintf(format, args...))
}

// nameOf is Volcano's name of a plugin.
func nameOf(p *apportionv1.Plugin) string {
	if row, ok := catalogue.Of(p); ok {
		return row.Name
	}
	return "the plugin"
}
