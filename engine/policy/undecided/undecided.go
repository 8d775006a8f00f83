// Package undecided stands for plugins of a converted configuration that take no part in the decisions made here, though they may vote on
// them in Volcano.
package undecided

import (
	"fmt"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Plugin takes part in nothing.
type Plugin struct {
	// Called is the plugin's name in the configuration.
	Called string
	// VotesOn are the decisions that it votes on in Volcano: bit d for the decision d of the contract.
	VotesOn uint32
}

// Name returns the name in the configuration.
func (p Plugin) Name() string { return p.Called }

// Open returns a state that warns, and decides nothing.
func (p Plugin) Open(*policy.View) (policy.State, error) { return state(p), nil }

type state Plugin

// Votes are the decisions that the plugin votes on in Volcano.
func (s state) Votes() uint32 { return s.VotesOn }

// Warnings says that the plugin takes no part.
func (s state) Warnings(add func(policy.Warning)) {
	text := fmt.Sprintf("the plugin %q takes part in no decision of Apportion", s.Called)
	if s.VotesOn != 0 {
		text = fmt.Sprintf("the plugin %q is not modelled: what it votes on is decided without it", s.Called)
	}
	add(policy.Warning{Code: policy.PluginUndecided, Queue: model.None, Text: text})
}
