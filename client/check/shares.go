package check

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

const (
	ofFair      = "fair"
	withExplain = "the question must be for all fields of the shares of all queues, with explain"
	fromOthers  = "it repeats other numbers"
	notRepeated = "the rules of claims, admission and turns are not repeated here"
)

// ofShares are the fields of the shares of fair that are not checked.
var ofShares = omitted{
	"FairDerivation.queues": notRepeated, "FairDerivation.reservation": notRepeated,
	"PluginShares.hierarchy_ready": fromOthers, "PluginShares.hierarchy_causes": fromOthers,
	"QueueShare.inqueue": notRepeated, "QueueShare.reserved": notRepeated, "QueueShare.overused": notRepeated,
	"QueueShare.share": fromOthers, "QueueShare.dominant": fromOthers, "QueueShare.real_capability": fromOthers,
	"QueueShare.ancestors": fromOthers, "QueueShare.children": fromOthers,
}

// shares checks the shares of plugin fair in an answer about all queues: the derivation, and the amounts of each queue.
func (c *check) shares(path string, step *apportionv1.SharesStep, got *apportionv1.SharesAnswer) {
	if !ofAll(step) {
		c.omit(path, withExplain)
		return
	}
	before := c.numbers
	c.known(path, got)
	expect(c.findings, path+": plugins", len(got.GetPlugins()), c.divide())
	i := slices.IndexFunc(got.GetPlugins(), func(p *apportionv1.PluginShares) bool { return p.GetPlugin() == ofFair })
	if i < 0 || got.GetPlugins()[i].GetFair() == nil {
		c.wrong("%s has no shares of fair, or not their derivation", path)
		return
	}
	c.omit(path+".standings", notRepeated)
	for k := range got.GetPlugins() {
		if k != i {
			c.omit(fmt.Sprintf("%s.plugins[%d]", path, k), "only the shares of fair are checked")
		}
	}
	// Derivations of one state are the same, and the first one is checked already.
	given, want := got.GetPlugins()[i], &apportionv1.PluginShares{Plugin: ofFair, Fair: c.fair}
	if given.GetFair() == c.fair {
		before -= c.derived
	}
	for q := range c.GetQueues() {
		want.Queues = append(want.Queues, c.amounts(q))
	}
	c.compare(fmt.Sprintf("%s.plugins[%d]", path, i), given, want, ofShares)
	c.did(path, "what queues hold, ask for and may have, and each division", before)
}

// sharing are the plugins that have shares.
var sharing = []protoreflect.Name{"proportion", "capacity", "drf", "hierarchical_drf", "kueue", ofFair}

// divide counts the plugins of the policy that have shares.
func (c *check) divide() (n int) {
	for _, tier := range c.policy.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			if slices.Contains(sharing, memberOf(plugin)) {
				n++
			}
		}
	}
	return n
}

// amounts is what docs/fair.md says of a queue under Inputs and Division. A queue that is set aside has a name alone.
func (c *check) amounts(q int) *apportionv1.QueueShare {
	share := &apportionv1.QueueShare{Queue: uint32(q), Name: c.named(c.GetQueues()[q].GetName())}
	if !c.participates(q) {
		return share
	}
	width := len(c.dims)
	guarantee, deserved, line := make([]int64, width), make([]int64, width), make([]int64, width)
	for d, unit := range c.unit {
		guarantee[d], deserved[d] = c.bounds[d][q].guaranteed*unit, c.lines[q][d][entitlement]*unit
		line[d] = c.lines[q][d][withMemory] * unit
	}
	share.Participating, share.Weight = true, uint32(c.weight(q))
	share.Guarantee, share.Deserved, share.Capability = c.resourceOf(guarantee), c.resourceOf(deserved), c.resourceOf(c.capability[q])
	share.Allocated, share.Request = c.resourceOf(c.held[q]), c.resourceOf(c.demand[q])
	if c.GetMemory() != nil {
		share.WithMemory = c.resourceOf(line)
	}
	return share
}

// resourceOf is a row as a resource that names every dimension.
func (c *cluster) resourceOf(row []int64) *apportionv1.Resource {
	r := &apportionv1.Resource{}
	for d, x := range row {
		r.Dimensions, r.Amounts = append(r.Dimensions, uint32(d)), append(r.Amounts, float64(x))
		if x == unlimited {
			r.Amounts[d] = math.Inf(1)
		}
	}
	return r
}
