package ledger

import (
	"cmp"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
)

// Imported says what became of the tasks of a history.
type Imported struct {
	// Closed counts the tasks that lie in closed epochs, Cut those of which a part does: that part did not count. Lost is how much it is,
	// in quantum-seconds by dimension, and Opens the time in Unix seconds from which epochs are open.
	Closed, Cut int
	Lost        map[string]int64
	Opens       int64
	// Contradicting counts the tasks of which the ledger knew another queue, owner, amount or end. One of both counts, the same in any
	// order.
	Contradicting int
	// Twice are tasks that ran twice at the same time by what the ledger knows, without samples.
	Twice []string
}

// Import takes in the tasks of a ledger that was filled from a history and has nothing sealed. Unlike Merge it closes no epoch, so that
// each task counts once by its identity however a history is divided. Of tasks that are samples, one lasts at most until the next one.
func (l *Ledger) Import(from *Ledger, sample func(task string) bool) (*Imported, error) {
	if l.seconds != from.seconds {
		return nil, errEpoch(l.options.Epoch, from.options.Epoch)
	}
	out := &Imported{Lost: map[string]int64{}, Opens: math.MinInt64}
	if l.sealed != math.MinInt64 {
		out.Opens = l.sealed * l.seconds
	}
	lost, taken := map[string]*big.Int{}, newMapping(from, l)
	for _, k := range slices.SortedFunc(maps.Keys(from.records), compareKeys) {
		r := from.records[k]
		if own := l.records[k]; own != nil {
			e := from.evidence(k, r)
			// A sample that another one follows sooner ends sooner.
			if e.Ended = r.ended && !sample(k.task); l.Contradicts(e) {
				out.Contradicting++
			} else if r.ended && r.end < min(own.until(), out.Opens) {
				// It counted in closed epochs until after its end.
				out.Cut++
			}
		} else if until := min(r.until(), out.Opens); k.start < until {
			if r.until() <= out.Opens {
				out.Closed++
			} else {
				out.Cut++
			}
			for name, amount := range from.named(r.amounts) {
				if lost[name] == nil {
					lost[name] = new(big.Int)
				}
				lost[name].Add(lost[name], times(amount, until-k.start).Big())
			}
		}
		l.take(k, taken.line(r.line), taken.vector(r.amounts), sighting{r.seen, r.end, r.ended})
	}
	for name, n := range lost {
		out.Lost[name] = clip(n.Quo(n, new(big.Int).SetUint64(l.quantum(name))))
	}
	out.Twice = l.succeed(from, sample)
	return out, nil
}

// mapping finds the lines and dimensions of a ledger in another one.
type mapping struct {
	from, to   *Ledger
	lines      map[int32]int32
	dimensions map[int]int
}

func newMapping(from, to *Ledger) *mapping {
	return &mapping{from, to, map[int32]int32{}, map[int]int{}}
}

func (m *mapping) line(n int32) int32 {
	to, known := m.lines[n]
	if !known {
		to = m.to.lines.of(m.from.lines.list[n].path, m.from.lines.list[n].owner)
		m.lines[n] = to
	}
	return to
}

func (m *mapping) vector(v []int64) []int64 {
	out := make([]int64, len(m.to.dimensions), len(m.to.dimensions)+len(v))
	for d, amount := range v {
		if amount == 0 {
			continue
		}
		to, known := m.dimensions[d]
		if !known {
			to = m.to.dimensionOf(m.from.dimensions[d])
			m.dimensions[d] = to
		}
		for len(out) <= to {
			out = append(out, 0)
		}
		out[to] = amount
	}
	return out
}

// evidence returns what is known of a task.
func (l *Ledger) evidence(k key, r *record) *Evidence {
	return &Evidence{
		Task: k.task, Start: k.start, Path: l.lines.list[r.line].path, Owner: l.lines.list[r.line].owner, Amounts: l.named(r.amounts),
		Seen: r.seen, End: r.end, Ended: r.ended,
	}
}

// Contradicts reports whether a ledger knows another queue, owner, amount or end of a task. That a task ended which was seen later is none:
// a history says of a task that still runs that it ran at the time of the history.
func (l *Ledger) Contradicts(e *Evidence) bool {
	r := l.records[key{e.Start, e.Task}]
	if r == nil {
		return false
	}
	own := &l.lines.list[r.line]
	return !slices.Equal(own.path, e.Path) || own.owner != e.Owner || e.Ended && r.ended && e.End != r.end ||
		l.compareAmounts(l.vector(e.Amounts), r.amounts) != 0
}

// Tasks calls use with the tasks whose evidence may still change, in no order, until it returns false.
func (l *Ledger) Tasks(use func(task string) bool) {
	for k := range l.records {
		if !use(k.task) {
			return
		}
	}
}

// succeed ends each sample of the tasks of another ledger where the next one begins, and returns the other tasks that ran twice at the same
// time.
func (l *Ledger) succeed(from *Ledger, sample func(task string) bool) []string {
	runs := make(map[string]int, len(from.records))
	for k := range from.records {
		runs[k.task] = 0
	}
	for k, r := range l.records {
		if n, is := runs[k.task]; is && r.until() > k.start {
			runs[k.task] = n + 1
		}
	}
	var several []key
	for k, r := range l.records {
		if runs[k.task] > 1 && r.until() > k.start {
			several = append(several, k)
		}
	}
	slices.SortFunc(several, func(a, b key) int { return cmp.Or(strings.Compare(a.task, b.task), cmp.Compare(a.start, b.start)) })
	var twice []string
	for i := range max(len(several)-1, 0) {
		k, next := several[i], several[i+1]
		r := l.records[k]
		if k.task != next.task || r.until() <= next.start {
			continue
		}
		if sample(k.task) {
			l.join(k, r, r.line, r.amounts, sighting{r.seen, next.start, true})
		} else if len(twice) == 0 || twice[len(twice)-1] != k.task {
			twice = append(twice, k.task)
		}
	}
	return twice
}
