package model

import (
	"fmt"

	"github.com/apportion/apportion/engine/resource"
)

// NodeLimits bound what the tasks of a queue may hold together on the nodes of groups.
type NodeLimits struct {
	Groups []NodeLimit
	// Invalid: the limits could not be read.
	Invalid bool
}

// NodeLimit is the bound for the nodes of one group. Limit names the dimensions that it bounds.
type NodeLimit struct {
	Group string
	Limit resource.Row
}

// Len returns the number of groups that are listed.
func (l *NodeLimits) Len() int {
	if l == nil {
		return 0
	}
	return len(l.Groups)
}

// Unreadable reports whether limits were given that could not be read.
func (l *NodeLimits) Unreadable() bool { return l != nil && l.Invalid }

// NodeLimitsSpec is the description of NodeLimits in a snapshot.
type NodeLimitsSpec struct {
	Groups  []NodeLimitSpec
	Invalid bool
}

// NodeLimitSpec is the description of a NodeLimit in a snapshot.
type NodeLimitSpec struct {
	Group string
	Limit *Amounts
}

// nodeLimits returns a queue's limits for groups of nodes, nil if it has none.
func (b *Builder) nodeLimits(s *NodeLimitsSpec, path func(string) string) *NodeLimits {
	if s == nil || len(s.Groups) == 0 && !s.Invalid {
		return nil
	}
	l := &NodeLimits{Groups: make([]NodeLimit, 0, len(s.Groups)), Invalid: s.Invalid}
	seen := make(map[string]int, len(s.Groups))
	for i, g := range s.Groups {
		at := func(field string) string { return path(fmt.Sprintf("node_group_limits.groups[%d].%s", i, field)) }
		if first, twice := seen[g.Group]; twice {
			b.faults.Add(at("group"), "node group %q is groups[%d] already", g.Group, first)
		}
		group := b.text.keep(g.Group)
		seen[group] = i
		l.Groups = append(l.Groups, NodeLimit{group, b.rowAt(g.Limit, limited, at, "limit")})
	}
	return l
}

// spec returns the description of limits, nil for nil.
func (l *NodeLimits) spec() *NodeLimitsSpec {
	if l == nil {
		return nil
	}
	s := &NodeLimitsSpec{Groups: make([]NodeLimitSpec, 0, len(l.Groups)), Invalid: l.Invalid}
	for _, g := range l.Groups {
		s.Groups = append(s.Groups, NodeLimitSpec{g.Group, amountsOf(g.Limit)})
	}
	return s
}

// widened returns the limits with wider rows, nil for nil.
func (l *NodeLimits) widened(wider func(resource.Row) resource.Row) *NodeLimits {
	if l == nil {
		return nil
	}
	out := &NodeLimits{Groups: make([]NodeLimit, 0, len(l.Groups)), Invalid: l.Invalid}
	for _, g := range l.Groups {
		out.Groups = append(out.Groups, NodeLimit{g.Group, wider(g.Limit)})
	}
	return out
}

// ownLimits returns the memory of the limits of queues for groups of nodes that are not those of the base.
func ownLimits(m, base *Model) int {
	const limits, limit = 32, 48
	bytes := 0
	for q := range m.Queues {
		if l := m.Queues[q].NodeLimits; l != nil && (q >= len(base.Queues) || l != base.Queues[q].NodeLimits) {
			bytes += limits + l.Len()*(limit+8*m.Dims.Len())
		}
	}
	return bytes
}
