package odds

// divide finds what queues deserve under a policy that holds them to it: each dimension is divided by weight, and none deserves more than
// it asks for within its limit, or less than its guarantee.
func (r *run) divide() {
	for d := range r.width {
		left, weights := r.total[d], 0.0
		for q := range r.Queues {
			r.part[q][d] = -1
			weights += r.Queues[q].Weight
		}
		// Each pass settles a queue that asks for less than its part, or all.
		for met := true; met; {
			met = false
			for q := range r.Queues {
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
			r.left -= int64(len(r.Queues))
		}
		for q := range r.Queues {
			if r.part[q][d] < 0 {
				r.part[q][d] = left * r.Queues[q].Weight / weights
			}
		}
	}
	for q := range r.Queues {
		r.rate(q)
	}
}

// wants returns what a queue deserves at least and at most of a dimension.
func (r *run) wants(q, d int) (least, most float64) {
	queue := &r.Queues[q]
	if most = r.asked[q][d]; queue.Limit != nil {
		most = min(most, queue.Limit[d])
	}
	if queue.Guarantee != nil {
		least = queue.Guarantee[d]
	}
	return least, max(least, most)
}

// ask adds to what a queue asks for, or takes it off.
func (r *run) ask(queue int, amount []float64, times float64) {
	if r.Capped {
		addTo(r.asked[queue], amount, times)
		r.changed = true
	}
}
