package decode

import (
	"fmt"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func (c *compiler) nodeSet(s *apportionv1.NodeSet) {
	c.text(s.GetName())
	c.text(s.GetRule())
	spec := model.NodeSetSpec{
		Name: s.GetName(), Rule: s.GetRule(), Nodes: s.GetNodes(), ToleratesCordon: s.GetToleratesCordon(), Fixed: s.GetFixed(),
	}
	for _, e := range s.GetExclusions() {
		c.text(e.GetRule())
		spec.Exclusions = append(spec.Exclusions, model.ExclusionSpec{
			Rule: e.GetRule(), Nodes: e.GetNodes(), Firm: e.GetFirm(), OtherRole: e.GetOtherRole(),
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
			From: r.GetStartUnixNano(), Until: r.GetEndUnixNano(), Request: request.of(r.GetRequest()), Holder: r.GetHolder(), Reason: r.GetReason(),
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
