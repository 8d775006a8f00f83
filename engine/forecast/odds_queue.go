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
	sharer := c.sharer()
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
			share, part := sharer.Share(q)
			c.m.Queues[i].Limit, c.refused[q] = c.limit(q, &share), !part
		}
	}
	c.cutCircles()
	c.findAdmission()
	if of, foreseeable := sharer.(policy.Foreseeable); foreseeable {
		c.m.Course = func(a *policy.Amounts) policy.Course {
			a.Queues = order
			return of.Course(a)
		}
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

// sharer returns the plugin that divides among queues; nil: none does.
func (c *compiler) sharer() policy.Sharer {
	for _, d := range c.Dividers() {
		if d.Queues != nil {
			return d.Queues
		}
	}
	return nil
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

// limit returns what a queue may use: what it admits at most, else its stated limit, because the total would keep jobs out that are
// admitted; nil if there is no limit.
func (c *compiler) limit(q model.QueueID, share *policy.Share) []float64 {
	row := c.View().Queues[q].Capability
	if !share.Admits.Absent() {
		row = share.Admits
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
