package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Digest returns how the contract names bytes: `sha256:` and 64 hexadecimal digits.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// PolicyDigest returns the digest of a policy's canonical form: policies that were read as the same have the same.
func PolicyDigest(p *apportionv1.Policy) string { return canonicalDigest(Canonical(p)) }

func canonicalDigest(canonical *apportionv1.Policy) string {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(canonical)
	if err != nil {
		return ""
	}
	return Digest(data)
}

// Canonical returns what a valid policy was read as: defaults written out, settings that count as others replaced by these, switches
// in order, what is not known left out.
func Canonical(p *apportionv1.Policy) *apportionv1.Policy {
	out := &apportionv1.Policy{TierWalk: p.GetTierWalk()}
	if out.TierWalk == apportionv1.TierWalk_TIER_WALK_UNSPECIFIED {
		out.TierWalk = apportionv1.TierWalk_TIER_WALK_STRICT
	}
	for _, t := range p.GetTiers() {
		tier := &apportionv1.Tier{}
		for _, plugin := range t.GetPlugins() {
			tier.Plugins = append(tier.Plugins, canonicalPlugin(plugin))
		}
		out.Tiers = append(out.Tiers, tier)
	}
	return out
}

func canonicalPlugin(p *apportionv1.Plugin) *apportionv1.Plugin {
	out := &apportionv1.Plugin{Plugin: p.GetPlugin()}
	switch settings := p.GetPlugin().(type) {
	case *apportionv1.Plugin_Capacity:
		c := &apportionv1.Capacity{Hierarchical: settings.Capacity.GetHierarchical()}
		if c.Hierarchical {
			c.AncestorReclaimLevel = max(settings.Capacity.GetAncestorReclaimLevel(), 0)
		}
		out.Plugin = &apportionv1.Plugin_Capacity{Capacity: c}
	case *apportionv1.Plugin_Binpack:
		out.Plugin = &apportionv1.Plugin_Binpack{Binpack: canonicalBinpack(settings.Binpack)}
	case *apportionv1.Plugin_NodeGroup:
		n := settings.NodeGroup
		out.Plugin = &apportionv1.Plugin_NodeGroup{NodeGroup: &apportionv1.NodeGroup{
			Strict:         new(n == nil || n.Strict == nil || *n.Strict),
			PreferredOrder: n.GetPreferredOrder(), Hierarchical: n.GetHierarchical(),
		}}
	case *apportionv1.Plugin_Overcommit:
		factor := settings.Overcommit.GetFactor()
		if factor < 1 {
			factor = 1.2
		}
		out.Plugin = &apportionv1.Plugin_Overcommit{Overcommit: &apportionv1.Overcommit{Factor: &factor}}
	default:
		out = proto.CloneOf(out)
		discard(out)
	}
	out.Disabled = slices.Clone(p.GetDisabled())
	slices.Sort(out.Disabled)
	out.Disabled = slices.Compact(out.Disabled)
	return out
}

func canonicalBinpack(b *apportionv1.Binpack) *apportionv1.Binpack {
	if b == nil {
		b = &apportionv1.Binpack{}
	}
	out := &apportionv1.Binpack{Weight: new(1.0), Cpu: part(b.Cpu), Memory: part(b.Memory)}
	if b.Weight != nil {
		out.Weight = new(*b.Weight)
	}
	for _, r := range b.GetResources() {
		if r != nil && r.Name != "cpu" && r.Name != "memory" {
			out.Resources = append(out.Resources, &apportionv1.ResourceWeight{Name: r.Name, Weight: part(r.Weight)})
		}
	}
	return out
}

// part is a weight of one dimension: absent or negative it is 1.
func part(weight *float64) *float64 {
	if weight == nil || *weight < 0 {
		return new(1.0)
	}
	return new(*weight)
}

// discard leaves out what this version does not know.
func discard(p *apportionv1.Plugin) {
	p.ProtoReflect().SetUnknown(nil)
	p.ProtoReflect().Range(func(_ protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if m, ok := v.Interface().(protoreflect.Message); ok {
			m.SetUnknown(nil)
		}
		return true
	})
}
