package kueue

import (
	"slices"
	"strings"
)

// fillQuotas sets the quotas of all nodes and compiles the queues.
func (c *compiler) fillQuotas() {
	checks := make(map[string]bool, len(c.cluster.Checks))
	for i := range c.cluster.Checks {
		checks[c.cluster.Checks[i].Name] = c.cluster.Checks[i].Active
	}
	for i := range c.cluster.Cohorts {
		for k := range c.cluster.Cohorts[i].Groups {
			c.fillGroup(int32(len(c.queues)+i), &c.cluster.Cohorts[i].Groups[k])
		}
	}
	for i := range c.cluster.Queues {
		from, q := &c.cluster.Queues[i], &c.queues[i]
		q.preemption, q.fungibility, q.usageBased, q.strict = from.Preemption, from.Fungibility, from.UsageBased, from.Strict
		q.inactive, q.missing = c.inactivity(from, checks)
		for k := range from.Groups {
			c.fillGroup(int32(i), &from.Groups[k])
			q.groups = append(q.groups, c.group(int32(i), &from.Groups[k]))
			q.width += 1 + len(from.Groups[k].Covered) + len(from.Groups[k].Flavors)
		}
	}
}

// inactivity returns the first reason for which a queue is inactive, with the flavor or the admission check that it is about.
func (c *compiler) inactivity(q *Queue, checks map[string]bool) (reason Inactivity, missing string) {
	if q.Stopped {
		return Stopped, ""
	}
	for i := range q.Groups {
		for k := range q.Groups[i].Flavors {
			if name := q.Groups[i].Flavors[k].Flavor; !c.flavors[c.flavor(name)].exists {
				return FlavorNotFound, name
			}
		}
	}
	for _, name := range q.Checks {
		switch active, ok := checks[name]; {
		case !ok:
			return CheckNotFound, name
		case !active && reason == Active:
			reason, missing = CheckInactive, name
		}
	}
	return reason, missing
}

func (c *compiler) fillGroup(n int32, g *Group) {
	if c.nodes[n].tree == none {
		return
	}
	for f := range g.Flavors {
		for r := range g.Flavors[f].Resources {
			q := &g.Flavors[f].Resources[r]
			at := c.nodes[n].row + c.pairs[c.nodes[n].tree][pair{c.flavor(g.Flavors[f].Flavor), c.resource[q.Resource]}]
			a := &c.quotas
			a.nominal[at], a.kept[at] = q.Nominal, a.kept[at]|hasQuota|hasSubtree
			if q.Borrowing != nil {
				a.borrowing[at], a.kept[at] = *q.Borrowing, a.kept[at]|hasBorrowing
			}
			if q.Lending != nil {
				a.lending[at], a.kept[at] = *q.Lending, a.kept[at]|hasLending
			}
		}
	}
}

func (c *compiler) group(n int32, g *Group) group {
	var out group
	for _, name := range g.Covered {
		out.covered = append(out.covered, c.resource[name])
	}
	for f := range g.Flavors {
		id := c.flavor(g.Flavors[f].Flavor)
		out.flavors = append(out.flavors, id)
		for _, r := range out.covered {
			fr := int32(none)
			if t := c.nodes[n].tree; t != none {
				fr = c.pairs[t][pair{id, r}]
			}
			out.frs = append(out.frs, fr)
		}
	}
	out.index()
	return out
}

// settle computes all sums: children, subtree quotas and usage from below, potential capacity from above.
func (c *compiler) settle() {
	for i := range c.queues {
		if n := &c.nodes[i]; n.tree != none {
			c.settleNode(int32(i))
			if p := n.parent; p != none && c.queues[i].active() {
				c.nodes[p].queues = append(c.nodes[p].queues, int32(i))
			}
		}
	}
	for _, id := range slices.Backward(c.topDown) {
		n := &c.nodes[id]
		c.settleNode(id)
		byName := func(a, b int32) int { return strings.Compare(c.nodes[a].name, c.nodes[b].name) }
		slices.SortFunc(n.cohorts, byName)
		slices.SortFunc(n.queues, byName)
		n.height = int32(min(len(n.queues)+len(n.cohorts), 1))
		for _, child := range n.cohorts {
			n.height = max(n.height, c.nodes[child].height+1)
		}
		if n.parent != none {
			c.nodes[n.parent].cohorts = append(c.nodes[n.parent].cohorts, id)
		}
	}
	for _, id := range c.topDown {
		c.settlePotential(id)
		c.settleLendable(id)
	}
	for i := range c.queues {
		if c.nodes[i].tree != none {
			c.settlePotential(int32(i))
		}
	}
}

// settleNode computes what a node has and lends, once all nodes below it have added theirs, and adds it to the parent.
func (c *compiler) settleNode(id int32) {
	n, a := &c.nodes[id], &c.quotas
	for fr := range int32(len(c.trees[n.tree].pairs)) {
		at := n.row + fr
		a.subtree[at] = a.subtree[at].plus(a.nominal[at])
		if a.kept[at]&hasLending != 0 {
			a.local[at] = max(0, a.subtree[at].minus(a.lending[at]))
		}
		if n.parent == none {
			continue
		}
		up := c.nodes[n.parent].row + fr
		a.subtree[up] = a.subtree[up].plus(a.subtree[at].minus(a.local[at]))
		c.usage[up] = c.usage[up].plus(max(0, c.usage[at].minus(a.local[at])))
		a.kept[up] |= a.kept[at] & (hasSubtree | hasUsage)
	}
}

// settlePotential computes what a node could have without any usage, once its parent's is known.
func (c *compiler) settlePotential(id int32) {
	n, a := &c.nodes[id], &c.quotas
	for fr := range int32(len(c.trees[n.tree].pairs)) {
		at := n.row + fr
		a.potential[at] = a.subtree[at]
		if n.parent == none {
			continue
		}
		a.potential[at] = a.local[at].plus(a.potential[c.nodes[n.parent].row+fr])
		if a.kept[at]&hasBorrowing != 0 {
			a.potential[at] = min(a.potential[at], a.subtree[at].plus(a.borrowing[at]))
		}
	}
}

// settleLendable sums up, by resource, what the children of a cohort could have.
func (c *compiler) settleLendable(id int32) {
	n, a := &c.nodes[id], &c.quotas
	t := &c.trees[n.tree]
	for fr := range int32(len(t.pairs)) {
		if a.kept[c.nodes[t.root].row+fr]&hasSubtree != 0 {
			at := n.lendable + t.resource[fr]
			a.lendable[at] = a.lendable[at].plus(a.potential[n.row+fr])
		}
	}
}
