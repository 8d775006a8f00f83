package check

import (
	"math/big"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// plan is the state of the cluster while a plan of fair is carried out.
//
// What fair promises of it, whatever search found it: each victim may be evicted, its queue holds more than a line of which the claimant
// wants less, each is needed, the claimant has room and stays within its limits, and queues lack less of their lines after it than before.
type plan struct {
	*check

	// queue is the claimant's, need what its tasks ask for together.
	queue int
	need  []int64
	// held and room are what queues hold and what is left of nodes, of the cluster under root; placed is what the claimant takes of these.
	held, room, placed map[int][]int64
	// slack counts the sums of a node that are rounded; 0 where whole amounts decide.
	slack map[int]int64
	// own and others are the victims of the claimant's queue and of other queues.
	own, others []*task
}

// newPlan returns the state before a plan for some tasks of one queue.
func (c *check) newPlan(tasks []*task) *plan {
	p := &plan{
		check: c, queue: tasks[0].leaf, need: make([]int64, len(c.dims)), held: copyRows(c.held), room: copyRows(c.future),
		placed: map[int][]int64{}, slack: map[int]int64{},
	}
	for _, t := range tasks {
		add(p.need, t.request, 1)
	}
	return p
}

// unclaimed returns why no promise of plans is checked: there is no certificate, or more decides than the lines of fair; "" if they are.
func (c *check) unclaimed() string {
	switch {
	case c.lines == nil:
		return withExplain
	case c.turns():
		return "the room that turns keep for gangs is not known here"
	case slices.ContainsFunc(c.GetNodes(), func(n *apportionv1.Node) bool { return len(n.GetReservations()) > 0 }):
		return "the room that is kept of nodes is not known here"
	}
	tier := -1
	for i, t := range c.policy.GetTiers() {
		for _, plugin := range t.GetPlugins() {
			name := string(memberOf(plugin))
			switch {
			case len(plugin.GetDisabledDecisions()) > 0 || !slices.Contains(besideFair, name):
				return "plans are checked where fair decides about queues alone, and takes part in all decisions"
			case tier < 0 && slices.Contains(guards, name):
				tier = i
			}
			if name == ofFair && tier >= 0 && tier < i {
				return "an earlier tier decides about victims"
			}
		}
	}
	return ""
}

// turns reports whether gangs may hold reservations: the settings let them, and the snapshot says what some queue was entitled to.
func (c *check) turns() bool {
	return c.settings.GetTurns() != nil && c.GetMemory() != nil &&
		slices.ContainsFunc(c.GetQueues(), func(q *apportionv1.Queue) bool { return q.GetEntitled() != nil })
}

// guards are the plugins that protect single tasks from eviction, and besideFair those with which fair alone decides about queues.
var (
	guards     = []string{"gang", "conformance", "cooldown"}
	besideFair = append([]string{ofFair, "priority", "binpack", "drf"}, guards...)
)

// evict takes what a victim holds from its queues and its node, or with -1 gives it back.
func (p *plan) evict(t *task, times int64) {
	for _, a := range p.path(t.leaf) {
		add(p.held[a], t.request, -times)
	}
	add(p.room[root], t.request, times)
	if t.node != nil {
		add(p.room[int(*t.node)], t.request, times)
	}
}

// place takes room for a request of the claimant, on a node or, under root, in the cluster.
func (p *plan) place(at int, request []int64) {
	if p.placed[at] == nil {
		p.placed[at] = make([]int64, len(p.dims))
	}
	add(p.placed[at], request, 1)
	add(p.room[at], request, -1)
}

// lacks returns a dimension that the claimant takes of a node, or of the cluster, of which there is not so much; -1 if there is none. With
// a sign of 1 it is certain whatever was rounded, with -1 it may be.
func (p *plan) lacks(at int, sign float64) int {
	for d, x := range p.placed[at] {
		bound := 0.0
		if at != root {
			bound = float64(p.slack[at]) * (1 + p.sumOf(p.GetNodes()[at].GetAllocatable())[d]*0x1p-53)
		}
		if x > 0 && -float64(p.room[at][d]) > sign*bound {
			return d
		}
	}
	return -1
}

// limited reports whether the claimant's queue, or one above it, exceeds a limit with it.
func (p *plan) limited() bool {
	for _, a := range p.path(p.queue) {
		for d, x := range p.need {
			if x > 0 && p.capability[a][d] != unlimited && p.held[a][d]+x > p.capability[a][d] {
				return true
			}
		}
	}
	return false
}

// within reports whether the claimant's queue is within a line with it.
func (p *plan) within(line int) bool {
	for d, x := range p.need {
		if x > 0 && p.held[p.queue][d]+x > p.lines[p.queue][d][line]*p.unit[d] {
			return false
		}
	}
	return true
}

// entitled reports whether a line permits the plan: the claimant's queue is within it and the one with memory, and the victims of other
// queues can go one after the other so that the queue of each exceeds it. All are gone here. The last one of such an order exceeds the line
// now; so may any other, which is put back first, since that only makes queues hold more when the rest are looked at.
func (p *plan) entitled(line int) bool {
	if !p.within(line) || !p.within(withMemory) {
		return false
	}
	left := slices.Clone(p.others)
	for at := 0; at >= 0 && len(left) > 0; {
		if at = slices.IndexFunc(left, func(v *task) bool { return p.exceeds(v, line) }); at >= 0 {
			p.evict(left[at], -1)
			left = slices.Delete(left, at, at+1)
		}
	}
	for _, v := range p.others {
		if !slices.Contains(left, v) {
			p.evict(v, 1)
		}
	}
	return len(left) == 0
}

// exceeds reports whether the queue of a victim that is gone, and each above it that is not the claimant's too, holds more with it than a
// line, in some dimension of which the claimant and the victim both ask. With a memory it must hold more than the line with memory too, and
// both without the victim.
func (p *plan) exceeds(v *task, line int) bool {
	mine := p.path(p.queue)
	for d, x := range p.need {
		if x <= 0 || v.request[d] <= 0 {
			continue
		}
		over := true
		for _, a := range p.path(v.leaf) {
			if slices.Contains(mine, a) {
				break
			}
			keeps, with := p.lines[a][d][line], v.request[d]
			if p.GetMemory() != nil && line > 0 {
				keeps, with = max(keeps, p.lines[a][d][withMemory]), 0
			}
			over = over && p.held[a][d]+with > keeps*p.unit[d]
		}
		if over {
			return true
		}
	}
	return false
}

// needed reports whether the claimant needs a victim that is gone: if it were there, the claimant would lack room where it is, or exceed a
// limit or, with a victim of its own queue, its line.
func (p *plan) needed(v *task) bool {
	p.evict(v, -1)
	defer p.evict(v, 1)
	lacks := p.limited() || p.lacks(root, -1) >= 0 || v.leaf == p.queue && !p.within(withMemory)
	return lacks || v.node != nil && p.lacks(int(*v.node), -1) >= 0
}

// change is by how much the plan lowers what the claimant's queue lacks of each line, and raises what other queues lack, once the victims
// of its own queue are gone.
func (p *plan) change() (fall, rise [3]*big.Rat) {
	with := slices.Clone(p.held[p.queue])
	add(with, p.need, 1)
	for line := range fall {
		fall[line], rise[line] = new(big.Rat).Sub(p.lack(p.queue, p.held[p.queue], line), p.lack(p.queue, with, line)), new(big.Rat)
		seen := map[int]bool{}
		for _, v := range p.others {
			if !seen[v.leaf] {
				rise[line].Add(rise[line], p.lack(v.leaf, p.held[v.leaf], line))
				rise[line].Sub(rise[line], p.lack(v.leaf, p.check.held[v.leaf], line))
			}
			seen[v.leaf] = true
		}
	}
	return fall, rise
}

// lack is the amount by which held is below a line of a queue, as a share of the cluster summed over the dimensions.
func (c *check) lack(q int, held []int64, line int) *big.Rat {
	all := new(big.Rat)
	for d, x := range held {
		if total := c.all[d] / c.unit[d] * c.unit[d]; total > 0 {
			all.Add(all, big.NewRat(max(0, c.lines[q][d][line]*c.unit[d]-x), total))
		}
	}
	return all
}

// lowers checks that the potential falls: queues lack less of the first line of which the sum changes. Victims of the claimant's own queue
// alone, of lower priority, may leave it as it is.
func (p *plan) lowers(path string, fall, rise [3]*big.Rat) {
	c := 0
	before := p.check.held[p.queue]
	for line := 0; line < len(fall) && c == 0; line++ {
		own := new(big.Rat).Sub(p.lack(p.queue, p.held[p.queue], line), p.lack(p.queue, before, line))
		c = own.Add(own, rise[line]).Cmp(fall[line])
	}
	if c > 0 || c == 0 && len(p.others) > 0 {
		p.wrong("%s: the plan does not lower what queues lack", path)
	}
}

// fractions are those of three lines as answers have them.
func fractions(list [3]*big.Rat) (out []*apportionv1.Fraction) {
	for _, r := range list {
		out = append(out, &apportionv1.Fraction{Numerator: r.Num().String(), Denominator: r.Denom().String()})
	}
	return out
}
