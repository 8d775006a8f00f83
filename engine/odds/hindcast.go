package odds

import (
	"cmp"
	"math/bits"
	"slices"
)

// The model is asked about moments of the past as it would have been asked then: asOf removes all that was not known at that moment, above
// all ends and later arrivals, and nothing that is found out about a moment changes the model of another. What came true is compared with
// what was stated, and corrects the forecast for the present by places in the order of its runs. So a correction never invents a start that
// no run has.

// Hindcasts are forecasts for jobs that waited at moments of the past, with what was known then, beside what came of them. They show how
// far the model is off on this cluster.
type Hindcasts struct {
	// Times is at how many moments jobs waited, and Work what was done to ask about them.
	Times int
	Work  int64

	list []hindcast
	// pause and horizon are those of the model.
	pause, horizon int64
}

// hindcast is the forecast for one job.
type hindcast struct {
	// weight is such that all of one moment weigh 1.
	weight float64
	// starts are those of the runs, in order. wait is when the job started; if it did not before the present, that is after wait.
	starts [hindcastRuns]int64
	wait   int64
	open   bool
}

const (
	// hindcastTimes is at how many moments is asked, and hindcastRuns how many runs each has.
	hindcastTimes, hindcastRuns = 32, 16
	// leastTimes is how many are needed for a correction.
	leastTimes = 10
)

// Hindcast asks about moments in the later two thirds of the past, until work is spent: the runs of a moment share what is left of it. It
// asks nothing if it is not known of all of the past when jobs began.
func (m *Model) Hindcast(seed uint64, work int64) *Hindcasts {
	h := &Hindcasts{pause: max(m.Pause, 1), horizon: max(m.Horizon, m.Pause, 1)}
	if len(m.Past) == 0 || slices.ContainsFunc(m.Past, func(p Past) bool { return !p.Waits && p.Wait < 0 }) {
		return h
	}
	m = m.unshut()
	held := m.replay(&h.Work, work)
	if held == nil {
		return h
	}
	span := -m.Past[0].Arrival * 2 / 3
	for i := 1; i <= hindcastTimes && h.Work < work; i++ {
		// The moments are spread evenly, however many there are (J. van der Corput, 1935).
		at, part := int64(0), span
		for n := i; n > 0; n /= 2 {
			if part /= 2; n%2 == 1 {
				at -= part
			}
		}
		if at < 0 {
			h.ask(m.asOf(at, held), seed, i, work)
		}
		if m.Stop != nil && m.Stop() {
			break
		}
	}
	return h
}

// unshut returns the model without periods in which nodes take no tasks: those that ended are not known.
func (m *Model) unshut() *Model {
	open := *m
	open.Kinds = slices.Clone(m.Kinds)
	for i := range open.Kinds {
		for _, list := range []*[]Tasks{&open.Kinds[i].Gang, &open.Kinds[i].More} {
			*list = slices.Clone(*list)
			for t := range *list {
				(*list)[t].Shut = nil
			}
		}
	}
	return &open
}

// then is a model as of a moment of the past, with what came of the jobs that waited.
type then struct {
	Model

	waits []int64
	open  []bool
	// work is what it cost to make.
	work int64
}

// began is the second at which a job of the past began, at its arrival where that is not known; Never if it has not.
func (p *Past) began() int64 {
	if p.Waits {
		return Never
	}
	return p.Arrival + max(p.Wait, 0)
}

// over reports whether a job of the past had ended by a second.
func (p *Past) over(at int64) bool { return !p.Waits && p.Seconds > 0 && p.began()+p.Seconds <= at }

// replay places the jobs of the past, because the history does not say where they ran: in the order in which they began, on the first
// nodes with room, which jobs that had ended gave back. It is nil if that takes more than most work, or if there are more than MaxReplayed
// tasks.
func (m *Model) replay(work *int64, most int64) [][]Held {
	order := make([]int, 0, len(m.Past))
	for i := range m.Past {
		if !m.Past[i].Waits {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(l, r int) int { return cmp.Compare(m.Past[l].began(), m.Past[r].began()) })
	left, tasks := most-int64(len(m.Past)), 0
	room := newRoom(m.Nodes, len(m.Nodes[0]))
	room.left = &left
	for i := range m.Jobs {
		for _, h := range m.Jobs[i].Held {
			if !m.Jobs[i].Arrived {
				room.add(h.Node, h.Amount, -1)
			}
		}
	}
	held, running := make([][]Held, len(m.Past)), ends(nil)
	for _, i := range order {
		p := &m.Past[i]
		for running.next() <= p.began() {
			for _, h := range held[running.pop().job] {
				room.add(h.Node, h.Amount, 1)
			}
		}
		kind := &m.Kinds[p.Kind]
		for _, list := range [][]Tasks{kind.Gang, kind.More} {
			for t := range list {
				held[i] = room.takeAll(held[i], &list[t])
			}
		}
		if tasks += len(held[i]); left < 0 || tasks > MaxReplayed {
			return nil
		}
		if p.Seconds > 0 {
			running.push(end{p.began() + p.Seconds, int32(i), 0})
		}
	}
	*work += most - left
	return held
}

// MaxReplayed bounds how many tasks of past jobs are placed to ask about moments of the past.
const MaxReplayed = 1_000_000

// takeAll takes room for tasks as long as there is some, and work is left.
func (r *room) takeAll(held []Held, tasks *Tasks) []Held {
	for range tasks.N {
		if *r.left < 0 || len(held) > MaxReplayed {
			break
		}
		n := r.find(tasks, Never)
		if n < 0 {
			break
		}
		r.add(n, tasks.Request, -1)
		held = append(held, Held{n, tasks.Request})
	}
	return held
}

// asOf returns the model as of an earlier second, at which jobs of the past held what they are said to.
func (m *Model) asOf(at int64, held [][]Held) *then {
	t := &then{Model: *m, work: int64(len(m.Past) + len(m.Jobs))}
	t.Past, t.Jobs, t.Asked, t.Horizon = nil, nil, -1, min(m.Horizon, -at)
	samples := map[*Sample]*Sample{}
	var drawn func(s *Sample) *Sample
	drawn = func(s *Sample) *Sample {
		if s == nil {
			return nil
		}
		old, known := samples[s]
		if !known {
			old = s.asOf(at)
			samples[s] = old
			old.Like, old.Trust = drawn(s.Like), s.Trust
			t.work += int64(len(s.seconds) * bits.Len(uint(len(s.seconds))))
		}
		return old
	}
	for i := range m.Jobs {
		if job := m.Jobs[i]; !job.Arrived && job.Running > 0 && job.Elapsed > -at {
			job.Elapsed, job.Ends, job.Limit, job.Waits, job.Drawn = job.Elapsed+at, Unknown, 0, false, drawn(job.Drawn)
			t.Jobs = append(t.Jobs, job)
		}
	}
	t.waits, t.open = make([]int64, len(t.Jobs)), make([]bool, len(t.Jobs))
	for i := range m.Past {
		if p := m.Past[i]; p.Arrival < at {
			p.Drawn = drawn(p.Drawn)
			t.add(p, at, held[i])
		}
	}
	return t
}

// add adds a job that had arrived.
func (t *then) add(p Past, at int64, held []Held) {
	began, over := p.began(), p.over(at)
	p.Arrival -= at
	if over {
		t.Past = append(t.Past, p)
		return
	}
	job := Job{Kind: p.Kind, Rank: len(t.Jobs), Ends: Unknown, Drawn: p.Drawn}
	p.Seconds, p.Waits = 0, began >= at
	if p.Waits {
		job.Waits, job.Pending, p.Elapsed = true, true, 0
	} else {
		p.Elapsed = at - began
		job.Elapsed, job.Held, job.Running, job.Booked = p.Elapsed, held, len(held), t.Kinds[p.Kind].Min
	}
	t.Past = append(t.Past, p)
	if p.Waits || len(held) > 0 {
		t.Jobs, t.waits, t.open = append(t.Jobs, job), append(t.waits, min(began, 0)-at), append(t.open, began > 0)
	}
}

// ask runs a model of the past forward. It learns nothing if a run is cut, because the starts in others may be the early ones.
func (h *Hindcasts) ask(t *then, seed uint64, moment int, most int64) {
	h.Work += t.work
	waiting := 0
	for i := range t.Jobs {
		if t.Jobs[i].Waits {
			waiting++
		}
	}
	share := (most - h.Work) / hindcastRuns
	if waiting == 0 || share <= 0 {
		return
	}
	if t.Work <= 0 || t.Work > share {
		t.Work = share
	}
	base := NewBase(&t.Model)
	starts := make([][hindcastRuns]int64, len(t.Jobs))
	var found [hindcastRuns]Outcome
	base.beside(hindcastRuns, func(n int) {
		var watched []int64
		watched, found[n] = base.watch(seed, hindcastMoment*moment+n, waiting)
		for i := range starts {
			starts[i][n] = watched[i]
		}
	})
	cut := false
	for i := range found {
		h.Work += found[i].Work
		cut = cut || found[i].Cut
	}
	if cut {
		return
	}
	// A job that would have started at once waited for something that the model does not have, or was placed otherwise.
	first := len(h.list)
	for i := range t.Jobs {
		if slices.Sort(starts[i][:]); t.Jobs[i].Waits && starts[i][hindcastRuns/2] > 0 {
			h.list = append(h.list, hindcast{0, starts[i], t.waits[i], t.open[i]})
		}
	}
	if len(h.list) > first {
		h.Times++
	}
	for i := range h.list[first:] {
		h.list[first+i].weight = 1 / float64(len(h.list)-first)
	}
}

// hindcastMoment keeps the numbers of the runs of two moments apart.
const hindcastMoment = 1 << 20

// watch runs the model once until all jobs have started that wait, and returns when each did.
func (b *Base) watch(seed uint64, number, waiting int) (starts []int64, found Outcome) {
	r := &run{Base: b, seed: seed, number: number, left: b.Work, ended: -1, unseen: waiting}
	r.watched = make([]int64, len(b.Jobs))
	for i := range r.watched {
		r.watched[i] = Never
	}
	return r.watched, r.toStart()
}

// Correct moves each start, of those of all runs in order, to one of another run: towards the run that came true for jobs of the past as
// often as the start is stated to. Those up to the median move a quarter of the way, because forecasts for jobs of the past know less than
// one for the present: not where jobs ran, which were admitted, nor the policy's order. Later ones are promises, so that they move two
// thirds of the way, and only to later runs. It returns false, and changes nothing, if too few moments were asked about.
func (h *Hindcasts) Correct(starts []int64) bool {
	if h.Times < leastTimes || len(starts) == 0 {
		return false
	}
	n := float64(len(starts))
	raw, shares := slices.Clone(starts), h.shares(starts[(len(starts)-1)/2])
	for i := range starts {
		chance := (float64(i) + 0.5) / n
		off := shares.place(chance) - chance
		if chance <= 0.5 {
			off /= 4
		} else {
			off = max(off*2/3, 0)
		}
		starts[i] = raw[min(int((chance+off)*n), len(raw)-1)]
	}
	return true
}

// shares say for each place between the runs of a hindcast, from 0 before all of them to 1 after all, which part of the jobs of the past
// had started by then. From one to the next they rise evenly.
type shares [hindcastRuns + 2]float64

// shares finds the share of each place, for a forecast with a median. Where it is only known that a job started later, it counts as Kaplan
// and Meier count it.
func (h *Hindcasts) shares(median int64) *shares {
	var started, open [hindcastRuns + 1]float64
	sum := 0.0
	for i := range h.list {
		c := &h.list[i]
		weight := c.weight * h.alike(c.starts[(hindcastRuns-1)/2], median)
		before := 0
		for before < hindcastRuns && c.starts[before] <= c.wait {
			before++
		}
		if sum += weight; c.open {
			open[before] += weight
		} else {
			started[before] += weight
		}
	}
	s, left := &shares{}, 1.0
	for i := range started {
		if started[i] > 0 {
			left *= max(1-started[i]/sum, 0)
		}
		sum -= started[i] + open[i]
		s[i+1] = 1 - left
	}
	return s
}

// alike is how much a forecast with a median says of one with another: the part that the shorter is of the longer.
func (h *Hindcasts) alike(one, other int64) float64 {
	one, other = min(max(one, h.pause), h.horizon), min(max(other, h.pause), h.horizon)
	return float64(min(one, other)) / float64(max(one, other))
}

// place returns where a share has started, 1 if it never has.
func (s *shares) place(share float64) float64 {
	for i := 1; i < len(s); i++ {
		if s[i] >= share {
			return (float64(i-1) + (share-s[i-1])/(s[i]-s[i-1])) / (hindcastRuns + 1)
		}
	}
	return 1
}
