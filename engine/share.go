package engine

import (
	"github.com/apportion/apportion/engine/policy"
)

// Divider is a plugin that divides; its non-nil fields are the supported questions.
type Divider struct {
	Name   string
	State  policy.State
	Queues policy.Sharer
	Jobs   policy.JobSharer
	Tree   policy.TreeSharer
	Forest policy.Tree
}

// Dividers returns the plugins that divide among queues, among jobs, or along a tree, in order of the policy.
func (s *Session) Dividers() []Divider {
	var list []Divider
	for _, p := range s.plugins {
		d := Divider{Name: p.name, State: p.state}
		d.Queues, _ = p.state.(policy.Sharer)
		d.Jobs, _ = p.state.(policy.JobSharer)
		d.Tree, _ = p.state.(policy.TreeSharer)
		d.Forest, _ = p.state.(policy.Tree)
		if d.Queues != nil || d.Jobs != nil || d.Tree != nil {
			list = append(list, d)
		}
	}
	return list
}
