package odds

import (
	"slices"

	"github.com/apportion/apportion/engine/policy"
)

// run is one run under way.
type run struct {
	*Base

	seed   uint64
	number int
	left   int64
	now    int64
	room   *room
	used   [][]float64
	// wants are the queues that want something they deserve in a state: that of the number wanted.
	wants  []bool
	wanted int
	// course is nil if no policy divides. excess says what queues may use beyond what they deserve. Unless that is all, deserved and asked
	// count, and changed says that what queues ask for has changed since the latest round.
	course          policy.Course
	excess          policy.Excess
	deserved, asked [][]float64
	changed         bool
	// state is the number of the present state, states how many there have been, and lent what the queue that asked last must leave to
	// others.
	state, states int
	lent          lending
	// doors are the jobs of each kind that wait to be admitted. booked, promised and held are as in the base.
	doors          []line
	booked         [][]float64
	promised, held []float64
	jobs           []live
	// laws are what this run takes the samples to say, and days the weights of the blocks of the past, summed up.
	laws  []*law
	days  []float64
	ends  ends
	lines []line
	// open counts the lines of each queue that can be served, and closed are those that cannot.
	open   []int
	closed []int32
	// coming are arrivals that were drawn, the next first; drawn counts the blocks that they were drawn for.
	coming []coming
	drawn  int64
	// reopened counts the seconds of opens that have passed, and opened says that one has since the latest round.
	reopened int
	opened   bool
	// freed are the nodes on which jobs ended since the latest round, and by says by which job last, -1: none. ended is the last of all.
	freed []int
	by    []int32
	ended int32
	// bound is set in runs that find a bound.
	bound Bound
	// placed are the tasks of the attempt under way.
	placed []Held
	done   bool
	// watched are the starts of the jobs of the present in runs that show those of all, and unseen how many of these have not started.
	watched []int64
	unseen  int
	// looked is what was left when Stop was asked last, and stopped what it said.
	looked  int64
	stopped bool
}

// live is a job in the course of a run.
type live struct {
	kind    int32
	version int32
	// cause is the job whose end let it start, -1: none.
	cause   int32
	running int
	// grown counts the tasks beyond the gang that were placed.
	grown int
	held  []Held
	// work is what was left to do at since, in seconds of one task.
	work  float64
	since int64
	over  bool
	// grows says that it runs and waits for more tasks.
	grows bool
	// booked is what counts against the bounds of admission.
	booked []float64
	// at orders it in its line: its rank, or later its arrival.
	at int64
}

// line is jobs of one kind that wait.
type line struct {
	// list is that of the base until the run adds to it.
	list   []int32
	head   int
	owned  bool
	closed closed
}

// closed says why a line is not served.
type closed uint8

const (
	served closed = iota
	noRoom
	limited
)

// coming is an arrival.
type coming struct {
	at   int64
	kind int
	// past is the job of the past that arrives again, and matter that of its draw.
	past, matter int
}

// Run runs the model once, as the numbered run of a seed.
func (b *Base) Run(seed uint64, number int) Outcome {
	r := &run{Base: b, seed: seed, number: number, left: b.Work, ended: -1}
	return r.toStart()
}

// RunAll runs the model once for each number below n, as Run does.
func (b *Base) RunAll(seed uint64, n int) []Outcome {
	outcomes := make([]Outcome, n)
	b.beside(n, func(i int) { outcomes[i] = b.Run(seed, i) })
	return outcomes
}

// Bound is an assumption about the runtimes of jobs.
type Bound uint8

// The assumptions.
const (
	// Shortest: every job ends at once, or when it is stated to.
	Shortest Bound = iota + 1
	// Longest: every job runs to its limit, or for ever.
	Longest
)

// Bound runs the model with runtimes that are not drawn, and without arrivals.
func (b *Base) Bound(bound Bound) Outcome {
	still := *b
	still.block = 0
	r := &run{Base: &still, left: b.Work, ended: -1, bound: bound}
	return r.toStart()
}

// lasts returns how long a job runs in all.
func (r *run) lasts(i int) int64 {
	job := &r.Jobs[i]
	switch {
	case job.Running > 0 && job.Ends != Unknown:
		return job.Elapsed + max(job.Ends, 1)
	case r.bound == Shortest:
		return job.Elapsed + 1
	case r.bound == Longest && job.Limit > 0:
		return max(job.Limit, job.Elapsed+1)
	case r.bound == Longest:
		return longest
	}
	return r.runtime(i)
}

// begin copies the state at second 0 and draws the runtimes of all jobs.
func (r *run) begin() {
	b := r.Base
	if b.Work <= 0 {
		r.left = Never
	}
	r.looked = r.left
	r.by = make([]int32, len(b.Nodes))
	for n := range r.by {
		r.by[n] = -1
	}
	r.room = b.room.clone()
	r.room.left = &r.left
	r.open, r.wants = make([]int, len(b.Queues)), make([]bool, len(b.Queues))
	r.used = table(len(b.Queues), b.width, b.used)
	if b.Course != nil {
		r.deserved, r.asked = table(len(b.Queues), b.width, nil), table(len(b.Queues), b.width, b.asked)
		r.course = b.Course(&policy.Amounts{Used: r.used, Asked: r.asked, Deserved: r.deserved})
		r.excess, r.changed = r.course.Excess(), true
	}
	r.lines = make([]line, len(b.waiting))
	for i := range r.lines {
		r.lines[i].list = b.waiting[i]
		if len(b.waiting[i]) > 0 {
			r.open[b.Kinds[i/2].Queue]++
		}
	}
	r.openDoors()
	r.laws = make([]*law, len(b.samples))
	r.weighDays()
	r.jobs = make([]live, len(b.Jobs), len(b.Jobs)+len(b.Jobs)/2)
	for i := range b.Jobs {
		job, l := &b.Jobs[i], &r.jobs[i]
		l.kind, l.cause, l.at, l.held, l.running = int32(job.Kind), -1, int64(job.Rank), slices.Clip(job.Held), job.Running
		l.grows, l.booked = job.Waits && len(b.Kinds[job.Kind].Gang) == 0, job.Booked
		if i == b.Asked {
			continue
		}
		total := r.lasts(i)
		if job.Running == 0 {
			l.work = float64(total) * float64(b.size[job.Kind])
			continue
		}
		l.work = float64(total-job.Elapsed) * float64(job.Running)
		r.ends = append(r.ends, end{total - job.Elapsed, int32(i), 0})
	}
	r.ends.order()
}

// table returns n rows, copies of others if there are any.
func table(n, width int, of [][]float64) [][]float64 {
	cells, rows := make([]float64, n*width), make([][]float64, n)
	for i := range rows {
		rows[i] = cells[i*width : (i+1)*width : (i+1)*width]
		if of != nil {
			copy(rows[i], of[i])
		}
	}
	return rows
}

// toStart goes from event to event until the job starts. A run that Stop ends before it has begun is cut.
func (r *run) toStart() Outcome {
	if r.Stop != nil && r.Stop() {
		return Outcome{Start: Never, Cut: true, Stopped: true}
	}
	r.begin()
	all := r.left
	o := r.outcome()
	o.Work = all - max(r.left, 0)
	return o
}

func (r *run) outcome() Outcome {
	for {
		r.decide()
		if r.done {
			if r.watched != nil {
				return Outcome{Start: r.now}
			}
			return Outcome{Start: r.now, Cause: r.causes()}
		}
		if r.left < 0 {
			return Outcome{Start: Never, Cut: true}
		}
		if r.stopped {
			return Outcome{Start: Never, Cut: true, Stopped: true}
		}
		next := min(r.ends.next(), r.arrival(), r.opening())
		if next == Never || next > r.Horizon {
			return Outcome{Start: Never}
		}
		r.pass(max(next, r.now+r.Pause))
	}
}

// pass lets time go on to a moment, at which jobs have ended and arrived.
func (r *run) pass(to int64) {
	r.now, r.ended, r.opened = to, -1, false
	for r.opening() <= to {
		r.reopened, r.opened = r.reopened+1, true
	}
	for _, n := range r.freed {
		r.by[n] = -1
	}
	r.freed = r.freed[:0]
	for r.ends.next() <= to {
		e := r.ends.pop()
		if l := &r.jobs[e.job]; !l.over && l.version == e.version {
			r.finish(int(e.job))
		}
		r.left--
	}
	for r.arrival() <= to {
		if len(r.jobs)-len(r.Jobs) == MaxArrivals {
			r.left = -1
			return
		}
		c := r.coming[0]
		r.coming = r.coming[1:]
		r.jobs = append(r.jobs, live{
			kind: int32(c.kind), cause: -1, work: float64(r.seconds(&c)) * float64(r.size[c.kind]),
			at: int64(len(r.Jobs)) + int64(len(r.jobs)),
		})
		r.arrive(c.kind, len(r.jobs)-1)
		r.ask(r.Kinds[c.kind].Queue, r.whole[c.kind], 1)
	}
	if r.ended >= 0 || r.changed || r.opened {
		r.reopen()
	}
}

// opening returns when a node takes tasks again, Never if none does. The last of opens may be Never.
func (r *run) opening() int64 {
	if r.reopened == len(r.opens) {
		return Never
	}
	return r.opens[r.reopened]
}

// finish ends a job.
func (r *run) finish(i int) {
	l := &r.jobs[i]
	l.over, r.ended = true, int32(i)
	r.release(l)
	if l.grows {
		r.ask(r.Kinds[l.kind].Queue, r.rest(l), -1)
	}
	for _, h := range l.held {
		r.ask(r.Kinds[l.kind].Queue, h.Amount, -1)
		if r.by[h.Node] < 0 {
			r.freed = append(r.freed, h.Node)
		}
		r.by[h.Node] = int32(i)
		r.take(l, h, -1)
	}
	l.held = nil
}

// take books what a job holds of a node, or gives it back.
func (r *run) take(l *live, h Held, sign float64) {
	r.room.add(h.Node, h.Amount, -sign)
	addTo(r.held, h.Amount, sign)
	r.use(r.Kinds[l.kind].Queue, h.Amount, sign)
}

// causes follows the causes of the start back to jobs that run at second 0.
func (r *run) causes() []int {
	var list []int
	for i := r.jobs[r.Asked].cause; i >= 0; i = r.jobs[i].cause {
		if int(i) < len(r.Jobs) {
			list = append(list, int(i))
		}
	}
	return list
}
