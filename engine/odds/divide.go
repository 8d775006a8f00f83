package odds

// divide finds what queues deserve under a policy that holds them to it: each dimension is divided by weight, and none deserves more than
// it asks for.
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
				if r.part[q][d] < 0 && r.asked[q][d]*weights <= left*r.Queues[q].Weight {
					r.part[q][d], met = r.asked[q][d], true
					left, weights = left-r.asked[q][d], weights-r.Queues[q].Weight
				}
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

// ask adds to what a queue asks for, or takes it off.
func (r *run) ask(queue int, amount []float64, times float64) {
	if r.Capped {
		addTo(r.asked[queue], amount, times)
		r.changed = true
	}
}
