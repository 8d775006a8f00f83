package forecast

import (
	"cmp"
	"math"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/odds"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// findQueues describes the queues, in their order of service. Where a plugin divides among them the order is that of queues of equal
// shares, because shares change in the course of a run.
func (c *compiler) findQueues() {
	v := c.View()
	order := slices.Clone(v.QueueOrder)
	sharer, discipline := c.sharer()
	if sharer == nil {
		c.Order().SortQueues(order)
	} else {
		slices.SortFunc(order, func(l, r model.QueueID) int {
			lq, rq := &v.Queues[l], &v.Queues[r]
			return cmp.Or(cmp.Compare(rq.Priority, lq.Priority), cmp.Compare(lq.CreateTime, rq.CreateTime), cmp.Compare(lq.Name, rq.Name))
		})
	}
	c.place = make([]int, len(v.Queues))
	for i, q := range order {
		c.place[q] = i
	}
	c.m.Queues, c.refused = make([]odds.Queue, len(order)), make([]bool, len(v.Queues))
	for i, q := range order {
		c.m.Queues[i] = odds.Queue{Parent: c.parent(q)}
		if sharer != nil {
			c.m.Queues[i].Limit, c.m.Queues[i].Priority = c.limit(q, sharer, discipline), v.Queues[q].Priority
			_, part := sharer.Share(q)
			c.refused[q] = !part
		}
	}
	c.cutCircles()
	c.findAdmission()
	c.m.Capped, c.m.Entitles, c.m.Units = discipline.Holds, discipline.Entitles, discipline.Units
	c.m.Branches = discipline.Branches
	if discipline.Holds || discipline.Entitles {
		c.findGuarantees(order)
	}
	switch {
	case sharer == nil:
	case discipline.Stated:
		c.findStatedParts(order, sharer)
	default:
		c.findParts(order)
	}
}

// promiser is a plugin that admits jobs while their minima are within a bound for all queues together.
type promiser interface {
	// Promisable returns how much more may be admitted than is in use.
	Promisable() resource.Row
}

// findAdmission describes the bounds of admission. What jobs hold is added to what may be admitted besides.
func (c *compiler) findAdmission() {
	enqueuers := c.Enqueuers()
	c.m.Admission = len(enqueuers) > 0
	for _, enqueuer := range enqueuers {
		if p, ok := enqueuer.(promiser); ok {
			c.m.Admits = p.Promisable().V
		}
	}
}

// findGuarantees states what queues deserve at least.
func (c *compiler) findGuarantees(order []model.QueueID) {
	for i, q := range order {
		if row := c.View().Queues[q].Guarantee; !row.Absent() {
			c.m.Queues[i].Guarantee = row.V
		}
	}
}

// sharer returns the plugin that divides among queues and how it serves them; nil: none does.
func (c *compiler) sharer() (policy.Sharer, policy.Discipline) {
	for _, d := range c.Dividers() {
		if of, says := d.Queues.(policy.Discipliner); says {
			return d.Queues, of.Discipline()
		}
		if d.Queues != nil {
			return d.Queues, policy.Discipline{Offers: true}
		}
	}
	return nil, policy.Discipline{}
}

// parent returns the place of the queue above, -1 for none.
func (c *compiler) parent(q model.QueueID) int {
	v := c.View()
	if p, ok := v.Queue(v.Queues[q].Parent); ok && v.Queues[q].Parent != "" && p != q {
		return c.place[p]
	}
	return -1
}

// cutCircles lets queues that are above themselves have none above them. Policies that read parents refuse such queues.
func (c *compiler) cutCircles() {
	for i := range c.m.Queues {
		up := c.m.Queues[i].Parent
		for steps := 0; up >= 0; up = c.m.Queues[up].Parent {
			if steps++; steps > len(c.m.Queues) {
				c.m.Queues[i].Parent = -1
				break
			}
		}
	}
}

// limit returns what a queue may use: its real capability if the discipline offers that, else its stated limit, because the total would
// keep jobs out that are admitted; nil if there is no limit.
func (c *compiler) limit(q model.QueueID, sharer policy.Sharer, discipline policy.Discipline) []float64 {
	row := c.View().Queues[q].Capability
	if discipline.Offers {
		if share, divided := sharer.Share(q); divided && !share.RealCapability.Absent() {
			row = share.RealCapability
		}
	}
	limit, limited := make([]float64, c.width), false
	for d := range limit {
		limit[d] = math.Inf(1)
		if row.Absent() || !row.Has.Has(d) || math.IsInf(row.V[d], 1) {
			continue
		}
		// A limit of cpu or memory of 0 is none (Volcano).
		const memory = 1
		if row.V[d] > 0 || d > memory {
			limit[d], limited = row.V[d], true
		}
	}
	if !limited {
		return nil
	}
	return limit
}

// findStatedParts gives each queue the part that it states: only the dimensions that it deserves something of count. One that deserves
// nothing counts as if it used all of its part, and comes after others that do (Volcano).
func (c *compiler) findStatedParts(order []model.QueueID, sharer policy.Sharer) {
	for i, q := range order {
		row, states := make([]float64, c.width), false
		share, _ := sharer.Share(q)
		for d := range row {
			row[d] = math.Inf(1)
			if of := share.Deserved; !of.Absent() && of.Has.Has(d) && of.V[d] > 0 {
				row[d], states = of.V[d], states || !c.View().Dims.Pods().Has(d)
			}
		}
		if !states {
			row, c.m.Queues[i].Ratio = nil, math.Nextafter(1, 2)
		}
		c.m.Queues[i].Part, c.m.Queues[i].Weight = row, weightOf(&c.View().Queues[q])
	}
}

// findParts divides the total along the tree by weight, among queues with jobs.
func (c *compiler) findParts(order []model.QueueID) {
	v := c.View()
	busy, sums := c.busy(), map[int]float64{}
	for i, q := range order {
		if busy[i] {
			sums[c.m.Queues[i].Parent] += weightOf(&v.Queues[q])
		}
	}
	for i, q := range order {
		part := 1.0
		for at, steps := i, 0; at >= 0 && steps <= len(order); at, steps = c.m.Queues[at].Parent, steps+1 {
			if sum := sums[c.m.Queues[at].Parent]; sum > 0 {
				part *= min(1, weightOf(&v.Queues[order[at]])/sum)
			}
		}
		row := make([]float64, c.width)
		for d := range row {
			row[d] = part * v.Total.V[d]
		}
		c.m.Queues[i].Part, c.m.Queues[i].Weight = row, weightOf(&v.Queues[q])
	}
}

func weightOf(q *model.Queue) float64 { return float64(max(q.Weight, 1)) }

// busy says which queues have jobs, or had some, or are above such queues.
func (c *compiler) busy() []bool {
	busy := make([]bool, len(c.m.Queues))
	mark := func(at int) {
		for ; at >= 0 && !busy[at]; at = c.m.Queues[at].Parent {
			busy[at] = true
		}
	}
	for _, q := range c.View().Busy() {
		mark(c.place[q])
	}
	if c.question.Arrivals {
		for i := range c.question.Kinds {
			mark(c.place[c.question.Kinds[i].Queue])
		}
	}
	return busy
}
