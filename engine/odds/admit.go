package odds

import "slices"

// openDoors copies what the base says of admission.
func (r *run) openDoors() {
	b := r.Base
	r.promised, r.held = slices.Clone(b.promised), slices.Clone(b.held)
	if !b.Admission {
		return
	}
	r.booked, r.doors = table(len(b.Queues), b.width, b.booked), make([]line, len(b.pending))
	for k := range r.doors {
		r.doors[k].list = b.pending[k]
	}
}

// arrive puts a job that has arrived in line, or before the door of its queue.
func (r *run) arrive(kind, job int) {
	if !r.Admission {
		r.wait(2*kind, job)
		return
	}
	r.doors[kind].join(job)
}

// admit lets jobs in while there is room for their minima, queue by queue in order of service, and within a queue in the order of jobs. A
// job that is refused does not keep others out.
func (r *run) admit() {
	if !r.Admission {
		return
	}
	var queues []int
	for q := range r.Queues {
		for _, k := range r.kinds[q] {
			if d := &r.doors[k]; d.head < len(d.list) {
				d.closed = served
				if n := len(queues); n == 0 || queues[n-1] != q {
					queues = append(queues, q)
				}
			}
		}
		r.left -= int64(1 + len(r.kinds[q]))
	}
	r.findWants()
	slices.SortStableFunc(queues, r.compareQueues)
	for _, q := range queues {
		for k := r.nextDoor(q); k >= 0 && r.left >= 0 && !r.stops(); k = r.nextDoor(q) {
			if !r.admits(q, r.Kinds[k].Min) {
				r.doors[k].closed = limited
				continue
			}
			r.enter(k)
		}
	}
}

// nextDoor returns the kind of the job that is admitted next to a queue, -1 if there is none.
func (r *run) nextDoor(q int) int {
	best := -1
	for _, k := range r.kinds[q] {
		if d := &r.doors[k]; d.closed == served && d.head < len(d.list) && (best < 0 || r.enters(int(k), best)) {
			best = int(k)
		}
	}
	r.left -= int64(len(r.kinds[q]))
	return best
}

// enters reports whether the first job of a kind comes before that of another.
func (r *run) enters(k, other int) bool {
	if mine, its := r.Kinds[k].Priority, r.Kinds[other].Priority; mine != its {
		return mine > its
	}
	d, o := &r.doors[k], &r.doors[other]
	return r.jobs[d.list[d.head]].at < r.jobs[o.list[o.head]].at
}

// admits reports whether a minimum is within the limits of a queue and all above it, and within what all jobs together may be admitted for.
func (r *run) admits(q int, least []float64) bool {
	for d, a := range least {
		if r.Admits != nil && a > 0 && r.held[d]+r.promised[d]+a > r.Admits[d]+slack {
			return false
		}
	}
	for ; q >= 0; q = r.Queues[q].Parent {
		r.left--
		for d, limit := range r.Queues[q].Limit {
			if least != nil && least[d] > 0 && r.booked[q][d]+least[d] > limit+slack {
				return false
			}
		}
	}
	return true
}

// enter admits the first job of a kind.
func (r *run) enter(kind int) {
	d := &r.doors[kind]
	job := d.list[d.head]
	d.head++
	k := &r.Kinds[kind]
	for q := k.Queue; q >= 0; q = r.Queues[q].Parent {
		addTo(r.booked[q], k.Min, 1)
	}
	addTo(r.promised, k.Min, 1)
	r.jobs[job].booked = k.Min
	r.wait(r.lineOf(kind), int(job))
}

// release takes what a job counts off the bounds of admission.
func (r *run) release(l *live) {
	for q := r.Kinds[l.kind].Queue; q >= 0 && r.Admission && l.booked != nil; q = r.Queues[q].Parent {
		addTo(r.booked[q], l.booked, -1)
	}
}
