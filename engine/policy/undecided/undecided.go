// Package undecided stands for plugins of a converted configuration that take no part in the decisions made here.
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
}

// Name returns the name in the configuration.
func (p Plugin) Name() string { return p.Called }

// Open returns a state that warns, and decides nothing.
func (p Plugin) Open(*policy.View) (policy.State, error) { return state(p), nil }

type state Plugin

// Warnings says that the plugin takes no part.
func (s state) Warnings(add func(policy.Warning)) {
	add(policy.Warning{
		Code: policy.PluginUndecided, Queue: model.None,
		Text: fmt.Sprintf("the plugin %q takes part in no decision of Apportion", s.Called),
	})
}
