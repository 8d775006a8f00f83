package model

import (
	"fmt"
	"slices"

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

// MaxReservations bounds the reservations of one node.
const MaxReservations = 16

// Reservation keeps room of a node during a period.
type Reservation struct {
	// From and Until are in Unix nanoseconds; an Until of 0 is no end.
	From, Until int64
	// Request is what is kept; absent: the whole node.
	Request resource.Row
	// Holder is the uid of the job that may use it, which the model need not have. Empty: no job may.
	Holder string
	// Reason says why, for people.
	Reason string
}

// Whole reports whether the whole node is kept.
func (r *Reservation) Whole() bool { return r.Request.Absent() }

// Over reports whether a reservation has ended at a time.
func (r *Reservation) Over(at int64) bool { return r.Until != 0 && r.Until <= at }

// KeepsPart reports whether a reservation keeps a part of its node at a time.
func (r *Reservation) KeepsPart(at int64) bool { return !r.Whole() && r.From <= at && !r.Over(at) }

// Reservations returns those of a node.
func (n *Node) Reservations() []Reservation {
	if n.reserved == nil {
		return nil
	}
	return *n.reserved
}

// Reserved reports whether a node is kept as a whole now or later, so that a task of which neither the job nor the end is known may not use
// it.
func (m *Model) Reserved(n NodeID) bool { return m.reserves && m.reservedWhole(n) }

func (m *Model) reservedWhole(n NodeID) bool {
	list := m.Nodes[n].Reservations()
	for i := range list {
		if r := &list[i]; r.Whole() && !r.Over(m.AsOf) {
			return true
		}
	}
	return false
}

// ReservationSpec is the description of a Reservation in a snapshot.
type ReservationSpec struct {
	From, Until int64
	// Request is nil for the whole node.
	Request        *Amounts
	Holder, Reason string
}

// reservations returns what is kept of a node, nil for nothing.
func (b *Builder) reservations(list []ReservationSpec, path func(string) string) *[]Reservation {
	if len(list) == 0 {
		return nil
	}
	b.m.reserves = true
	if len(list) > MaxReservations {
		b.faults.Add(path("reservations"), "%d reservations, a node has at most %d", len(list), MaxReservations)
		return nil
	}
	out := make([]Reservation, 0, len(list))
	for i, s := range list {
		at := func(field string) string { return path(fmt.Sprintf("reservations[%d].%s", i, field)) }
		if s.From < 0 {
			b.faults.Add(at("from"), "time %d is negative", s.From)
		}
		if s.Until != 0 && s.Until <= s.From {
			b.faults.Add(at("until"), "time %d is not after from, %d", s.Until, s.From)
		}
		out = append(out, Reservation{
			From: s.From, Until: s.Until, Request: b.rowAt(s.Request, limited, at, "request"),
			Holder: b.text.keep(s.Holder), Reason: b.text.keep(s.Reason),
		})
	}
	return &out
}

// reservationSpecs returns the descriptions of reservations.
func reservationSpecs(list []Reservation) []ReservationSpec {
	var specs []ReservationSpec
	for _, r := range list {
		specs = append(specs, ReservationSpec{r.From, r.Until, amountsOf(r.Request), r.Holder, r.Reason})
	}
	return specs
}

// widerReservations returns reservations with wider rows.
func widerReservations(list []Reservation, wider func(resource.Row) resource.Row) *[]Reservation {
	if len(list) == 0 {
		return nil
	}
	out := slices.Clone(list)
	for i := range out {
		out[i].Request = wider(out[i].Request)
	}
	return &out
}

// Reserves reports whether nodes may have reservations. If it is false, none has.
func (m *Model) Reserves() bool { return m.reserves }

// ReservationCount is the number of reservations of all nodes.
func (m *Model) ReservationCount() int {
	if !m.reserves {
		return 0
	}
	n := 0
	for i := range m.Nodes {
		n += len(m.Nodes[i].Reservations())
	}
	return n
}

// ReservationBytes is about the memory of the reservations of all nodes.
func (m *Model) ReservationBytes() int { return m.ReservationCount() * m.reservationBytes() }

func (m *Model) reservationBytes() int {
	const reservation = 88
	return reservation + 8*m.Dims.Len()
}

// ownReservations returns the memory of the reservations of nodes that are not those of the base.
func ownReservations(m, base *Model) int {
	if !m.reserves {
		return 0
	}
	n := 0
	for i := range m.Nodes {
		if i >= len(base.Nodes) || m.Nodes[i].reserved != base.Nodes[i].reserved {
			n += len(m.Nodes[i].Reservations())
		}
	}
	return n * m.reservationBytes()
}
