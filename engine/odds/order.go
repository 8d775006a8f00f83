package odds

import (
	"cmp"

	"github.com/apportion/apportion/engine/policy"
)

// nextQueue returns the queue that is served next, -1 if none is.
func (r *run) nextQueue() int {
	r.findWants()
	best := -1
	for q, n := range r.open {
		if n > 0 && (best < 0 || r.compareQueues(q, best) < 0) {
			best = q
		}
	}
	r.left -= int64(len(r.open))
	return best
}

// compareQueues compares two queues by order of service.
func (r *run) compareQueues(q, other int) int {
	if r.course != nil {
		if by := r.course.Compare(q, other, r.wants); by != 0 {
			return by
		}
	}
	return cmp.Compare(q, other)
}

// findWants says which queues have something waiting that is within what they deserve, or are above such queues, once in a state.
func (r *run) findWants() {
	if r.excess != policy.LentExcess || r.wanted == r.state {
		return
	}
	r.wanted = r.state
	clear(r.wants)
	for q := range r.Queues {
		if r.wants[q] || !r.entitled(q) {
			continue
		}
		for up := q; up >= 0 && !r.wants[up]; up = r.Queues[up].Parent {
			r.wants[up] = true
		}
	}
}

// entitled reports whether a queue has something waiting that is within what it deserves.
func (r *run) entitled(q int) bool {
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
		if a > 0 && r.used[q][d]+a > r.deserved[q][d]+slack {
			return false
		}
	}
	return true
}

// use adds to what a queue and all above it use, times an amount.
func (r *run) use(q int, amount []float64, times float64) {
	for up := q; up >= 0; up = r.Queues[up].Parent {
		addTo(r.used[up], amount, times)
	}
	if r.course != nil {
		r.course.Used(q)
	}
}

// ask adds to what a queue asks for, or takes it off.
func (r *run) ask(queue int, amount []float64, times float64) {
	if r.excess != policy.AllExcess {
		addTo(r.asked[queue], amount, times)
		r.changed = true
	}
}
