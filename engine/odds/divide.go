package odds

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
	for i := range r.families {
		s := &r.families[i]
		for d := range r.width {
			left := r.total[d]
			if s.parent >= 0 {
				left = r.part[s.parent][d]
			}
			r.divideAmong(s.queues, d, left)
		}
	}
	for q := range r.Queues {
		r.rate(q)
	}
}

// divideAmong divides an amount among siblings.
func (r *run) divideAmong(queues []int, d int, left float64) {
	weights := 0.0
	for _, q := range queues {
		r.part[q][d] = -1
		weights += r.Queues[q].Weight
	}
	// Each pass settles a queue that asks for less than its part, or all.
	for met := true; met; {
		met = false
		for _, q := range queues {
			least, most := r.wants(q, d)
			if r.part[q][d] >= 0 || least*weights < left*r.Queues[q].Weight && most*weights > left*r.Queues[q].Weight {
				continue
			}
			settled := most
			if most*weights > left*r.Queues[q].Weight {
				settled = least
			}
			r.part[q][d], met = settled, true
			left, weights = max(0, left-settled), weights-r.Queues[q].Weight
		}
		r.left -= int64(len(queues))
	}
	for _, q := range queues {
		if r.part[q][d] < 0 {
			r.part[q][d] = left * r.Queues[q].Weight / weights
		}
	}
}

// wants returns what a queue deserves at least and at most of a dimension.
func (r *run) wants(q, d int) (least, most float64) {
	queue := &r.Queues[q]
	if most = r.asked[q][d]; queue.Limit != nil {
		most = min(most, queue.Limit[d])
	}
	if queue.Guarantee != nil {
		if least = queue.Guarantee[d]; r.Entitles {
			// What a queue does not ask for is lent.
			least = min(least, most)
		}
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
	r.left -= int64(len(r.Base.lines[q]))
	for _, i := range r.Base.lines[q] {
		asks := r.asks[i/2]
		if i%2 == 1 && len(r.Kinds[i/2].More) > 0 {
			asks = r.Kinds[i/2].More[0].Request
		}
		if l := &r.lines[i]; l.head < len(l.list) && r.deserves(q, asks) {
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
