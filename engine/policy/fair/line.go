package fair

import "github.com/apportion/apportion/engine/resource"

// lines counts the lines of a queue: 0, its guarantee; 1, its fair share; 2, its entitlement. Each is at most the next.
const lines = 3

// line returns line i of a place in dimension d, in raw amounts. The division is settled.
func (s *State) line(i int, p place, d int) int64 {
	c := &s.division.columns[d]
	switch i {
	case 0:
		return min(c.lo[p], c.share[p]) * s.quantum[d]
	case 1:
		return min(c.share[p], max(c.lo[p], s.satedShare(d)[p])) * s.quantum[d]
	}
	return c.share[p] * s.quantum[d]
}

// lineWithMemory returns the line up to which a place is given first what becomes free: line 2 if the snapshot has no memory. The division
// is settled.
func (s *State) lineWithMemory(p place, d int) int64 {
	if s.memory == nil {
		return s.line(2, p, d)
	}
	return s.steered(d).share[p] * s.quantum[d]
}

// takingLine returns the line up to which a place may take from others: it is entitled to that by weight, and it is next.
func (s *State) takingLine(p place, d int) int64 { return min(s.line(2, p, d), s.lineWithMemory(p, d)) }

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
	taking = c.share[p]
	copy(giving, c.share)
	if s.memory != nil {
		c.weight = s.weighed(d).weight
		s.share(c)
		taking = min(taking, c.share[p])
	}
	for k := range giving {
		giving[k] = max(giving[k], c.share[k]) * s.quantum[d]
	}
	return taking * s.quantum[d], giving
}

// separate returns a column of the same settings with bounds of its own, which are not set.
func (c *column) separate(n int) *column {
	cells := make([]int64, 6*n)
	own := &column{
		bounds:     bounds{lo: cells[:n], m: cells[n : 2*n], hi: cells[2*n : 3*n], share: cells[3*n : 4*n : 4*n]},
		guaranteed: cells[4*n : 5*n], deserving: cells[5*n:],
	}
	own.follow(c)
	return own
}

// follow takes over the settings of another column, and divides by its own weights.
func (c *column) follow(of *column) {
	c.capability, c.guarantee, c.deserved, c.total, c.weight = of.capability, of.guarantee, of.deserved, of.total, nil
}

// steered returns the division of a dimension by the weights with memory, which has the same bounds. The session has a memory.
func (s *State) steered(d int) *column {
	c := &s.division.columns[d]
	if c.isSteered {
		return c.steered
	}
	s.v.Work.Use(s.tree.len(), placeWork)
	if c.steered == nil {
		c.steered = &column{
			bounds:     bounds{lo: c.lo, m: c.m, hi: c.hi, share: make([]int64, s.tree.len())},
			capability: c.capability, guarantee: c.guarantee, deserved: c.deserved, guaranteed: c.guaranteed, deserving: c.deserving,
			weight: s.weighed(d).weight,
		}
	}
	c.isSteered, c.steered.total = true, c.total
	s.share(c.steered)
	return c.steered
}

// satedShare returns what every place would be given of a dimension if every leaf that wants any of it wanted the whole cluster.
func (s *State) satedShare(d int) []int64 { return s.sated(d).share }

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
