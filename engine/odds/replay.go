package odds

import (
	"cmp"
	"math/bits"
	"slices"
)

// The model as of a moment of the past has what was known then: of jobs that had not ended no end, and no later arrival. What came of the
// jobs that waited stands beside it, and no run reads it.

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
	room := newRoom(m, len(m.Nodes[0]))
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
