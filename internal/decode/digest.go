package decode

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
)

// Digest returns the digest of bytes in the form of the contract: `sha256:` and 64 hexadecimal digits.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// PolicyDigest returns the digest of a policy's canonical form: equivalent policies have equal digests.
func PolicyDigest(p *apportionv1.Policy) string { return CanonicalDigest(Canonical(p)) }

// CanonicalDigest returns the digest of a policy in its canonical form.
func CanonicalDigest(canonical *apportionv1.Policy) string {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(canonical)
	if err != nil {
		return ""
	}
	return Digest(data)
}

// Canonical returns a valid policy as it is read: with defaults, with effective settings instead of equivalent ones, with sorted switches,
// and without unknown fields.
func Canonical(p *apportionv1.Policy) *apportionv1.Policy {
	out := &apportionv1.Policy{TierWalk: p.GetTierWalk()}
	if out.TierWalk == apportionv1.TierWalk_TIER_WALK_UNSPECIFIED {
		out.TierWalk = apportionv1.TierWalk_TIER_WALK_STRICT
	}
	if r := p.GetVolcanoRelease(); r != apportionv1.VolcanoRelease_VOLCANO_RELEASE_1_15 {
		out.VolcanoRelease = r
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
	out := &apportionv1.Plugin{}
	if row, ok := catalogue.Of(p); ok {
		out = row.Canonical(p)
	}
	out.Disabled = slices.Clone(p.GetDisabled())
	slices.Sort(out.Disabled)
	out.Disabled = slices.Compact(out.Disabled)
	return out
}
