package decode

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/field"
)

func (c *compiler) nodeSet(s *apportionv1.NodeSet) {
	c.text(s.GetName())
	c.text(s.GetRule())
	spec := model.NodeSetSpec{
		Name: s.GetName(), Rule: s.GetRule(), Nodes: s.GetNodes(), ToleratesCordon: s.GetToleratesCordon(), Fixed: s.GetFixed(),
		Extra: extra(c, s.GetFlavor()),
	}
	for _, e := range s.GetExclusions() {
		c.text(e.GetRule())
		spec.Exclusions = append(spec.Exclusions, model.ExclusionSpec{
			Rule: e.GetRule(), Nodes: e.GetNodes(), Firm: e.GetFirm(), OtherRole: e.GetOtherRole(),
		})
	}
	for _, p := range s.GetPreferences() {
		spec.Preferences = append(spec.Preferences, model.PreferenceSpec{
			Untolerated: p.GetUntolerated(), Affinity: p.GetAffinity(), Nodes: p.GetNodes(),
		})
	}
	c.b.NodeSet(spec)
}

func (c *compiler) unschedulable(i int, u *apportionv1.NodeUnschedulable) *model.Unschedulable {
	if u == nil {
		return nil
	}
	cause := u.GetCause()
	if cause < 0 || cause > apportionv1.UnschedulableCause_UNSCHEDULABLE_CAUSE_NOT_READY {
		c.b.Fault(fmt.Sprintf("nodes[%d].unschedulable.cause", i), "no cause %d", cause)
		cause = 0
	}
	c.text(u.GetDetail())
	c.closed = model.Unschedulable{Cause: model.Cause(cause), Detail: u.GetDetail()}
	return &c.closed
}

// reservations returns what is kept of a node.
func (c *compiler) reservations(list []*apportionv1.NodeReservation) []model.ReservationSpec {
	if len(list) == 0 {
		return nil
	}
	specs := make([]model.ReservationSpec, 0, len(list))
	for _, r := range list {
		c.text(r.GetHolder())
		c.text(r.GetReason())
		request := &amounts{}
		specs = append(specs, model.ReservationSpec{
			From: r.GetStartUnixNano(), Until: r.GetEndUnixNano(), Request: request.of(r.GetRequest()),
			Holder: r.GetHolder(), Reason: r.GetReason(),
		})
	}
	return specs
}

// wireReservations is the inverse of reservations.
func wireReservations(m *model.Model, list []model.Reservation) []*apportionv1.NodeReservation {
	var out []*apportionv1.NodeReservation
	for i := range list {
		r := &list[i]
		out = append(out, &apportionv1.NodeReservation{
			StartUnixNano: r.From, EndUnixNano: r.Until, Request: resourceOf(m, r.Request), Holder: r.Holder, Reason: r.Reason,
		})
	}
	return out
}

// constraints returns the set of a list; fault is called for each value that is not known or is given twice.
func constraints(list []apportionv1.PlacementConstraint, fault func(at int, format string, args ...any)) model.Constraints {
	set := model.Constraints(0)
	for i, c := range list {
		if c <= 0 || c > apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_LEFT_OUT {
			fault(i, "no constraint %d", c)
			continue
		}
		if bit := model.Constraints(1) << c; set&bit == 0 {
			set |= bit
		} else {
			fault(i, "%s is given twice", c)
		}
	}
	return set
}

// WireConstraints lists a set in order of its values.
func WireConstraints(set model.Constraints) []apportionv1.PlacementConstraint {
	var list []apportionv1.PlacementConstraint
	for c := apportionv1.PlacementConstraint(1); set>>c != 0; c++ {
		if set>>c&1 != 0 {
			list = append(list, c)
		}
	}
	return list
}

// podRules feeds the rules on other pods; none are not set.
func (c *compiler) podRules(m *apportionv1.PodRules) {
	if m == nil {
		return
	}
	rules := &model.PodRules{
		Topologies: make([]model.Topology, 0, len(m.GetTopologies())), Classes: make([]model.PodClass, 0, len(m.GetClasses())),
	}
	for _, t := range m.GetTopologies() {
		c.text(t.GetKey())
		rules.Topologies = append(rules.Topologies, model.Topology{Key: strings.Clone(t.GetKey()), Node: t.GetNode()})
	}
	for _, class := range m.GetClasses() {
		rules.Classes = append(rules.Classes, c.podClass(class))
	}
	c.b.Pods(rules)
}

func (c *compiler) podClass(m *apportionv1.PodClass) model.PodClass {
	out := model.PodClass{
		Selections: append([]uint32(nil), m.GetSelections()...), Affinity: append([]uint32(nil), m.GetAffinityTopologies()...),
		AffinitySelection: m.GetAffinitySelection(),
	}
	for _, a := range m.GetAntiAffinities() {
		out.AntiAffinities = append(out.AntiAffinities, model.PodAntiAffinity{Selection: a.GetSelection(), Topology: a.GetTopology()})
	}
	for _, s := range m.GetSpreads() {
		c.text(s.GetNodeSet())
		out.Spreads = append(out.Spreads, model.PodSpread{
			Selection: s.GetSelection(), Topology: s.GetTopology(), MaxSkew: s.GetMaxSkew(), MinDomains: s.GetMinDomains(),
			NodeSet: strings.Clone(s.GetNodeSet()),
		})
	}
	for _, p := range m.GetPorts() {
		c.text(p.GetProtocol())
		c.text(p.GetAddress())
		out.Ports = append(out.Ports, model.HostPort{
			Port: p.GetPort(), Protocol: strings.Clone(cmp.Or(p.GetProtocol(), "TCP")),
			Address: strings.Clone(cmp.Or(p.GetAddress(), model.EveryAddress)),
		})
	}
	return out
}

// nodePods lends what a node says of other pods to the builder, nil if that is nothing.
func (c *compiler) nodePods(n *apportionv1.Node) *model.NodePods {
	if len(n.GetDomains())+len(n.GetOtherPods())+len(n.GetLeavingPods()) == 0 {
		return nil
	}
	c.pods = model.NodePods{Domains: n.GetDomains(), Others: n.GetOtherPods(), Leaving: n.GetLeavingPods()}
	return &c.pods
}

// pods counts the rules on other pods.
func (z *Size) pods(b []byte) {
	z.extra(b)
	const class = 2<<3 | field.Delimited
	field.Each(b, class, func(data []byte) bool {
		z.extra(data)
		return true
	})
}

// podsOfNode counts what a node says of other pods: each number takes a byte at least, as those of node sets do.
func (z *Size) podsOfNode(b []byte) bool {
	for i := 0; i < len(b); {
		tag, _, from, to := field.At(b, i)
		if to < 0 {
			break
		}
		switch i = to; tag &^ 7 {
		case tagNodeDomains, tagNodeOthers, tagNodeLeaving:
			z.NodeSetBytes += int64(max(to-from, 1))
		}
	}
	return true
}

// podBytes is the memory of the rules on other pods and of what the nodes say of them.
func podBytes(m *model.Model) int64 {
	bytes := m.Pods.Bytes()
	for i := range m.Nodes {
		bytes += m.Nodes[i].Pods.Bytes()
	}
	return int64(bytes)
}

// wirePods returns the message of the rules on other pods, nil for nil.
func wirePods(rules *model.PodRules) *apportionv1.PodRules {
	if rules == nil {
		return nil
	}
	out := &apportionv1.PodRules{}
	for _, t := range rules.Topologies {
		out.Topologies = append(out.Topologies, &apportionv1.Topology{Key: t.Key, Node: t.Node})
	}
	for i := range rules.Classes {
		c := &rules.Classes[i]
		class := &apportionv1.PodClass{
			Selections: c.Selections, AffinityTopologies: c.Affinity, AffinitySelection: c.AffinitySelection,
		}
		for _, a := range c.AntiAffinities {
			class.AntiAffinities = append(class.AntiAffinities, &apportionv1.PodAntiAffinity{Selection: a.Selection, Topology: a.Topology})
		}
		for _, s := range c.Spreads {
			class.Spreads = append(class.Spreads, &apportionv1.PodSpread{
				Selection: s.Selection, Topology: s.Topology, MaxSkew: s.MaxSkew, MinDomains: s.MinDomains, NodeSet: s.NodeSet,
			})
		}
		for _, p := range c.Ports {
			class.Ports = append(class.Ports, &apportionv1.HostPort{Port: p.Port, Protocol: p.Protocol, Address: p.Address})
		}
		out.Classes = append(out.Classes, class)
	}
	return out
}
