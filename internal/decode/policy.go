package decode

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/spelling"
)

// Policy returns a policy for the engine, or a *Fault with every violation by path (policy.tiers[0].plugins[1].disabled[2]). An absent
// policy is one without plugins.
func Policy(p *apportionv1.Policy) (engine.Policy, error) {
	var faults model.Error
	out := engine.Policy{Walk: engine.Strict}
	switch p.GetTierWalk() {
	case apportionv1.TierWalk_TIER_WALK_UNSPECIFIED, apportionv1.TierWalk_TIER_WALK_STRICT:
	case apportionv1.TierWalk_TIER_WALK_VOLCANO:
		out.Walk = engine.Volcano
	default:
		faults.Add("tier_walk", "no tier walk %d", p.GetTierWalk())
	}
	switch p.GetVolcanoRelease() {
	case apportionv1.VolcanoRelease_VOLCANO_RELEASE_UNSPECIFIED, apportionv1.VolcanoRelease_VOLCANO_RELEASE_1_15:
	case apportionv1.VolcanoRelease_VOLCANO_RELEASE_1_16:
		out.Release = policy.V116
	default:
		faults.Add("volcano_release", "no release %d", p.GetVolcanoRelease())
	}
	out.Actions = actions(p.GetVolcano().GetActions(), &faults)
	if length := len(p.GetSource()); length > maxSource {
		faults.Add("source", "%d bytes are more than %d", length, maxSource)
	}
	for i, t := range p.GetTiers() {
		tier := make(engine.Tier, 0, len(t.GetPlugins()))
		for k, plugin := range t.GetPlugins() {
			tier = append(tier, entry(plugin, fmt.Sprintf("tiers[%d].plugins[%d]", i, k), &faults))
		}
		out.Tiers = append(out.Tiers, tier)
	}
	if faults.Total == 0 {
		if violations, ok := errors.AsType[*model.Error](out.Check()); ok {
			faults = *violations
		}
	}
	if faults.Total > 0 {
		return engine.Policy{}, Invalid(apportionv1.ErrorReason_ERROR_REASON_INVALID_POLICY, Prefixed(&faults, "policy."))
	}
	return out, nil
}

// Bounds of a policy: the bytes of its source, and the actions of a cycle, which an answer may go through one by one.
const maxSource, maxActions = 1000, 100

// actions returns the actions of a cycle, nil for none.
func actions(names []string, faults *model.Error) []string {
	if len(names) > maxActions {
		faults.Add("volcano.actions", "%d actions are more than %d", len(names), maxActions)
		return nil
	}
	for i, name := range names {
		if known := engine.Actions(); !slices.Contains(known, name) {
			faults.Add(fmt.Sprintf("volcano.actions[%d]", i), "no action %q%s", Cut(name, MaxText),
				spelling.Then(spelling.Suggestion(name, slices.Values(known)), "there are "+strings.Join(known, ", ")))
		}
	}
	return slices.Clone(names)
}

func entry(p *apportionv1.Plugin, path string, faults *model.Error) engine.Entry {
	var e engine.Entry
	if row, ok := catalogue.Of(p); ok {
		e.Plugin = row.Read(p, func(setting, format string, args ...any) { faults.Add(path+"."+setting, format, args...) })
	} else {
		faults.Add(path+".plugin", "the plugin has no kind that this version supports")
	}
	for i, d := range p.GetDisabledDecisions() {
		if d <= apportionv1.Decision_DECISION_UNSPECIFIED || d > apportionv1.Decision_DECISION_VICTIM {
			faults.Add(fmt.Sprintf("%s.disabled_decisions[%d]", path, i), "no decision %d", d)
			continue
		}
		e.Disabled = e.Disabled.With(engine.Decision(d))
	}
	return e
}

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
// without what it says of itself, and without unknown fields.
func Canonical(p *apportionv1.Policy) *apportionv1.Policy {
	out := &apportionv1.Policy{TierWalk: p.GetTierWalk()}
	if out.TierWalk == apportionv1.TierWalk_TIER_WALK_UNSPECIFIED {
		out.TierWalk = apportionv1.TierWalk_TIER_WALK_STRICT
	}
	if r := p.GetVolcanoRelease(); r != apportionv1.VolcanoRelease_VOLCANO_RELEASE_1_15 {
		out.VolcanoRelease = r
	}
	if names := p.GetVolcano().GetActions(); len(names) > 0 {
		out.Cycle = &apportionv1.Policy_Volcano{Volcano: &apportionv1.VolcanoCycle{Actions: slices.Clone(names)}}
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
	out.DisabledDecisions = slices.Clone(p.GetDisabledDecisions())
	slices.Sort(out.DisabledDecisions)
	out.DisabledDecisions = slices.Compact(out.DisabledDecisions)
	return out
}
