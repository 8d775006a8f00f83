// Package drf serves the job of the smallest dominant share first (Volcano's pkg/scheduler/plugins/drf without hierarchy).
package drf

import (
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/dominant"
)

// Plugin is the policy; it has no settings.
type Plugin struct{}

// Name is Volcano's name of the plugin.
func (Plugin) Name() string { return dominant.Name }

// Open returns a *State, or policy.ErrStopped.
func (Plugin) Open(v *policy.View) (policy.State, error) {
	jobs, err := dominant.Open(v)
	if err != nil {
		return nil, err
	}
	return &State{jobs}, nil
}

// State holds the accounts of jobs; queues take no part.
type State struct {
	*dominant.Jobs
}
