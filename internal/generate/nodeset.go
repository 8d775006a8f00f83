package generate

import (
	"fmt"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// restrictTasks names node sets and restricts some groups and tasks to them; some nodes take no tasks.
func (c *cluster) restrictTasks() {
	r := c.random(nodeSetPart)
	for i := range c.shape.NodeSets {
		set := &apportionv1.NodeSet{Name: fmt.Sprintf("set-%d", i), Rule: fmt.Sprintf("node selector rack=%d", i)}
		for n := range c.out.Nodes {
			if r.chance(500) {
				set.Nodes = append(set.Nodes, uint32(n))
			}
		}
		c.out.NodeSets = append(c.out.NodeSets, set)
	}
	name := func() string { return c.out.NodeSets[r.below(len(c.out.NodeSets))].Name }
	for _, n := range c.out.Nodes {
		if r.chance(125) {
			n.Unschedulable = &apportionv1.NodeUnschedulable{Cause: apportionv1.UnschedulableCause(r.below(3)), Detail: "maintenance"}
		}
	}
	for _, j := range c.out.Jobs {
		for _, g := range j.Groups {
			if r.chance(500) {
				g.NodeSet = name()
			}
			if r.chance(125) {
				g.UnjudgedConstraints = []apportionv1.PlacementConstraint{apportionv1.PlacementConstraint(1 + r.below(7))}
			}
			for _, t := range g.Tasks {
				if r.chance(125) {
					if t.Detail == nil {
						t.Detail = &apportionv1.TaskDetail{}
					}
					t.Detail.NodeSet = name()
				}
			}
		}
	}
}
