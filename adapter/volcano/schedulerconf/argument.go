package schedulerconf

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// arguments are the arguments of one plugin. Like Volcano, each reader accepts only values of its types and ignores others with a warning.
type arguments struct {
	c      *configuration
	plugin string
	v      *objects.Value
	read   map[string]bool
}

// at returns the value of an argument, nil if it is absent, and marks it as read.
func (a *arguments) at(key string) *objects.Value {
	if a.read == nil {
		a.read = make(map[string]bool)
	}
	a.read[key] = true
	return a.v.Field(key)
}

// whole reads an argument that must be an integer of YAML: `1`, neither `"1"` nor `1.0`.
func (a *arguments) whole(key string) *int64 {
	v := a.at(key)
	if v == nil {
		return nil
	}
	parsed, err := strconv.ParseInt(v.Text, 10, 64)
	if v.Type != objects.Number || err != nil {
		a.c.ignored(v, "not a whole number, so Volcano uses the default%s", objects.Shown(v))
		return nil
	}
	return &parsed
}

// weight is whole as a weight.
func (a *arguments) weight(key string) *float64 {
	parsed := a.whole(key)
	if parsed == nil {
		return nil
	}
	weight := float64(*parsed)
	return &weight
}

// flag reads an argument that is a boolean, or a text that strconv.ParseBool accepts.
func (a *arguments) flag(key string) *bool {
	v := a.at(key)
	if v == nil {
		return nil
	}
	if truth, ok := v.Truth(); ok {
		return &truth
	}
	parsed, err := strconv.ParseBool(v.Text)
	if v.Type != objects.Text || err != nil {
		a.c.ignored(v, "neither true nor false, so Volcano uses the default%s", objects.Shown(v))
		return nil
	}
	return &parsed
}

// real reads an argument that may be any number.
func (a *arguments) real(key string) *float64 {
	v := a.at(key)
	if v == nil {
		return nil
	}
	written := strings.NewReplacer(".inf", "inf", ".nan", "nan").Replace(strings.ToLower(v.Text))
	parsed, err := strconv.ParseFloat(written, 64)
	if v.Type != objects.Number || err != nil {
		a.c.ignored(v, "not a number, so Volcano uses the default%s", objects.Shown(v))
		return nil
	}
	return &parsed
}

// warnUnread warns of the arguments that no reader has read.
func (a *arguments) warnUnread() {
	if a.v == nil {
		return
	}
	for _, item := range a.v.Items {
		if !a.read[item.Key] {
			a.c.ignored(item, "%s has no such argument", a.plugin)
		}
	}
}

// isArgument reports whether a key is that of an argument: those that are read here, and those with a dot or a dash, which no switch has.
func isArgument(plugin, key string) bool {
	switch key {
	case "ancestorReclaimLevel":
		return plugin == "capacity"
	case "strict", "enablePreferredOrder":
		return plugin == "nodegroup"
	}
	return strings.ContainsAny(key, ".-")
}

// into writes the arguments into the settings of a plugin. Plugins that are not named here have no arguments.
func (a *arguments) into(p *apportionv1.Plugin) {
	switch {
	case p.GetCapacity() != nil:
		a.capacity(p.GetCapacity())
	case p.GetNodeGroup() != nil:
		a.nodeGroup(p.GetNodeGroup())
	case p.GetOvercommit() != nil:
		a.overcommit(p.GetOvercommit())
	case p.GetBinpack() != nil:
		a.binpack(p.GetBinpack())
	case p.GetNodeOrder() != nil:
		a.nodeOrder(p.GetNodeOrder())
	case p.GetPredicates() != nil:
		a.predicates()
	case p.GetSla() != nil:
		p.GetSla().WaitingTime = a.duration("sla-waiting-time", "no time counts")
	case p.GetTdm() != nil:
		a.tdm(p.GetTdm())
	}
}

// duration reads an argument that is a duration above 0 as Go writes it, in nanoseconds. It returns 0 for anything else, and warns what
// Volcano does then.
func (a *arguments) duration(key, otherwise string) int64 {
	v := a.at(key)
	if v == nil {
		return 0
	}
	parsed, err := time.ParseDuration(v.Text)
	if v.Type != objects.Text || err != nil || parsed <= 0 {
		a.c.ignored(v, "not a duration such as 1h30m, so in Volcano %s%s", otherwise, objects.Shown(v))
		return 0
	}
	return int64(parsed)
}

// tdm: a name has its prefix anywhere, as in Volcano. How often nodes are taken back is not decided here.
func (a *arguments) tdm(tdm *apportionv1.Tdm) {
	const prefix = "tdm.revocable-zone."
	if a.v != nil {
		for _, item := range a.v.Items {
			if !strings.Contains(item.Key, prefix) {
				continue
			}
			a.at(item.Key)
			if a.c.is(item, objects.Text) {
				name := strings.Replace(item.Key, prefix, "", 1)
				tdm.Zones = append(tdm.Zones, &apportionv1.RevocableZone{Name: name, Period: item.Text})
			}
		}
	}
	a.duration("tdm.evict.period", "it is a minute")
}

// small is whole within the numbers of 32 bits.
func (a *arguments) small(key string) *int32 {
	parsed := a.whole(key)
	if parsed == nil {
		return nil
	}
	within := int32(min(max(*parsed, math.MinInt32), math.MaxInt32))
	return &within
}

// nodeOrder: the other weights are those of preferences that snapshots do not have, so that they count for no node.
func (a *arguments) nodeOrder(order *apportionv1.NodeOrder) {
	order.LeastRequested, order.MostRequested = a.small("leastrequested.weight"), a.small("mostrequested.weight")
	order.BalancedResource, order.TaintToleration = a.small("balancedresource.weight"), a.small("tainttoleration.weight")
	order.NodeAffinity = a.small("nodeaffinity.weight")
	for _, kind := range []string{"podaffinity", "imagelocality", "podtopologyspread"} {
		a.whole(kind + ".weight")
	}
}

// predicates: each kind of rule has a switch, which changes nothing here.
func (a *arguments) predicates() {
	for _, rule := range []string{
		"NodeAffinity", "NodePorts", "TaintToleration", "PodAffinity", "NodeVolumeLimits", "VolumeZone", "PodTopologySpread",
		"VolumeBinding",
		"DynamicResourceAllocation",
	} {
		key := "predicate." + rule + "Enable"
		if on := a.flag(key); on != nil && !*on {
			a.c.ignored(a.at(key), "such rules are heeded here all the same")
		}
	}
	a.flag("predicate.CacheEnable")
}

func (a *arguments) capacity(capacity *apportionv1.Capacity) {
	if level := a.whole("ancestorReclaimLevel"); level != nil {
		capacity.AncestorReclaimLevel = int32(min(max(*level, 0), math.MaxInt32))
	}
}

func (a *arguments) nodeGroup(group *apportionv1.NodeGroup) {
	group.Strict = a.flag("strict")
	if ordered := a.flag("enablePreferredOrder"); ordered != nil {
		group.PreferredOrder = *ordered
	}
}

// overcommit: a factor below 1 is kept as written; it counts as the default.
func (a *arguments) overcommit(overcommit *apportionv1.Overcommit) {
	overcommit.Factor = a.real("overcommit-factor")
	if overcommit.Factor != nil && math.IsNaN(*overcommit.Factor) {
		a.c.found.Add(a.c.doc, a.at("overcommit-factor"), "not a number")
	}
}

// binpack: weights below 0 are kept as written; they count as 1, except the weight of the whole.
func (a *arguments) binpack(binpack *apportionv1.Binpack) {
	binpack.Weight, binpack.Cpu, binpack.Memory = a.weight("binpack.weight"), a.weight("binpack.cpu"), a.weight("binpack.memory")
	list := a.at("binpack.resources")
	if list == nil {
		return
	}
	if list.Type != objects.Text {
		a.c.ignored(list, "not a text, so Volcano ignores it%s", objects.Shown(list))
		return
	}
	listed := make(map[string]bool)
	for name := range strings.SplitSeq(list.Text, ",") {
		name = strings.TrimSpace(name)
		if name == "" || listed[name] {
			continue
		}
		listed[name] = true
		weight := a.weight("binpack.resources." + name)
		binpack.Resources = append(binpack.Resources, &apportionv1.ResourceWeight{Name: name, Weight: weight})
	}
}
