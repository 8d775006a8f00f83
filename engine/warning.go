package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// maxWarnings is the largest number of listed warnings.
const maxWarnings = 100

// Warnings reports input that is valid but probably unintended: first findings for every policy, then those of each plugin, in order of the
// policy. If there are more than 100, the last one says so. Nothing is compared with a total that is not known.
func (s *Session) Warnings() []policy.Warning {
	var list []policy.Warning
	found := 0
	add := func(w policy.Warning) {
		if !s.view.KnowsTotal() && comparesWithTotal(w.Code) {
			return
		}
		if found++; found < maxWarnings {
			list = append(list, w)
		}
	}
	if n := s.view.OffNode; n > 0 {
		add(policy.Warning{
			Code: policy.TasksOffNode, Path: "nodes", Queue: model.None,
			Text: fmt.Sprintf("tasks that were on nodes removed by the change are on no node: %d", n),
		})
	}
	s.warnOfUnoffered(add)
	s.warnOfSmallNodes(add)
	s.warnOfReservations(add)
	for _, p := range s.plugins {
		if w, ok := p.State.(policy.Warner); ok {
			w.Warnings(add)
		}
	}
	if found >= maxWarnings {
		list = append(list, policy.Warning{
			Code: policy.WarningsTruncated, Queue: model.None,
			Text: fmt.Sprintf("%d warnings in all, of which %d are listed", found, len(list)),
		})
	}
	return list
}

func comparesWithTotal(code policy.WarningCode) bool {
	return code == policy.DimensionNotOffered || code == policy.GuaranteesExceedTotal || code == policy.ScalarGuaranteedAway
}

// warnOfUnoffered names the dimensions that queues or present jobs name but the cluster's total does not.
func (s *Session) warnOfUnoffered(add func(policy.Warning)) {
	v := s.view
	named := resource.Mask(0)
	for q := range v.Queues {
		queue := &v.Queues[q]
		named |= queue.Capability.Has | queue.Guarantee.Has | queue.Deserved.Has | v.QueueSumOf(model.QueueID(q)).Named.Has
	}
	for m := named &^ v.Total.Has; m != 0; m = m.Rest() {
		add(policy.Warning{
			Code: policy.DimensionNotOffered, Path: "dimensions", Queue: model.None,
			Text: fmt.Sprintf("queues or jobs name %q, which no node offers", v.Dims.Name(m.First())),
		})
	}
}

// warnOfSmallNodes names nodes with less than one core or one device, which no real node has: amounts are in thousandths of these.
func (s *Session) warnOfSmallNodes(add func(policy.Warning)) {
	for _, small := range s.view.SmallNodes() {
		node, one, unit := &s.view.Nodes[small.First], "core", "amounts of cpu are in milli-cores, 1000 for a core"
		if small.Dimension != resource.CPU {
			one, unit = s.view.Dims.Name(small.Dimension), "amounts of devices are in thousandths, 1000 for one"
		}
		add(policy.Warning{
			Code: policy.NodeBelowOne, Path: fmt.Sprintf("nodes[%d].allocatable", small.First), Queue: model.None,
			Text:      fmt.Sprintf("nodes with less than 1 %s: %d, such as %q with {0}; %s", one, small.N, node.Name, unit),
			Dimension: small.Dimension, Amounts: []float64{node.Allocatable.V[small.Dimension]},
		})
	}
}

// warnOfReservations names reservations of a node that keep it from the jobs that hold them: those that last when one of them begins, and
// together keep more than it has, or one of which keeps all of it. What one job holds does not keep it off.
func (s *Session) warnOfReservations(add func(policy.Warning)) {
	v := s.view
	for i, n := range v.NodeOrder {
		v.Yield(i)
		list := v.Nodes[n].Reservations()
		for k := range list {
			w, blocks := s.blockedFrom(&v.Nodes[n], max(list[k].From, v.AsOf))
			if !blocks {
				continue
			}
			w.Path = fmt.Sprintf("nodes[%d].reservations[%d]", n, k)
			add(w)
			break
		}
	}
}

// blockedFrom warns of the reservations of a node that block each other at a time; false if they do not.
func (s *Session) blockedFrom(node *model.Node, at int64) (policy.Warning, bool) {
	var holders []string
	whole, sum := false, resource.NewRow(s.view.Dims.Len())
	list := node.Reservations()
	for i := range list {
		one := &list[i]
		if one.From > at || one.Over(at) {
			continue
		}
		if whole = whole || one.Whole(); !one.Whole() {
			sum.Add(one.Request)
		}
		if holder := forHolder(one); !slices.Contains(holders, holder) {
			holders = append(holders, holder)
		}
	}
	w := policy.Warning{Code: policy.ReservationsBlock, Queue: model.None}
	if len(holders) <= 1 {
		return w, false
	}
	which := fmt.Sprintf("reservations of node %q at the same time, %s,", node.Name, strings.Join(holders, " and "))
	if whole {
		w.Text = which + " keep it from each other: one of them is of all of it"
		return w, true
	}
	for kept := sum.Positive(); kept != 0; kept = kept.Rest() {
		if d := kept.First(); sum.V[d]-node.Allocatable.V[d] >= resource.Threshold {
			w.Text = fmt.Sprintf("%s keep it from each other: {0} of %s together, of which it has {1}", which, s.view.Dims.Name(d))
			w.Dimension, w.Amounts = d, []float64{sum.V[d], node.Allocatable.V[d]}
			return w, true
		}
	}
	return w, false
}

// forHolder says for whom a reservation is.
func forHolder(r *model.Reservation) string {
	if r.Holder == "" {
		return "for nobody"
	}
	return fmt.Sprintf("for %q", r.Holder)
}
