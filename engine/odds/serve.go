package odds

import (
	"slices"

	"github.com/apportion/apportion/engine/policy"
)

// A round decides at one second, one job or one more task at a time. Before and after each decision the same holds:
//   - room is what nodes offer less what jobs hold that run; used is, for each queue, what the jobs in it and below it hold, and the course
//     was told of it. place undoes what it tried if it fails.
//   - open counts the lines of a queue that have a job and are not closed. A line closes when its first job can be given nothing, and opens
//     only in a later round, so that a round ends.
//   - state differs from that of any other amounts that are used or wait, so that wants and lent are found once for each.

// wait puts a job in line.
func (r *run) wait(i, job int) {
	l := &r.lines[i]
	l.join(job)
	if l.closed == served && len(l.list)-l.head == 1 {
		r.open[r.Kinds[i/2].Queue]++
	}
}

// join adds a job to a line, and copies what the base has of it before.
func (l *line) join(job int) {
	if !l.owned {
		l.list, l.head, l.owned = slices.Clone(l.list[l.head:]), 0, true
	}
	l.list = append(l.list, int32(job))
}

// leave takes the first job off a line.
func (r *run) leave(i int) {
	l := &r.lines[i]
	if l.head++; l.head == len(l.list) && l.closed == served {
		r.open[r.Kinds[i/2].Queue]--
	}
}

// reopen lets lines be served again that may be because of what has ended.
func (r *run) reopen() {
	still := r.closed[:0]
	r.left -= int64(len(r.closed))
	for _, i := range r.closed {
		l := &r.lines[i]
		if l.closed == noRoom && !r.opened && !r.mayFit(int(i)) {
			still = append(still, i)
			continue
		}
		l.closed = served
		if l.head < len(l.list) {
			r.open[r.Kinds[i/2].Queue]++
		}
	}
	r.closed = still
}

// closeLine closes a line until a later round.
func (r *run) closeLine(i int, why closed) {
	r.lines[i].closed = why
	r.closed = append(r.closed, int32(i))
}

// stops reports whether Stop asks to end the run. It is asked once for so much work.
func (r *run) stops() bool {
	const often = 1 << 20
	if r.Stop != nil && !r.stopped && r.looked-r.left >= often {
		r.looked, r.stopped = r.left, r.Stop()
	}
	return r.stopped
}

// mayFit reports whether a task of a line fits one of the nodes on which jobs ended.
func (r *run) mayFit(i int) bool {
	list := r.Kinds[i/2].Gang
	if i%2 == 1 {
		list = r.Kinds[i/2].More
	}
	for _, n := range r.freed {
		r.left--
		if r.room.fits(n, list, r.now) {
			return true
		}
	}
	return false
}

// decide is a round of decisions: what can be served is, queue by queue.
func (r *run) decide() {
	if r.course != nil {
		r.left -= r.course.Begin(r.changed, max(r.left, 0))
		r.changed = false
	}
	r.change()
	r.admit()
	r.change()
	r.left--
	for !r.done && r.left >= 0 && !r.stops() {
		q := r.nextQueue()
		if q < 0 {
			return
		}
		if r.overused(q) {
			r.skip(q)
			continue
		}
		i := r.nextLine(q)
		if i < 0 {
			r.open[q] = 0
			continue
		}
		if why := r.serve(i); why != served {
			r.closeLine(i, why)
			r.open[q]--
		}
	}
}

// nextLine returns the line of a queue whose first job is served next: gangs before jobs that want more, by priority, and in their order.
func (r *run) nextLine(q int) int {
	best := -1
	for _, i := range r.Base.lines[q] {
		l := &r.lines[i]
		for l.head < len(l.list) && r.jobs[l.list[l.head]].over {
			r.left--
			r.change()
			if l.closed == served {
				r.leave(int(i))
			} else {
				l.head++
			}
		}
		if l.closed == served && l.head < len(l.list) && (best < 0 || r.before(int(i), best)) {
			best = int(i)
		}
	}
	r.left -= int64(len(r.Base.lines[q]))
	return best
}

func (r *run) before(i, other int) bool {
	if i%2 != other%2 {
		return i%2 == 0
	}
	if mine, its := r.Kinds[i/2].Priority, r.Kinds[other/2].Priority; mine != its {
		return mine > its
	}
	l, o := &r.lines[i], &r.lines[other]
	return r.jobs[l.list[l.head]].at < r.jobs[o.list[o.head]].at
}

// serve starts the first job of a line, or one more task of it, or says why it cannot.
func (r *run) serve(i int) closed {
	l := &r.lines[i]
	job := int(l.list[l.head])
	if i%2 == 1 {
		return r.grow(i, job)
	}
	kind := &r.Kinds[i/2]
	if !r.permits(kind.Queue, r.asks[i/2]) {
		return limited
	}
	if why := r.place(kind); why != served {
		return why
	}
	r.leave(i)
	r.start(job, i)
	return served
}

// place takes room for a gang, task by task, or says why it cannot: a queue that borrows may be refused the last of them.
func (r *run) place(kind *Kind) closed {
	why, used, state := served, r.used[kind.Queue], r.state
	r.placed = r.placed[:0]
	for g := range kind.Gang {
		for n := kind.Gang[g].N; n > 0 && why == served; n-- {
			request := kind.Gang[g].Request
			if why = r.placeOne(kind.Queue, &kind.Gang[g]); why == served {
				addTo(used, request, 1)
				addTo(r.held, request, 1)
				r.change()
			}
		}
	}
	for _, h := range r.placed {
		addTo(used, h.Amount, -1)
		addTo(r.held, h.Amount, -1)
	}
	if why != served {
		r.room.giveBack(r.placed)
		r.state = state
	}
	return why
}

// change begins a state of its own.
func (r *run) change() {
	r.states++
	r.state = r.states
}

// placeOne takes room for a task that its queue deserves or may borrow for.
func (r *run) placeOne(q int, t *Tasks) closed {
	if !r.gives(q, t.Request) {
		return limited
	}
	n := r.room.find(t, r.now)
	if n < 0 {
		return noRoom
	}
	r.room.add(n, t.Request, -1)
	r.placed = append(r.placed, Held{n, t.Request})
	return served
}

// start begins a job whose gang is placed.
func (r *run) start(job, line int) {
	j := &r.jobs[job]
	r.change()
	addTo(r.held, r.asks[line/2], 1)
	addTo(r.promised, r.Kinds[line/2].Min, -1)
	r.use(r.Kinds[line/2].Queue, r.asks[line/2], 1)
	j.cause = r.ended
	for _, h := range r.placed {
		if by := r.by[h.Node]; by >= 0 {
			j.cause = by
			break
		}
	}
	if job == r.Asked {
		r.done = true
		return
	}
	if job < len(r.watched) {
		r.watched[job] = r.now
		r.unseen--
		r.done = r.unseen == 0
	}
	j.held = append(j.held, r.placed...)
	r.hasten(job, len(r.placed))
	if len(r.Kinds[line/2].More) > 0 {
		j.grows = true
		r.wait(line+1, job)
	}
}

// hasten lets more tasks of a job run.
func (r *run) hasten(job, tasks int) {
	j := &r.jobs[job]
	j.work = max(0, j.work-float64(float64(j.running)*float64(r.now-j.since)))
	j.running, j.since = j.running+tasks, r.now
	j.version++
	r.ends.push(end{r.now + max(1, int64(j.work/float64(max(j.running, 1)))), int32(job), j.version})
}

// grow starts one more task of a job.
func (r *run) grow(i, job int) closed {
	j, kind := &r.jobs[job], &r.Kinds[i/2]
	at, t := j.grown, &kind.More[0]
	for g := range kind.More {
		if t = &kind.More[g]; at < t.N {
			break
		}
		at -= t.N
	}
	if !r.permits(kind.Queue, t.Request) || !r.gives(kind.Queue, t.Request) {
		return limited
	}
	n := r.room.find(t, r.now)
	if n < 0 {
		return noRoom
	}
	h := Held{n, t.Request}
	r.change()
	r.take(j, h, 1)
	j.held = append(j.held, h)
	j.grown++
	r.hasten(job, 1)
	if at+1 == t.N && t == &kind.More[len(kind.More)-1] {
		j.grows = false
		r.leave(i)
	}
	return served
}

// rest returns what a job waits for beyond what it has.
func (r *run) rest(j *live) []float64 {
	rest, grown := make([]float64, r.width), j.grown
	for _, t := range r.Kinds[j.kind].More {
		n := max(t.N-grown, 0)
		grown = max(grown-t.N, 0)
		addTo(rest, t.Request, float64(n))
	}
	return rest
}

// permits reports whether a queue and all above it may use amounts more, and it deserves them if queues are held to that.
func (r *run) permits(q int, amount []float64) bool {
	if r.excess == policy.NoExcess && !r.deserves(q, amount) {
		return false
	}
	for ; q >= 0; q = r.Queues[q].Parent {
		r.left--
		for d, limit := range r.Queues[q].Limit {
			if amount[d] > 0 && r.used[q][d]+amount[d] > limit+slack {
				return false
			}
		}
	}
	return true
}
