package main

import (
	"bytes"
	"slices"
	"time"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/contract/lookup"
	"github.com/apportion/apportion/contract/text"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// kueuePolicy is the preset for manifests of Kueue.
const kueuePolicy = "kueue"

// byKueue reports whether a policy is that of Kueue.
func byKueue(policy *apportionv1.Policy) bool {
	return slices.ContainsFunc(policy.GetTiers(), func(tier *apportionv1.Tier) bool {
		return slices.ContainsFunc(tier.GetPlugins(), func(p *apportionv1.Plugin) bool { return p.GetKueue() != nil })
	})
}

// ofKueue reports whether manifests have objects of Kueue and none of Volcano.
func ofKueue(sources []volcano.Source) bool {
	found := false
	for _, s := range sources {
		if bytes.Contains(s.Data, []byte("scheduling.volcano.sh/")) {
			return false
		}
		found = found || kueue.Recognizes(s.Data)
	}
	return found
}

// readKueue returns the input from manifests of Kueue.
func (f *inputFlags) readKueue(sources []volcano.Source, policy *apportionv1.Policy) (*input, error) {
	moment, given, err := f.moment(policy)
	if err != nil {
		return nil, err
	}
	if !given {
		moment = time.Now()
	}
	read := make([]kueue.Source, len(sources))
	for i, s := range sources {
		read[i] = kueue.Source{Name: s.Name, Data: s.Data}
	}
	cluster, err := kueue.Read(read, moment)
	if err != nil {
		return nil, err
	}
	loaded := &input{Input: client.Input{Policy: policy, Snapshot: cluster.Snapshot}, snapshot: lookup.Of(cluster.Snapshot)}
	for _, l := range cluster.Snapshot.GetLeftOut() {
		loaded.warnings = append(loaded.warnings, &apportionv1.Warning{
			Code:    apportionv1.WarningCode_WARNING_CODE_DROPPED,
			Message: text.LeftOut(&apportionv1.LeftOutExplanation{LeftOut: l}),
		})
	}
	return loaded, nil
}
