package odds

import "slices"

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
	// The periods that had ended are not known.
	open := *m
	open.Periods, m = nil, &open
	held := m.replay(&h.Work, work)
	if held == nil {
		return h
	}
	for i := 1; i <= hindcastTimes && h.Work < work; i++ {
		if at := spread(i, -m.Past[0].Arrival*2/3); at < 0 {
			h.ask(m.asOf(at, held), seed, i, work)
		}
		if m.Stop != nil && m.Stop() {
			break
		}
	}
	return h
}

// spread returns the i-th of moments that are spread evenly over a span before now, however many there are (J. van der Corput, 1935).
func spread(i int, span int64) (at int64) {
	for n := i; n > 0; n /= 2 {
		if span /= 2; n%2 == 1 {
			at -= span
		}
	}
	return at
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
