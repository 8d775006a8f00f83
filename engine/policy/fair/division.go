package fair

import "github.com/apportion/apportion/engine/resource"

// Stage is the case in which a place divides.
type Stage uint8

// The cases.
const (
	// ByGuarantee: the guarantees do not fit.
	ByGuarantee Stage = iota + 1
	// ByDeserved: what is deserved does not fit.
	ByDeserved
	// ByWeight: what is left is divided by weight.
	ByWeight
)

// bounds are the numbers of one dimension, in quanta, by place.
type bounds struct {
	// lo is guaranteed, m is where weights begin, hi is what there is a use for.
	lo, m, hi []int64
	// share is the amount that the place receives.
	share []int64
}

// column is the division of one dimension.
type column struct {
	bounds
	// Settings: capability is unlimited where none is stated, deserved -1.
	capability, guarantee, deserved []int64
	// guaranteed and deserving are the weights of the first two cases.
	guaranteed, deserving []int64
	// total is X.
	total int64
	// sated is a second division, in which every leaf that wants anything wants everything; nil until it is needed.
	sated *column
	// steered is a division by the weights with memory; nil until it is needed. It is one of the present bounds if isSteered.
	steered   *column
	isSteered bool
	// weight are the weights of a division that is not by the queues' own; nil if it is.
	weight []int64
}

// division is the shares of all places, by dimension. Columns of stale are to be divided anew.
type division struct {
	columns []column
	stale   resource.Mask
	// version counts divisions.
	version uint64
	divide  divider
}

func (d *division) open(width int) {
	d.columns = make([]column, width)
	d.stale = ^resource.Mask(0) >> (64 - width)
}

// placeWork is the cost of a division for each place and dimension: its settings and bounds, and the steps of the search for the level.
const placeWork = 16

// settle divides what changed.
func (s *State) settle() {
	for m := s.division.stale; m != 0; m = m.Rest() {
		// The division is made even if no work is left, because other functions need it; the answer is then discarded.
		s.v.Work.Use(s.tree.len(), placeWork)
		s.v.Look()
		d := m.First()
		c := s.column(d)
		c.total = s.total(d) / s.quantum[d]
		c.sated, c.isSteered = nil, false
		s.bound(c, d, false)
		s.share(c)
	}
	if s.division.stale != 0 {
		s.division.stale = 0
		s.division.version++
	}
}

// column returns the column of a dimension with its settings.
func (s *State) column(d int) *column {
	c := &s.division.columns[d]
	if c.capability != nil {
		return c
	}
	n := s.tree.len()
	cells := make([]int64, 9*n)
	for i, list := range []*[]int64{
		&c.lo, &c.m, &c.hi, &c.share, &c.capability, &c.guarantee, &c.deserved, &c.guaranteed, &c.deserving,
	} {
		*list = cells[i*n : (i+1)*n : (i+1)*n]
	}
	for p, q := range s.tree.queue {
		s.v.Yield(p)
		c.capability[p], c.deserved[p] = s.limits[p].capability[d], -1
		if c.capability[p] != unlimited {
			c.capability[p] /= s.quantum[d]
		}
		if q < 0 {
			continue
		}
		queue := &s.v.Queues[q]
		if queue.Guarantee.Has.Has(d) {
			c.guarantee[p] = atMost(queue.Guarantee.V[d]) / s.quantum[d]
		}
		if queue.Deserved.Has.Has(d) {
			c.deserved[p] = atMost(queue.Deserved.V[d]) / s.quantum[d]
		}
	}
	return c
}

// bound sets the bounds of all places, bottom up. all: every leaf that wants anything wants the whole cluster.
func (s *State) bound(c *column, d int, all bool) {
	b := &c.bounds
	t := &s.tree
	for p := place(t.len()) - 1; p >= 0; p-- {
		s.v.Yield(int(p))
		ceiling := c.capability[p]
		if t.isLeaf(p) {
			demand := s.accounts.demand[int(p)*s.width+d]
			if all && demand > 0 {
				demand = s.total(d)
			}
			b.hi[p] = min(ceiling, ceilDiv(demand, s.quantum[d]))
			c.guaranteed[p] = min(c.guarantee[p], ceiling)
			b.lo[p] = min(c.guaranteed[p], b.hi[p])
			if s.plugin.ReserveGuarantee {
				b.lo[p] = c.guaranteed[p]
			}
		} else {
			var lo, hi, guaranteed int64
			for k := t.first[p]; k < t.end[p]; k++ {
				lo, hi, guaranteed = lo+b.lo[k], hi+b.hi[k], guaranteed+c.guaranteed[k]
			}
			b.hi[p] = min(ceiling, hi)
			c.guaranteed[p] = min(ceiling, max(c.guarantee[p], guaranteed))
			b.lo[p] = min(b.hi[p], max(min(c.guarantee[p], b.hi[p]), lo))
			if s.plugin.ReserveGuarantee {
				b.lo[p] = min(ceiling, max(c.guarantee[p], lo))
			}
		}
		b.hi[p] = max(b.hi[p], b.lo[p])
		s.begin(c, p)
	}
}

// begin sets the line where weights begin, and the weight of the second case.
func (s *State) begin(c *column, p place) {
	b := &c.bounds
	b.m[p], c.deserving[p] = b.lo[p], c.guaranteed[p]
	if s.plugin.Base != OnDeserved {
		return
	}
	t := &s.tree
	target, weight := c.deserved[p], c.deserved[p]
	if target < 0 {
		target, weight = 0, 0
		for k := t.first[p]; k < t.end[p]; k++ {
			target, weight = target+b.m[k], weight+c.deserving[k]
		}
	}
	b.m[p] = max(b.lo[p], min(target, b.hi[p]))
	c.deserving[p] = max(c.guaranteed[p], min(c.capability[p], weight))
}

// share divides top down.
func (s *State) share(c *column) {
	t, b := &s.tree, &c.bounds
	b.share[0] = min(c.total, c.capability[0])
	if t.isLeaf(0) {
		b.share[0] = min(b.share[0], b.hi[0])
	}
	for p := place(0); int(p) < t.len(); p++ {
		s.v.Yield(int(p))
		if !t.isLeaf(p) {
			s.division.divide.run(s.problem(c, p))
		}
	}
}

// problem is the division of a place's share among its children.
func (s *State) problem(c *column, p place) problem {
	b := &c.bounds
	from, to := s.tree.first[p], s.tree.end[p]
	pr := problem{amount: b.share[p], stage: ByWeight, share: b.share[from:to]}
	var lo, m int64
	for k := from; k < to; k++ {
		lo, m = lo+b.lo[k], m+b.m[k]
	}
	switch {
	case lo > pr.amount:
		pr.stage, pr.weight, pr.ceiling = ByGuarantee, c.guaranteed[from:to], b.lo[from:to]
	case m > pr.amount:
		pr.stage, pr.weight, pr.start, pr.ceiling = ByDeserved, c.deserving[from:to], b.lo[from:to], b.m[from:to]
	default:
		pr.weight, pr.start, pr.ceiling = s.weightsOf(c)[from:to], b.m[from:to], b.hi[from:to]
		if s.plugin.Base != OnNothing {
			pr.base = pr.start
		}
	}
	return pr
}

// weightsOf are the weights of a division, by place.
func (s *State) weightsOf(c *column) []int64 {
	if c.weight != nil {
		return c.weight
	}
	return s.weights()
}

// weights are the queues' own, by place.
func (s *State) weights() []int64 {
	if s.tree.weight == nil {
		s.tree.weight = make([]int64, s.tree.len())
		for p, q := range s.tree.queue {
			if q >= 0 {
				s.tree.weight[p] = int64(s.v.Queues[q].Weight)
			}
		}
	}
	return s.tree.weight
}

// Divide divides all dimensions anew, with the result that they have.
func (s *State) Divide() {
	s.division.stale = ^resource.Mask(0) >> (resource.MaxDimensions - s.width)
	s.settle()
}
