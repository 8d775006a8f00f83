package fair

import (
	"github.com/apportion/apportion/engine/policy/division"
	"github.com/apportion/apportion/engine/resource"
)

// The division of a session: what package division divides, by what the accounts demand. A column is divided when it is first needed after
// its demand has changed, so that stale names no dimension whenever lines are read.

// column is the division of one dimension.
type column struct {
	division.Column

	// sated is a second division, in which every leaf that wants anything wants everything; nil until it is needed.
	sated *column
	// steered is a division by the weights with memory; nil until it is needed. It is one of the present bounds if isSteered.
	steered   *column
	isSteered bool
}

// dividing is the shares of all places, by dimension. Columns of stale are to be divided anew.
type dividing struct {
	columns []column
	stale   resource.Mask
	// version counts divisions.
	version uint64
	divider division.Divider
}

func (d *dividing) open(width int) {
	d.columns = make([]column, width)
	d.stale = ^resource.Mask(0) >> (resource.MaxDimensions - width)
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
		c.Total = s.total(d) / s.quantum[d]
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
	if c.Capability != nil {
		return c
	}
	n := s.tree.len()
	cells := make([]int64, 9*n)
	for i, list := range []*[]int64{
		&c.Low, &c.Begin, &c.High, &c.Share, &c.Capability, &c.Guarantee, &c.Deserved, &c.Guaranteed, &c.Deserving,
	} {
		*list = cells[i*n : (i+1)*n : (i+1)*n]
	}
	c.Weight = s.weights()
	for p, q := range s.tree.queue {
		s.v.Yield(p)
		c.Capability[p], c.Deserved[p] = s.limits[p].capability[d], -1
		if c.Capability[p] != unlimited {
			c.Capability[p] /= s.quantum[d]
		}
		if q < 0 {
			continue
		}
		queue := &s.v.Queues[q]
		if queue.Guarantee.Has.Has(d) {
			c.Guarantee[p] = atMost(queue.Guarantee.V[d]) / s.quantum[d]
		}
		if queue.Deserved.Has.Has(d) {
			c.Deserved[p] = atMost(queue.Deserved.V[d]) / s.quantum[d]
		}
	}
	return c
}

// bound sets the bounds of all places. all: every leaf that wants anything wants the whole cluster.
func (s *State) bound(c *column, d int, all bool) {
	demand := division.Demand{Amount: s.accounts.demand[d:], Width: s.width, Quantum: s.quantum[d], All: all, Whole: s.total(d)}
	c.Bound(s.tree.shape(), division.Rule{Base: s.plugin.Base, ReserveGuarantee: s.plugin.ReserveGuarantee}, demand, s.v.Look)
}

// share divides within the bounds.
func (s *State) share(c *column) {
	s.division.divider.Divide(&c.Column, s.tree.shape(), s.plugin.Base, s.v.Look)
}

// problem is the division of a place's share among its children.
func (s *State) problem(c *column, p place) division.Problem {
	return c.Problem(s.tree.shape(), p, s.plugin.Base)
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

// lines counts the lines of a queue: 0, its guarantee; 1, its fair share; 2, its entitlement. Each is at most the next.
const lines = 3

// line returns line i of a place in dimension d, in raw amounts. The division is settled.
func (s *State) line(i int, p place, d int) int64 {
	c := &s.division.columns[d]
	switch i {
	case 0:
		return min(c.Low[p], c.Share[p]) * s.quantum[d]
	case 1:
		return min(c.Share[p], max(c.Low[p], s.sated(d).Share[p])) * s.quantum[d]
	}
	return c.Share[p] * s.quantum[d]
}

// lineWithMemory returns the line up to which a place is given first what becomes free: line 2 if the snapshot has no memory. The division
// is settled.
func (s *State) lineWithMemory(p place, d int) int64 {
	if s.memory == nil {
		return s.line(2, p, d)
	}
	return s.steered(d).Share[p] * s.quantum[d]
}

// takingLine returns the line up to which a place may take from others: it is entitled to that by weight, and it is next.
func (s *State) takingLine(p place, d int) int64 { return min(s.line(2, p, d), s.lineWithMemory(p, d)) }

// supposed is a division that is only supposed.
type supposed struct {
	column *column
	// giving and beyond have an amount for each place.
	giving, beyond []int64
}

// suppose returns working memory with the settings of a dimension.
func (s *State) suppose(d int) *supposed {
	of, n := &s.division.columns[d], s.tree.len()
	if s.scratch.supposed == nil {
		cells := make([]int64, 2*n)
		s.scratch.supposed = &supposed{of.separate(n), cells[:n:n], cells[n:]}
	}
	s.scratch.supposed.column.follow(of)
	return s.scratch.supposed
}

// supposedLines returns up to which line a leaf could take from others if it wanted at least so much, and the lines of all places beyond
// which they may have something taken then, valid until the next call. A leaf wants more than its tasks ask for where tasks are created
// once their job is admitted.
func (s *State) supposedLines(p place, d int, demand int64) (taking int64, giving []int64) {
	s.settle()
	s.v.Work.Use(s.tree.len(), placeWork)
	suppose, cell := s.suppose(d), &s.accounts.demand[int(p)*s.width+d]
	giving = suppose.giving
	if demand <= *cell {
		// It wants that much already: the lines stand.
		for k := range giving {
			giving[k] = max(s.line(2, place(k), d), s.lineWithMemory(place(k), d))
		}
		return s.takingLine(p, d), giving
	}
	c, was := suppose.column, *cell
	*cell = demand
	s.bound(c, d, false)
	*cell = was
	s.share(c)
	taking = c.Share[p]
	copy(giving, c.Share)
	if s.memory != nil {
		c.Weight = s.weighed(d).weight
		s.share(c)
		taking = min(taking, c.Share[p])
	}
	for k := range giving {
		giving[k] = max(giving[k], c.Share[k]) * s.quantum[d]
	}
	return taking * s.quantum[d], giving
}

// separate returns a column of the same settings with bounds of its own, which are not set.
func (c *column) separate(n int) *column {
	cells := make([]int64, 6*n)
	own := &column{Column: division.Column{
		Low: cells[:n], Begin: cells[n : 2*n], High: cells[2*n : 3*n], Share: cells[3*n : 4*n : 4*n],
		Guaranteed: cells[4*n : 5*n], Deserving: cells[5*n:],
	}}
	own.follow(c)
	return own
}

// follow takes over the settings of another column.
func (c *column) follow(of *column) {
	c.Capability, c.Guarantee, c.Deserved, c.Total, c.Weight = of.Capability, of.Guarantee, of.Deserved, of.Total, of.Weight
}

// steered returns the division of a dimension by the weights with memory, which has the same bounds. The session has a memory.
func (s *State) steered(d int) *column {
	c := &s.division.columns[d]
	if c.isSteered {
		return c.steered
	}
	s.v.Work.Use(s.tree.len(), placeWork)
	if c.steered == nil {
		c.steered = &column{Column: c.Column}
		c.steered.Share, c.steered.Weight = make([]int64, s.tree.len()), s.weighed(d).weight
	}
	c.isSteered, c.steered.Total = true, c.Total
	s.share(c.steered)
	return c.steered
}

// sated returns the division in which every leaf that wants any of a dimension wants the whole cluster.
func (s *State) sated(d int) *column {
	c := &s.division.columns[d]
	if c.sated == nil {
		c.sated = c.separate(s.tree.len())
		s.bound(c.sated, d, true)
		s.share(c.sated)
	}
	return c.sated
}

// within reports whether a queue may hold that much more under line i.
func (s *State) within(p place, i int, amount []int64, positive resource.Mask) bool {
	held := s.row(s.accounts.held, p)
	for m := positive; m != 0; m = m.Rest() {
		if d := m.First(); held[d]+amount[d] > s.line(i, p, d) {
			return false
		}
	}
	return true
}

// entitled reports whether a queue with that much more is within its line with memory.
func (s *State) entitled(p place, amount []int64, positive resource.Mask) bool {
	return s.unentitled(p, amount, positive, (*State).lineWithMemory) < 0
}

// unentitled returns a dimension in which a queue with that much more is above a line, or -1.
func (s *State) unentitled(p place, amount []int64, positive resource.Mask, line func(*State, place, int) int64) int {
	held := s.row(s.accounts.held, p)
	for m := positive; m != 0; m = m.Rest() {
		if d := m.First(); held[d]+amount[d] > line(s, p, d) {
			return d
		}
	}
	return -1
}
