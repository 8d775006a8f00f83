package odds

import (
	"cmp"
	"math"
	"slices"
)

// siblings are queues that divide what their parent deserves; -1: all nodes.
type siblings struct {
	parent int
	queues []int
}

// family lists the queues that divide something among each other, those above before those below; nil if it does not count what queues
// deserve. Queues that are held to that divide without regard to the tree.
func (m *Model) family() []siblings {
	if !m.Capped && !m.Entitles {
		return nil
	}
	below := make([][]int, len(m.Queues)+1)
	for q := range m.Queues {
		parent := m.Queues[q].Parent
		if m.Capped {
			parent = -1
		}
		below[parent+1] = append(below[parent+1], q)
	}
	list := []siblings{{-1, below[0]}}
	for i := 0; i < len(list); i++ {
		for _, q := range list[i].queues {
			if len(below[q+1]) > 0 {
				list = append(list, siblings{q, below[q+1]})
			}
		}
	}
	return list
}

// divide finds what queues deserve: each dimension is divided by weight, and none deserves more than it asks for within its limit, or less
// than its guarantee.
func (r *run) divide() {
	for d := range r.width {
		r.findBounds(d)
		for i := range r.families {
			s := &r.families[i]
			left := r.total[d]
			if s.parent >= 0 {
				left = r.part[s.parent][d]
			}
			r.divideAmong(s.queues, d, r.wholeUnits(d, left, false))
		}
	}
	for q := range r.Queues {
		r.rate(q)
	}
}

// divideAmong divides an amount among siblings: each gets its part by weight within its bounds. Each pass settles the queues below their
// least if these lack more than those above their most have too much, and else the latter: what is left for the others only moves further
// in that direction.
func (r *run) divideAmong(queues []int, d int, left float64) {
	r.shared = append(r.shared[:0], queues...)
	open := r.shared
	for len(open) > 0 {
		weights, beyond := 0.0, 0.0
		for _, q := range open {
			weights += r.Queues[q].Weight
		}
		for _, q := range open {
			part := left * r.Queues[q].Weight / weights
			r.part[q][d] = min(max(part, r.least[q]), r.most[q])
			beyond += r.part[q][d] - part
		}
		r.left -= int64(len(open))
		kept := open[:0]
		given := 0.0
		for _, q := range open {
			part := left * r.Queues[q].Weight / weights
			if part < r.least[q] && beyond >= 0 || part > r.most[q] && beyond <= 0 {
				given += r.part[q][d]
			} else {
				kept = append(kept, q)
			}
		}
		if len(kept) == len(open) {
			break
		}
		open, left = kept, max(0, left-given)
	}
	if r.Units != nil && r.Units[d] > 1 {
		r.round(open, d, left)
	}
}

// round makes whole units of the parts of an amount. What is left of them goes to those whose parts of a unit are the next (F. Webster).
func (r *run) round(queues []int, d int, left float64) {
	unit := float64(r.Units[d])
	units := math.Floor(left/unit + slack)
	for _, q := range queues {
		whole := math.Floor(r.part[q][d]/unit + slack)
		r.part[q][d] = whole * unit
		units -= whole
	}
	slices.SortStableFunc(queues, func(l, k int) int {
		return cmp.Compare((r.part[l][d]+unit/2)*r.Queues[k].Weight, (r.part[k][d]+unit/2)*r.Queues[l].Weight)
	})
	for _, q := range queues {
		if units >= 1 && r.part[q][d]+unit <= r.most[q] {
			r.part[q][d] += unit
			units--
		}
	}
	r.left -= int64(len(queues))
}

// wholeUnits rounds an amount of a dimension that is divided whole, up or down.
func (r *run) wholeUnits(d int, amount float64, up bool) float64 {
	if r.Units == nil || r.Units[d] <= 1 || math.IsInf(amount, 1) {
		return amount
	}
	units := amount / float64(r.Units[d])
	if up {
		return math.Ceil(units-slack) * float64(r.Units[d])
	}
	return math.Floor(units+slack) * float64(r.Units[d])
}

// findBounds finds what queues deserve at least and at most of a dimension, those below before those above.
func (r *run) findBounds(d int) {
	clear(r.least)
	clear(r.most)
	for i := range slices.Backward(r.families) {
		s := &r.families[i]
		for _, q := range s.queues {
			r.least[q], r.most[q] = r.boundsOf(q, d)
			if s.parent >= 0 {
				r.least[s.parent] += r.least[q]
				r.most[s.parent] += r.most[q]
			}
		}
		r.left -= int64(len(s.queues))
	}
}

// boundsOf returns the bounds of a queue, which has the sums of those below it.
func (r *run) boundsOf(q, d int) (least, most float64) {
	queue := &r.Queues[q]
	least, most = r.least[q], r.most[q]
	if !r.inner[q] {
		most = r.wholeUnits(d, r.asked[q][d], true)
	}
	if queue.Limit != nil {
		most = min(most, r.wholeUnits(d, queue.Limit[d], false))
	}
	if queue.Guarantee != nil {
		least = max(least, r.wholeUnits(d, queue.Guarantee[d], false))
	}
	if r.Entitles {
		// What a queue does not ask for is lent.
		least = min(least, most)
	}
	return least, max(least, most)
}

// ask adds to what a queue asks for, or takes it off.
func (r *run) ask(queue int, amount []float64, times float64) {
	if r.Capped || r.Entitles {
		r.addAsked(r.asked, queue, amount, times)
		r.changed = true
	}
}

// addAsked adds to what a queue asks for, and those above it if the division follows the tree.
func (m *Model) addAsked(asked [][]float64, queue int, amount []float64, times float64) {
	for ; queue >= 0; queue = m.Queues[queue].Parent {
		if addTo(asked[queue], amount, times); m.Capped {
			return
		}
	}
}

// entitled reports whether a queue has something waiting that is within what it deserves.
func (r *run) entitled(q int) bool {
	if !r.Entitles {
		return false
	}
	r.left -= int64(len(r.Base.lines[q]) + len(r.kinds[q]))
	for i := range r.queued(q) {
		if r.deserves(q, r.asksOf(i)) {
			return true
		}
	}
	return false
}

// deserves reports whether a queue may have amounts more within what it deserves.
func (r *run) deserves(q int, amount []float64) bool {
	for d, a := range amount {
		if a > 0 && r.used[q][d]+a > r.part[q][d]+slack {
			return false
		}
	}
	return true
}
