package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/internal/duration"
)

// MaxHalfLife is the longest half-life, in epochs.
const MaxHalfLife = 512

const (
	// skew is the time in seconds by which evidence may be ahead of the own clock.
	skew = 3600
	// grace is the number of epochs for which an epoch still takes evidence, counted from the newest evidence of other tasks.
	grace = 4
)

// Options of a ledger.
type Options struct {
	// Epoch is the length of an epoch, whole seconds. 0: 6 h. It never changes for a ledger.
	Epoch time.Duration
	// HalfLife is the number of epochs after which usage counts half, from 1 to 512. 0: 28.
	HalfLife int
	// Window is the number of epochs that count at all. 0: 8 half-lives, beyond which usage counts less than 1/256.
	Window int
	// Retain is the number of epochs that are kept for reports and budgets, at least the window. 0: as long as the window.
	Retain int
	// Quanta replace the default quanta of dimensions: 1 of cpu (a milli-core) and pods, 1 MiB of memory, 1000 of everything else.
	Quanta map[string]uint64
}

func (o Options) normal() (Options, error) {
	var faults []error
	o.Epoch = cmp.Or(o.Epoch, 6*time.Hour)
	o.HalfLife = cmp.Or(o.HalfLife, 28)
	if o.Epoch < time.Second || o.Epoch%time.Second != 0 {
		faults = append(faults, fmt.Errorf("the epoch is %s, not whole seconds, at least 1", duration.Format(o.Epoch)))
	}
	if o.HalfLife < 1 || o.HalfLife > MaxHalfLife {
		faults = append(faults, fmt.Errorf("the half-life is %d epochs, not from 1 to %d", o.HalfLife, MaxHalfLife))
	}
	o.Window = cmp.Or(o.Window, 8*o.HalfLife)
	o.Retain = cmp.Or(o.Retain, o.Window)
	const longest = 1 << 20
	if o.Window < 1 || o.Window > longest {
		faults = append(faults, fmt.Errorf("the window is %d epochs, not from 1 to %d", o.Window, longest))
	}
	if o.Retain < o.Window || o.Retain > longest {
		faults = append(faults, fmt.Errorf("%d epochs are kept, fewer than the window of %d, or more than %d", o.Retain, o.Window, longest))
	}
	return o, errors.Join(faults...)
}

// Evidence says that a task ran. Times are whole seconds after 1970 of the cluster's clock, never of the observer, except Seen.
type Evidence struct {
	// Task and Start identify what ran: a task that runs again has another start.
	Task  string
	Start int64
	// Path contains the queues that are charged: the queue of the task first, the root last.
	Path []string
	// Owner of the job; may be empty.
	Owner string
	// Amounts that the task holds, raw, by dimension. What is not listed is 0.
	Amounts map[string]int64
	// Seen is when the task was last seen running.
	Seen int64
	// End is when the task ended, if Ended.
	End   int64
	Ended bool
}

// Ledger is what several tasks used. It is not safe for concurrent use.
type Ledger struct {
	options Options
	seconds int64
	lambda  uint64

	dimensions []string
	dimension  map[string]int
	// sorted contains the dimensions in the order of their names, in which amounts are compared.
	sorted []int

	lines lines
	// cluster is the identity of the cluster that the ledger is about; empty: it is not known.
	cluster string

	records map[key]*record
	// jobs are the jobs that ended lately and those that run, running the keys of the latter by name.
	jobs    map[key]*jobRecord
	running map[string]key
	// sealed is the first epoch that is not sealed. Epochs before it have cells, and take no evidence.
	sealed int64
	cells  map[int64]block

	offers map[int64]offer
	queues map[string]int64
	rows   map[int64]*Row

	// sight is when all live tasks were seen last, followed the epoch of the newest snapshot.
	sight, followed int64

	counts Counts
	dirty  dirty
}

// Counts say what a ledger took in.
type Counts struct {
	// Evidence taken in, Refused because it lies in the future or is invalid, Late because its epochs are sealed.
	Evidence, Refused, Late uint64
	// Gaps counts epochs without any sight, and Unseen the tasks of the newest snapshot that leave no evidence.
	Gaps, Unseen uint64
}

type key struct {
	start int64
	task  string
}

// record is the join of all evidence of one task.
type record struct {
	line    int32
	amounts []int64
	seen    int64
	end     int64
	ended   bool
	// live is true if the task was in the newest snapshot.
	live bool
}

// until returns the end of the interval in which the task ran.
func (r *record) until() int64 {
	if r.ended {
		return r.end
	}
	return r.seen
}

// New returns an empty ledger, or an error that names every option that is out of range.
func New(o Options) (*Ledger, error) {
	o, err := o.normal()
	if err != nil {
		return nil, err
	}
	return &Ledger{
		options: o, seconds: int64(o.Epoch / time.Second), lambda: Lambda(o.HalfLife),
		dimension: map[string]int{}, lines: newLines(), records: map[key]*record{}, jobs: map[key]*jobRecord{},
		running: map[string]key{},
		sealed:  math.MinInt64, followed: math.MinInt64,
		cells: map[int64]block{}, offers: map[int64]offer{}, queues: map[string]int64{}, rows: map[int64]*Row{},
		dirty: newDirty(),
	}, nil
}

// Options returns the options of the ledger, with defaults filled in.
func (l *Ledger) Options() Options { return l.options }

// Counts returns what the ledger took in so far.
func (l *Ledger) Counts() Counts { return l.counts }

// Records returns the number of tasks whose evidence may still change.
func (l *Ledger) Records() int { return len(l.records) }

// Lines returns the number of pairs of a path and an owner that the ledger tells apart.
func (l *Ledger) Lines() int { return len(l.lines.number) }

// Dimensions returns the names of the dimensions, in the order of vectors of this ledger.
func (l *Ledger) Dimensions() []string { return slices.Clone(l.dimensions) }

// EpochOf returns the number of the epoch that contains a time, in Unix seconds.
func (l *Ledger) EpochOf(seconds int64) int64 { return floorDiv(seconds, l.seconds) }

// floorDiv returns ⌊a / b⌋ for b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// earliest and latest bound the times of evidence, in seconds, so that differences do not overflow: about 35,000 years around 1970.
const (
	earliest = -1 << 40
	latest   = 1 << 40
)

// Enter takes in evidence from outside. It refuses evidence whose start, sight or end lies more than an hour after the own clock, in Unix
// seconds, and evidence that is invalid.
func (l *Ledger) Enter(e *Evidence, clock int64) error {
	err := e.check(clock)
	if err != nil {
		l.counts.Refused++
		return err
	}
	l.see(e)
	return nil
}

func (e *Evidence) check(clock int64) error {
	var faults []error
	limit := min(clock, latest-skew) + skew
	for _, t := range []struct {
		name  string
		at    int64
		given bool
	}{{"start", e.Start, true}, {"seen", e.Seen, true}, {"end", e.End, e.Ended}} {
		switch {
		case !t.given:
		case t.at > limit:
			faults = append(faults, fmt.Errorf("%s: %d is more than an hour after the clock, which is at %d", t.name, t.at, clock))
		case t.at < earliest:
			faults = append(faults, fmt.Errorf("%s: %d is too long ago", t.name, t.at))
		}
	}
	if len(e.Path) == 0 {
		faults = append(faults, errors.New("path: there is no queue"))
	}
	if sorted := slices.Sorted(slices.Values(e.Path)); len(slices.Compact(sorted)) < len(e.Path) {
		faults = append(faults, errors.New("path: a queue is named twice"))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Amounts)) {
		if e.Amounts[name] < 0 {
			faults = append(faults, fmt.Errorf("amounts: %d of %s is below 0", e.Amounts[name], name))
		}
	}
	return errors.Join(faults...)
}

// see joins evidence with what is known of the task. The join is commutative, associative and idempotent: the greatest sight, the smallest
// end, and the smallest triple of path, owner and amounts, kept whole.
func (l *Ledger) see(e *Evidence) {
	amounts := l.vector(e.Amounts)
	l.take(key{e.Start, e.Task}, l.lines.of(e.Path, e.Owner), amounts, sighting{e.Seen, e.End, e.Ended})
}

// sighting is when a task was seen, and its end if it is known.
type sighting struct {
	seen, end int64
	ended     bool
}

func (l *Ledger) take(k key, to int32, amounts []int64, at sighting) {
	l.counts.Evidence++
	if r := l.records[k]; r != nil {
		l.join(k, r, to, amounts, at)
		return
	}
	r := &record{line: to, amounts: amounts, seen: at.seen, end: at.end, ended: at.ended}
	if !l.late(k.start, r) {
		l.records[k] = r
		l.dirty.records[k] = struct{}{}
	}
}

// late reports whether a new record has nothing outside of sealed epochs, and counts a record that has something inside.
func (l *Ledger) late(start int64, r *record) bool {
	if r.until() <= start || l.EpochOf(start) >= l.sealed {
		return false
	}
	l.counts.Late++
	return l.EpochOf(r.until()-1) < l.sealed
}

func (l *Ledger) join(k key, r *record, to int32, amounts []int64, at sighting) {
	changed := false
	if at.seen > r.seen {
		// The last sight of live tasks is stored once for all of them.
		changed = !r.live || at.seen > l.sight
		r.seen = at.seen
	}
	if at.ended && (!r.ended || at.end < r.end) {
		r.end, r.ended, changed = at.end, true, true
	}
	if c := l.compareLines(to, r.line); c < 0 || c == 0 && l.compareAmounts(amounts, r.amounts) < 0 {
		r.line, r.amounts, changed = to, amounts, true
	}
	if changed {
		l.dirty.records[k] = struct{}{}
	}
}

// compareLines compares the paths element by element, a prefix first, then the owners.
func (l *Ledger) compareLines(a, b int32) int {
	if a == b {
		return 0
	}
	x, y := &l.lines.list[a], &l.lines.list[b]
	return cmp.Or(slices.Compare(x.path, y.path), strings.Compare(x.owner, y.owner))
}

// compareAmounts compares amounts as numbers, dimension by dimension in the order of their names, which is the same in all ledgers.
func (l *Ledger) compareAmounts(a, b []int64) int {
	for _, d := range l.sorted {
		if c := cmp.Compare(at(a, d), at(b, d)); c != 0 {
			return c
		}
	}
	return 0
}

// at returns an element of a vector that may be older than the newest dimensions.
func at(v []int64, d int) int64 {
	if d < len(v) {
		return v[d]
	}
	return 0
}

// vector returns amounts in the order of the ledger's dimensions, adding those that are new.
func (l *Ledger) vector(amounts map[string]int64) []int64 {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if amounts[name] != 0 {
			l.dimensionOf(name)
		}
	}
	v := make([]int64, len(l.dimensions))
	for name, amount := range amounts {
		if amount != 0 {
			v[l.dimension[name]] = amount
		}
	}
	return v
}

func (l *Ledger) dimensionOf(name string) int {
	d, known := l.dimension[name]
	if !known {
		d = len(l.dimensions)
		l.dimension[name] = d
		l.dimensions = append(l.dimensions, name)
		l.sorted = append(l.sorted, d)
		slices.SortFunc(l.sorted, func(a, b int) int { return strings.Compare(l.dimensions[a], l.dimensions[b]) })
	}
	return d
}

func (l *Ledger) quantum(name string) uint64 { return l.options.Quantum(name) }

// reservedPrefix begins the dimensions of Reserved.
const reservedPrefix = "reserved "

// Reserved returns the dimension under which a ledger of what queues were entitled to has the room of a resource that was kept idle for
// their gangs.
func Reserved(resource string) string { return reservedPrefix + resource }

// Quantum returns the quantum of a dimension by its name.
func (o *Options) Quantum(name string) uint64 {
	name = strings.TrimPrefix(name, reservedPrefix)
	if q := o.Quanta[name]; q > 0 {
		return q
	}
	switch name {
	case "cpu", "pods":
		return 1
	case "memory":
		return 1 << 20
	}
	return 1000
}

// Unit returns the raw amount of what people count of a dimension: of a device, a core, a GiB, a pod.
func Unit(name string) float64 {
	switch {
	case name == "memory":
		return 1 << 30
	case name == "pods":
		return 1
	case name == "ephemeral-storage" || strings.HasPrefix(name, "hugepages-"):
		return 1000 << 30
	}
	return 1000
}
