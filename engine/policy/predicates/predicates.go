// Package predicates stands for the plugin with which Volcano heeds what nodes and pods say about where pods may run
// (pkg/scheduler/plugins/predicates). The rules themselves are the frame's, which heeds them under every policy.
package predicates

import "github.com/apportion/apportion/engine/policy"

// Name is the plugin's name in a configuration.
const Name = "predicates"

// Plugin is the policy; it has no settings.
type Plugin struct{}

// Name returns "predicates".
func (Plugin) Name() string { return Name }

// Open returns a policy.NodeFilter.
func (Plugin) Open(*policy.View) (policy.State, error) { return state{}, nil }

type state struct{}

var _ policy.NodeFilter = state{}

// FiltersNodes says that nodes are filtered.
func (state) FiltersNodes() {}
