package fair

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// course is the plugin in a model of the future: a State with accounts of its own, which hold what the model says, and without tasks.
type course struct {
	*State

	of *policy.Amounts
	// number is the position of a queue in the model's list, and place its place in the tree.
	number []int
	place  []place
}

// Course is policy.Foreseeable.Course. Usage of the past counts as it does when the session opens.
func (s *State) Course(of *policy.Amounts) policy.Course {
	view, n := *s.v, s.tree.len()
	view.Stop, view.Work = nil, nil
	own := &State{
		v: &view, plugin: s.plugin, tree: s.tree, width: s.width, dims: s.dims, quantum: s.quantum, limits: s.limits, accounts: s.accounts,
	}
	own.accounts.held, own.accounts.demand = make([]int64, n*s.width), make([]int64, n*s.width)
	own.division.open(s.width)
	own.order.wants, own.order.ratio = make([]bool, n), make([]ratio, n)
	if s.memory != nil {
		memory := *s.memory
		memory.columns, own.memory = make([]*weighed, s.width), &memory
		own.order.over, own.order.eased = make([]int64, n), make([]ratio, n)
	}
	own.settle()
	for p := range own.order.eased {
		own.order.eased[p] = own.easeOf(place(p))
	}
	c := &course{State: own, of: of, number: make([]int, len(s.v.Queues)), place: make([]place, len(of.Queues))}
	for i, q := range of.Queues {
		c.number[q], c.place[i] = i, s.tree.at[q]
	}
	for i := range of.Queues {
		c.Used(i)
	}
	return c
}

// Begin divides those dimensions anew of which queues ask for another amount.
func (c *course) Begin(asked bool, most int64) int64 {
	if !asked {
		return 0
	}
	c.v.Work = policy.NewWork(most)
	for i, p := range c.place {
		if p == none || !c.tree.isLeaf(p) {
			continue
		}
		for d, demand := range c.row(c.accounts.demand, p) {
			if now := amountOf(c.of.Asked[i][d]); now != demand {
				c.accounts.demand[int(p)*c.width+d], c.division.stale = now, c.division.stale.With(d)
			}
		}
	}
	stale := c.division.stale
	c.settle()
	for i, p := range c.place {
		for m := stale; p != none && m != 0; m = m.Rest() {
			c.of.Deserved[i][m.First()] = float64(c.lineWithMemory(p, m.First()))
		}
	}
	return c.v.Work.Spent() + int64(len(c.place)*c.width)
}

// amountOf returns a sum of amounts, which may differ in its last digits, as a whole number.
func amountOf(x float64) int64 { return atLeast(math.Ceil(x - resource.Threshold)) }

// Used finds what a queue and those above it hold, and by what they are ordered.
func (c *course) Used(i int) {
	for p := c.place[i]; p != none && c.tree.queue[p] != model.None; p = c.tree.parent[p] {
		held := c.row(c.accounts.held, p)
		for d, used := range c.of.Used[c.number[c.tree.queue[p]]] {
			held[d] = amountOf(used)
		}
		c.rate(p)
	}
}

// Compare is CompareQueues, with the queues that want something as the model knows it.
func (c *course) Compare(l, r int, wants []bool) int {
	lp, rp, by := c.branching(c.of.Queues[l], c.of.Queues[r])
	if by != 0 || lp == rp {
		return by
	}
	for _, p := range [...]place{lp, rp} {
		c.order.wants[p] = wants[c.number[c.tree.queue[p]]]
	}
	return c.compareSiblings(lp, rp)
}

// Excess is what is lent.
func (*course) Excess() policy.Excess { return policy.LentExcess }
