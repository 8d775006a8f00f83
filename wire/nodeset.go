package wire

import (
	"fmt"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// nodeSetSlot is a node set that is filled again and again.
type nodeSetSlot struct{ m apportionv1.NodeSet }

func (n *nodeSetSlot) fill(data []byte) bool {
	n.m.Name, n.m.Rule, n.m.Nodes = "", "", n.m.Nodes[:0]
	var f field
	s := scanner{rest: data}
	for s.next(&f) {
		switch {
		case f.number == 2:
			n.m.Nodes = s.uint32s(&f, n.m.Nodes)
		case f.kind != delimited:
		case f.number == 1:
			n.m.Name = s.text(&f)
		case f.number == 3:
			n.m.Rule = s.text(&f)
		}
	}
	return !s.bad
}

// constraints appends the field, packed or not, to a list.
func (s *scanner) constraints(f *field, to []apportionv1.PlacementConstraint) []apportionv1.PlacementConstraint {
	var list [8]uint32
	for _, c := range s.uint32s(f, list[:0]) {
		to = append(to, apportionv1.PlacementConstraint(int32(c)))
	}
	return to
}

// nodeSets reads all node sets, which refer to nodes that are there already.
func (d *Decoder) nodeSets(pieces [2][]byte) bool {
	var f field
	for _, piece := range pieces {
		for s := (scanner{rest: piece}); s.next(&f); {
			if f.number != 8 || f.kind != delimited {
				continue
			}
			if d.stopped() || !d.set.fill(f.data) {
				return false
			}
			d.c.nodeSet(&d.set.m)
		}
	}
	return true
}

func (c *compiler) nodeSet(s *apportionv1.NodeSet) {
	c.text(s.GetName())
	c.text(s.GetRule())
	c.b.NodeSet(model.NodeSetSpec{Name: s.GetName(), Rule: s.GetRule(), Nodes: s.GetNodes()})
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

// constraints returns the set of a list; fault is called for each value that is not known or is given twice.
func constraints(list []apportionv1.PlacementConstraint, fault func(at int, format string, args ...any)) model.Constraints {
	set := model.Constraints(0)
	for i, c := range list {
		if c <= 0 || c > apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_OTHER {
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

// wireConstraints lists a set in order of its values.
func wireConstraints(set model.Constraints) []apportionv1.PlacementConstraint {
	var list []apportionv1.PlacementConstraint
	for c := apportionv1.PlacementConstraint(1); set>>c != 0; c++ {
		if set>>c&1 != 0 {
			list = append(list, c)
		}
	}
	return list
}
