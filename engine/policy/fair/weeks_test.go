package fair

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
)

// everyWeek runs all weeks, which takes minutes.
var (
	everyWeek = flag.Bool("weeks", false, "run every row of the table of weeks, not the short ones only")
	update    = flag.Bool("update", false, "write the rows of weeks that ran into docs/fair.md")
)

// The times of weeks: steps of half an hour, epochs of 6 hours, a half-life of 7 days.
const (
	stepsOfEpoch = 12
	stepsOfDay   = 48
	stepsOfWeek  = 7 * stepsOfDay
	hoursOfStep  = 0.5
	halfLife     = 28
)

// asker is a queue that asks.
type asker struct {
	weight uint32
	// gang is how many tasks must run together; 0: each runs alone.
	gang int
	// hours is the length of a task, of which each differs by up to a quarter.
	hours float64
	// asks says at which steps the queue wants everything. nil: at all.
	asks func(step int) bool
	// burst, if not 0, is how many tasks it asks for at the beginning of each week, instead.
	burst int
	// renamed makes a new queue of it every week, with the usage of a new queue.
	renamed bool
}

// weeks runs queues on equal devices, of which each task takes one. Each queue keeps a backlog, which it serves in order of age. An evicted
// task starts again, at its end. Tasks of a gang are not evicted: the plugin gang protects them, with which fair is used.
type weeks struct {
	devices, steps int
	queues         []asker
	memory         bool

	tasks []running
	// usage is decayed until the beginning of the epoch, now is what was used since.
	usage, now []float64
	offered    float64
	// held has what each queue holds at each step.
	held [][]int
	// backlog has the steps at which tasks that wait were asked for, of a gang one for all; longest is the longest wait so far.
	backlog [][]int
	longest []int
	// burst is what is left of a burst.
	burst     []int
	evictions int
	// lost is the work that evictions destroyed, in steps of a device.
	lost int
}

// running is a task, with the steps that it still takes.
type running struct{ queue, left, began int }

// run lets the weeks pass.
func (w *weeks) run(t *testing.T) *weeks {
	t.Helper()
	n := len(w.queues)
	random := rand.New(rand.NewPCG(*seed, 9))
	w.usage, w.now, w.backlog, w.longest, w.burst = make([]float64, n), make([]float64, n), make([][]int, n), make([]int, n), make([]int, n)
	for k := range 8 * halfLife {
		w.offered += float64(w.devices) * 21600 * math.Exp2(-float64(k)/halfLife)
	}
	for step := range w.steps {
		w.turn(step)
		w.ask(step)
		w.step(t, step, random)
		row := make([]int, n)
		for i := range w.tasks {
			row[w.tasks[i].queue]++
			w.now[w.tasks[i].queue] += 1800
		}
		w.held = append(w.held, row)
	}
	return w
}

// turn begins an epoch.
func (w *weeks) turn(step int) {
	if step%stepsOfEpoch != 0 {
		return
	}
	for q := range w.usage {
		w.usage[q], w.now[q] = w.usage[q]*math.Exp2(-1.0/halfLife)+w.now[q], 0
	}
	for q := range w.queues {
		if w.queues[q].renamed && step%stepsOfWeek == stepsOfEpoch {
			sum, weight := 0.0, 0.0
			for o := range w.queues {
				if o != q {
					sum, weight = sum+w.usage[o], weight+float64(w.queues[o].weight)
				}
			}
			w.usage[q] += sum / weight * float64(w.queues[q].weight)
		}
		if w.queues[q].renamed && step%stepsOfWeek == 0 {
			w.usage[q] = 0
		}
		if w.queues[q].burst > 0 && step%stepsOfWeek == 0 {
			w.burst[q] += w.queues[q].burst
		}
	}
}

// ask fills the backlogs, or empties those of queues that do not ask.
func (w *weeks) ask(step int) {
	for q := range w.queues {
		a, want := &w.queues[q], min(w.devices, max(4, 4*w.devices/len(w.queues)))
		switch {
		case a.burst > 0:
			want = w.burst[q]
		case a.asks != nil && !a.asks(step):
			want, w.backlog[q] = 0, nil
		case a.gang > 0:
			want = 1
		}
		for len(w.backlog[q]) < want {
			w.backlog[q] = append(w.backlog[q], step)
		}
	}
}

// start takes the oldest task of a backlog.
func (w *weeks) start(q, step int) {
	w.longest[q] = max(w.longest[q], step-w.backlog[q][0])
	w.backlog[q] = w.backlog[q][1:]
	w.burst[q] = max(0, w.burst[q]-1)
}

// cluster describes a step to the engine: a job of the running tasks of each queue, or of each gang, and one of what waits.
func (w *weeks) cluster(step int) (c *cluster, of [][]int) {
	c = &cluster{width: 1, total: []int64{int64(w.devices)}, plugin: Plugin{Quanta: []Quantum{{"r0", 1}}, Memory: DefaultMemory()}}
	if w.memory {
		c.memory = &model.MemorySpec{
			EpochSeconds: 21600, HalfLife: halfLife, Epoch: int64(step / stepsOfEpoch), Offered: integers([]int64{int64(w.offered)}),
		}
	}
	for q := range w.queues {
		a := &w.queues[q]
		memory := &model.QueueMemorySpec{Usage: integers([]int64{int64(w.usage[q])})}
		if a.renamed && step%stepsOfWeek < stepsOfEpoch {
			memory.Usage = nil
		}
		name := fmt.Sprintf("q%03d", q)
		c.queues = append(c.queues, queue{name: name, weight: a.weight, memory: memory})
		runs, at := job{queue: name, request: []int64{1}}, []int{}
		for i := range w.tasks {
			if r := &w.tasks[i]; r.queue == q {
				runs.tasks = append(runs.tasks, task{
					status: model.Running, node: model.None, priority: 1, created: int64(r.began) + 1, fixed: a.gang > 0,
				})
				at = append(at, i)
			}
		}
		waits := job{queue: name, request: []int64{1}, least: uint32(a.gang)}
		for range len(w.backlog[q]) * max(1, a.gang) {
			waits.tasks = append(waits.tasks, task{node: model.None, priority: 1, created: int64(step) + 1})
		}
		c.jobs, of = append(c.jobs, runs, waits), append(of, at, nil)
	}
	return c, of
}

// step ends tasks and runs the cluster to rest.
func (w *weeks) step(t *testing.T, step int, random *rand.Rand) {
	t.Helper()
	left := w.tasks[:0]
	for _, r := range w.tasks {
		if r.left--; r.left > 0 {
			left = append(left, r)
		}
	}
	w.tasks = left
	c, of := w.cluster(step)
	s := c.open(t)
	r := &Rest{State: s}
	for w.move(r) {
		r.Steps++
	}
	var after []running
	id := model.TaskID(0)
	for j := range c.jobs {
		for k := range c.jobs[j].tasks {
			runs, q := s.v.Status(id) == model.Running, j/2
			id++
			switch old := of[j]; {
			case old != nil && runs:
				after = append(after, w.tasks[old[k]])
			case old != nil:
				w.lost += step - w.tasks[old[k]].began
				w.burst[q]++
			case runs && w.queues[q].gang > 0 && k > 0:
				// All of a gang end together.
				after = append(after, after[len(after)-1])
			case runs:
				w.start(q, step)
				after = append(after, running{q, max(1, int(w.queues[q].hours/hoursOfStep*(0.75+random.Float64()/2))), step})
			}
		}
	}
	w.evictions += r.Evictions
	w.tasks = after
}

// move makes the first move there is: of each queue the first block alone is tried, for the others are like it.
func (w *weeks) move(r *Rest) bool {
	for _, q := range r.Order() {
		for _, job := range r.Blocks(q) {
			block := job.Gang
			if len(block) == 0 && len(job.Loose) > 0 {
				block = job.Loose[:1]
			}
			if len(block) > 0 && r.serve(q, block) {
				return true
			}
		}
	}
	return false
}

// share is the part of the devices that a queue held between two steps.
func (w *weeks) share(q, from, to int) float64 {
	sum := 0
	for _, row := range w.held[from:to] {
		sum += row[q]
	}
	return float64(sum) / float64(w.devices*(to-from))
}

// last is the share of the last four weeks.
func (w *weeks) last(q int) float64 { return w.share(q, max(0, w.steps-4*stepsOfWeek), w.steps) }

func (w *weeks) evictedADay() float64 { return float64(w.evictions) / float64(w.steps) * stepsOfDay }

// hours is the longest wait of a task of a queue, also of one that still waits.
func (w *weeks) hours(q int) string {
	for _, since := range w.backlog[q] {
		w.longest[q] = max(w.longest[q], w.steps-since)
	}
	if w.longest[q] >= w.steps/2 {
		return "never"
	}
	return fmt.Sprintf("%.0f", float64(w.longest[q])*hoursOfStep)
}

func (w *weeks) lostWork() float64 { return float64(w.lost) / float64(w.devices*w.steps) }

// idle is the part of the devices that nothing held.
func (w *weeks) idle() float64 {
	all := 0.0
	for q := range w.queues {
		all += w.share(q, 0, w.steps)
	}
	return 1 - all
}

func same(n int, hours float64) []asker {
	list := make([]asker, n)
	for q := range list {
		list[q] = asker{weight: 1, hours: hours}
	}
	return list
}

// with changes the last queue.
func with(list []asker, change func(*asker)) []asker {
	change(&list[len(list)-1])
	return list
}

func from(step int) func(int) bool { return func(at int) bool { return at >= step } }

// row is a row of the table: weeks, and the figures that they are measured by.
type row struct {
	name string
	// without and specified are what the specification says, without memory and with it.
	without, specified string
	// long rows take more than a few seconds.
	long    bool
	devices int
	weeks   int
	queues  func() []asker
	tell    func(w *weeks) string
	// holds requires what is promised.
	holds func(t *testing.T, with, without *weeks)
}

func quiet(t *testing.T, with, without *weeks) {
	t.Helper()
	require.LessOrEqual(t, with.evictedADay(), without.evictedADay()+.01)
}

func noGain(t *testing.T, with, _ *weeks) {
	t.Helper()
	require.Less(t, with.share(2, 0, with.steps), 1.0/3+.01)
}

func rows() []row {
	const alone = 2 * stepsOfWeek
	shareOf := func(q int) func(w *weeks) string {
		return func(w *weeks) string { return fmt.Sprintf("%.3f", w.share(q, 0, w.steps)) }
	}
	evicted := func(w *weeks) string { return fmt.Sprintf("%.1f", w.evictedADay()) }
	lost := func(w *weeks) string { return fmt.Sprintf("%.2f", w.lostWork()) }
	gang := func(w *weeks) string {
		return fmt.Sprintf("%.2f, %s, %.2f", w.share(1, 0, w.steps), w.hours(1), w.lostWork()+w.idle())
	}
	list := []row{
		{
			name: "late hog of 2: share in its first week, last 4 weeks", without: ".50, .500", specified: ".75, .500", devices: 16, weeks: 8,
			queues: func() []asker { return with(same(2, 24), func(a *asker) { a.asks = from(alone) }) },
			tell: func(w *weeks) string {
				return fmt.Sprintf("%.2f, %.3f", w.share(1, alone, alone+stepsOfWeek), w.last(1))
			},
			holds: func(t *testing.T, with, without *weeks) {
				t.Helper()
				quiet(t, with, without)
				require.Greater(t, with.share(1, alone, alone+stepsOfWeek), .65)
				require.InDelta(t, .5, with.last(1), .01)
			},
		},
		{
			name: "the same: longest wait of the old hog, the late one, h", without: "75, 68", specified: "152, 59", devices: 16, weeks: 8,
			queues: func() []asker { return with(same(2, 24), func(a *asker) { a.asks = from(alone) }) },
			tell:   func(w *weeks) string { return w.hours(0) + ", " + w.hours(1) },
		},
		{
			name: "weights 3 : 2 : 1: shares of the last 4 weeks (fair .500, .333, .167)", specified: "within .005", devices: 16, weeks: 8,
			queues: func() []asker { l := same(3, 24); l[0].weight, l[1].weight = 3, 2; return l },
			tell:   func(w *weeks) string { return fmt.Sprintf("%.3f, %.3f, %.3f", w.last(0), w.last(1), w.last(2)) },
			holds: func(t *testing.T, with, _ *weeks) {
				t.Helper()
				for q, part := range []float64{3. / 6, 2. / 6, 1. / 6} {
					require.InDelta(t, part, with.last(q), .01)
				}
			},
		},
		{
			name: "asks only at an epoch's end (fair .333): share", without: ".312", specified: ".333", devices: 16, weeks: 8,
			queues: func() []asker {
				return with(same(3, 24), func(a *asker) { a.asks = func(step int) bool { return step%stepsOfEpoch == stepsOfEpoch-1 } })
			},
			tell: shareOf(2), holds: noGain,
		},
		{
			name: "the same: evicted a day", without: "0.4", specified: "0.3", devices: 16, weeks: 8,
			queues: func() []asker {
				return with(same(3, 24), func(a *asker) { a.asks = func(step int) bool { return step%stepsOfEpoch == stepsOfEpoch-1 } })
			},
			tell: evicted, holds: quiet,
		},
		{
			name: "idle 4 weeks, then asks: share in 4 weeks; a hog's wait, h", without: ".31, 89", specified: ".41, 150", devices: 16, weeks: 8,
			queues: func() []asker { return with(same(3, 24), func(a *asker) { a.asks = from(4 * stepsOfWeek) }) },
			tell:   func(w *weeks) string { return fmt.Sprintf("%.2f, %s", w.last(2), w.hours(0)) },
			holds: func(t *testing.T, with, _ *weeks) {
				t.Helper()
				require.Less(t, with.share(2, 0, with.steps), 1.0/3)
			},
		},
		{
			name: "burst each week: its longest wait, h; evicted a day", without: "90, 2.6", specified: "56, 2.2", devices: 64, weeks: 8,
			queues: func() []asker { return with(same(3, 24), func(a *asker) { a.burst = 64 }) },
			tell:   func(w *weeks) string { return w.hours(2) + ", " + evicted(w) },
			holds:  quiet,
		},
		{
			name: "short tasks of 6 h beside tasks of 24 h (fair .333): share of the last 4 weeks", devices: 16, weeks: 8,
			queues: func() []asker { return with(same(3, 24), func(a *asker) { a.hours = 6 }) },
			tell:   func(w *weeks) string { return fmt.Sprintf("%.3f", w.last(2)) },
			holds:  func(t *testing.T, with, _ *weeks) { t.Helper(); require.InDelta(t, 1.0/3, with.last(2), .01) },
		},
		{
			name: "a new name each week (fair .333): share", specified: "at most the average", devices: 16, weeks: 8,
			queues: func() []asker { return with(same(3, 24), func(a *asker) { a.renamed = true }) }, tell: shareOf(2), holds: noGain,
		},
	}
	for _, turn := range []int{stepsOfDay / 2, stepsOfWeek, 4 * stepsOfWeek} {
		list = append(list, row{
			name:      fmt.Sprintf("two siblings in turns of %.1f d: their mean share (fair .333)", float64(turn)/stepsOfDay),
			specified: ".248 to .334", devices: 16, weeks: 8,
			queues: func() []asker {
				l := same(3, 24)
				l[1].asks = func(step int) bool { return step/turn%2 == 0 }
				l[2].asks = func(step int) bool { return step/turn%2 == 1 }
				return l
			},
			tell: func(w *weeks) string { return fmt.Sprintf("%.3f", (w.share(1, 0, w.steps)+w.share(2, 0, w.steps))/2) },
			holds: func(t *testing.T, with, _ *weeks) {
				t.Helper()
				require.Less(t, (with.share(1, 0, with.steps)+with.share(2, 0, with.steps))/2, 1.0/3+.01)
			},
		})
	}
	for idle, figure := range []string{1: ".295", ".231", ".152"} {
		if idle == 0 {
			continue
		}
		list = append(list, row{
			name: fmt.Sprintf("idles %d of 4 weeks (fair .333): share", idle), specified: figure, devices: 16, weeks: 8,
			queues: func() []asker {
				return with(same(3, 24), func(a *asker) { a.asks = func(step int) bool { return step/stepsOfWeek%4 >= idle } })
			},
			tell: shareOf(2), holds: noGain,
		})
	}
	for _, hours := range []float64{24, 72} {
		of := fmt.Sprintf("tasks of %.0f h", hours)
		list = append(list, row{
			name: "one device, 2 queues, " + of + ": work lost; shares of the last 4 weeks", without: "b never", specified: "0", devices: 1, weeks: 8,
			queues: func() []asker { return same(2, hours) },
			tell:   func(w *weeks) string { return fmt.Sprintf("%.2f; %.3f, %.3f", w.lostWork(), w.last(0), w.last(1)) },
			holds: func(t *testing.T, with, _ *weeks) {
				t.Helper()
				require.Zero(t, with.evictions)
				require.InDelta(t, .5, with.last(0), .06)
			},
		}, row{
			name: "20 queues on 64 devices, " + of + ": evicted a day", without: "0", specified: "0", devices: 64, weeks: 8, long: true,
			queues: func() []asker { return same(20, hours) }, tell: evicted, holds: quiet,
		}, row{
			name: "50 on 64, " + of + ": work lost", without: "0", specified: "0", devices: 64, weeks: 8, long: true,
			queues: func() []asker { return same(50, hours) }, tell: lost, holds: quiet,
		}, row{
			name: "200 on 512, " + of + ": evicted a day", without: "0", specified: "0", devices: 512, weeks: 4, long: true,
			queues: func() []asker { return same(200, hours) }, tell: evicted, holds: quiet,
		})
	}
	for _, against := range []struct {
		hours     float64
		specified string
	}{{6, ".31, 34, .06"}, {24, ".30, 78, .09"}, {72, ".31, 220, .09"}} {
		list = append(list, row{
			name:    fmt.Sprintf("gang of 48 of 64 devices against tasks of %.0f h: share; longest wait, h; lost and idle", against.hours),
			without: "0, never, 0", specified: against.specified, devices: 64, weeks: 8,
			queues: func() []asker { return with(same(2, against.hours), func(a *asker) { a.gang = 48 }) }, tell: gang,
			holds: func(t *testing.T, with, without *weeks) {
				t.Helper()
				require.Zero(t, without.share(1, 0, without.steps))
				require.Greater(t, with.share(1, 0, with.steps), .2)
			},
		})
	}
	return append(list, row{
		name: "two gangs of the whole cluster: share of the second; its wait, h", without: "0, never", specified: ".51, 130", devices: 16, weeks: 8,
		queues: func() []asker {
			l := same(2, 24)
			l[0].gang, l[1].gang = 16, 16
			return l
		},
		tell: func(w *weeks) string { return fmt.Sprintf("%.2f, %s", w.share(1, 0, w.steps), w.hours(1)) },
		holds: func(t *testing.T, with, _ *weeks) {
			t.Helper()
			require.InDelta(t, .5, with.share(1, 0, with.steps), .05)
		},
	})
}

// TestWeeksAreAsPromised runs the rows of the specification's table of weeks with the engine, without memory and with it: shares converge to
// weights, no more is evicted than without memory, gangs get their turn, and no pattern of demand gains. The figures are those of
// docs/fair.md; -update writes those of the rows that ran.
func TestWeeksAreAsPromised(t *testing.T) {
	const name, begin, end = "../../../docs/fair.md", "<!-- weeks -->\n", "<!-- /weeks -->"
	document, err := os.ReadFile(name)
	require.NoError(t, err)
	head, rest, _ := strings.Cut(string(document), begin)
	kept, tail, found := strings.Cut(rest, end)
	require.True(t, found)
	table := "| | no memory: specified | engine | with memory: specified | engine |\n| --- | --- | --- | --- | --- |\n"
	for i, r := range rows() {
		line := lineOf(kept, r.name)
		t.Run(r.name, func(t *testing.T) {
			if r.long && !*everyWeek || testing.Short() && i > 1 {
				t.Skip("run it with -weeks")
			}
			run := func(memory bool) *weeks {
				return (&weeks{devices: r.devices, steps: r.weeks * stepsOfWeek, queues: r.queues(), memory: memory}).run(t)
			}
			without, with := run(false), run(true)
			line = fmt.Sprintf("| %s | %s | %s | %s | %s |\n", r.name, r.without, r.tell(without), r.specified, r.tell(with))
			t.Log(line)
			if r.holds != nil {
				r.holds(t, with, without)
			}
			if !*update {
				require.Equal(t, lineOf(kept, r.name), line, "run the test with -update if this is meant")
			}
		})
		table += line
	}
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(head+begin+table+end+tail), 0o600))
	}
}

// lineOf returns the line of a table that begins with a name.
func lineOf(table, name string) string {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| "+name+" |") {
			return line
		}
	}
	return ""
}
