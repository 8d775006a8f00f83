package odds

import (
	"cmp"
	"iter"
	"slices"

	"github.com/apportion/apportion/engine/policy"
)

// lending is what a queue must leave to others in a state.
type lending struct {
	queue, state int
	aside        []float64
}

// lends reports whether a queue may borrow amounts: they are free, beside what waits in other queues, is within what these deserve, and
// could be given to them now.
func (r *run) lends(q int, amount []float64) bool {
	if r.lent.aside == nil || r.lent.queue != q || r.lent.state != r.state {
		r.lent = lending{q, r.state, r.asideOf(q)}
	}
	for d, a := range amount {
		if a > 0 && a > r.total[d]-r.held[d]-r.lent.aside[d]+slack {
			return false
		}
	}
	return true
}

// asideOf returns what a queue must leave to others. Its own claims are no part of that, but take room on nodes as theirs do.
func (r *run) asideOf(q int) []float64 {
	r.findWants()
	var order []int
	for k := range r.Queues {
		if r.wants[k] && len(r.Base.lines[k]) > 0 {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, r.compareQueues)
	aside, own, taken := make([]float64, r.width), make([]float64, r.width), []Held(nil)
	for _, k := range order {
		sum := aside
		if k == q {
			sum = own
		}
		taken = r.claim(k, sum, taken)
	}
	r.room.giveBack(taken)
	return aside
}

// gives reports whether a queue deserves amounts more or may borrow them, where queues borrow.
func (r *run) gives(q int, amount []float64) bool {
	return r.excess != policy.LentExcess || r.deserves(q, amount) || r.lends(q, amount)
}

// overused reports whether something waits in a queue that borrows, and all of it is more than the queue deserves and may borrow. None of
// it is served in the round then (Volcano).
func (r *run) overused(q int) bool {
	if r.excess != policy.LentExcess {
		return false
	}
	waits := false
	for i := range r.queued(q) {
		if asks := r.asksOf(i); r.permits(q, asks) && r.gives(q, asks) {
			return false
		}
		waits = true
	}
	return waits
}

// skip closes the lines of a queue.
func (r *run) skip(q int) {
	for _, i := range r.Base.lines[q] {
		if l := &r.lines[i]; l.closed == served && l.head < len(l.list) {
			r.closeLine(int(i), limited)
		}
	}
	r.open[q] = 0
}

// queued returns the jobs that wait in a queue with their line, those before its door too.
func (r *run) queued(q int) iter.Seq2[int, []int32] {
	return func(yield func(int, []int32) bool) {
		for _, i := range r.Base.lines[q] {
			if l := &r.lines[i]; l.head < len(l.list) && !yield(int(i), l.list[l.head:]) {
				return
			}
		}
		if !r.Admission {
			return
		}
		for _, k := range r.kinds[q] {
			if d := &r.doors[k]; d.head < len(d.list) && !yield(r.lineOf(int(k)), d.list[d.head:]) {
				return
			}
		}
	}
}

// lineOf returns the line in which jobs of a kind wait to start.
func (r *run) lineOf(kind int) int {
	if len(r.Kinds[kind].Gang) == 0 {
		return 2*kind + 1
	}
	return 2 * kind
}

// claim takes room for what waits in a queue and is within what it deserves, in the order of its jobs, and adds its amounts to aside.
func (r *run) claim(q int, aside []float64, taken []Held) []Held {
	var parts []claimants
	for i, jobs := range r.queued(q) {
		parts = append(parts, claimants{line: i, jobs: jobs, left: r.countOf(i, jobs[0])})
	}
	claimed := make([]float64, r.width)
	for len(parts) > 0 && r.left >= 0 {
		first := 0
		for i := range parts {
			if r.claimsBefore(&parts[i], &parts[first]) {
				first = i
			}
		}
		r.left -= int64(len(parts))
		p := &parts[first]
		asks, placed := r.asksOf(p.line), false
		if addTo(claimed, asks, 1); p.left > 0 && r.deserves(q, claimed) {
			taken, placed = r.room.place(r.tasksOf(p.line), r.now, taken)
		}
		if !placed {
			addTo(claimed, asks, -1)
		}
		// What is refused once is refused to all that ask for the same.
		if refused := p.left > 0 && !placed; refused || !r.advance(p) {
			parts = slices.Delete(parts, first, first+1)
		}
	}
	addTo(aside, claimed, 1)
	return taken
}

// claimants are jobs of one line. The first still asks so many times.
type claimants struct {
	line int
	jobs []int32
	left int
}

// advance goes on to what is asked for next; false: nothing is.
func (r *run) advance(p *claimants) bool {
	if p.left--; p.left > 0 {
		return true
	}
	if p.jobs = p.jobs[1:]; len(p.jobs) == 0 {
		return false
	}
	p.left = r.countOf(p.line, p.jobs[0])
	return true
}

// claimsBefore compares jobs as nextLine does.
func (r *run) claimsBefore(l, k *claimants) bool {
	return cmp.Or(cmp.Compare(l.line%2, k.line%2), cmp.Compare(r.Kinds[k.line/2].Priority, r.Kinds[l.line/2].Priority),
		cmp.Compare(r.jobs[l.jobs[0]].at, r.jobs[k.jobs[0]].at)) < 0
}

// asksOf returns what the first job of a line asks for at a time: its gang, or one of its further tasks.
func (r *run) asksOf(i int) []float64 {
	if more := r.Kinds[i/2].More; i%2 == 1 && len(more) > 0 {
		return more[0].Request
	}
	return r.asks[i/2]
}

// tasksOf returns the tasks that ask for it.
func (r *run) tasksOf(i int) []Tasks {
	more := r.Kinds[i/2].More
	if i%2 == 0 || len(more) == 0 {
		return r.Kinds[i/2].Gang
	}
	return []Tasks{{Request: more[0].Request, N: 1, On: more[0].On, Shut: more[0].Shut}}
}

// countOf counts how often a job of a line asks for that.
func (r *run) countOf(line int, job int32) int {
	j, n := &r.jobs[job], 0
	switch {
	case j.over:
	case line%2 == 0:
		return 1
	default:
		for _, t := range r.Kinds[line/2].More {
			n += t.N
		}
		n -= j.grown
	}
	return n
}
