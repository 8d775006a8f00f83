package rehearsal

import (
	"math"

	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// cause is why a task was evicted.
type cause int

const (
	// byReclaim: for a job of another queue; byPreempt: for one of its own queue.
	byReclaim cause = iota
	byPreempt
	// withGang: too few tasks of its job were left.
	withGang
	numCause
)

// meter sums what happens over time.
type meter struct {
	*run
	// at is the time up to which everything is summed; first and last are the first and the last arrival.
	at, first, last int64
	// unit is the amount of the measured resource that counts as one.
	unit float64
	// offered is the amount of each resource that jobs may use.
	offered []float64
	queues  []queueMeter
	classes []classMeter
	waits   []int64
	// arriving and all are the use between the first and the last arrival, and altogether, in seconds.
	arriving, all []float64
	// fair is the sum of the index over wanting seconds, in which some queue wanted something.
	fair            float64
	wanting         int64
	finished, ended int64
	series          series
	sharing         sharing
}

// queueMeter is one queue's part.
type queueMeter struct {
	// used is the queue's present use of each resource; wanted and entitled are of the measured one.
	used             []float64
	wanted, entitled float64
	// spent is used over time, in seconds, and lost the part of it that was done in vain.
	spent, lost []float64
	// arriving is what it used of the measured resource between the first and the last arrival.
	arriving, short float64
	// wanting counts the seconds in which the queue wanted something, kept those in which it had what it is entitled to.
	wanting, kept int64
	evicted       [numCause]int
	jobs, ended   int
	waits         []int64
}

// classMeter is the part of jobs of one size.
type classMeter struct {
	jobs, evicted int
	waits         []int64
}

func newMeter(r *run, t *trace.Trace) *meter {
	m := &meter{
		run: r, unit: unitOf(r.options.Resource), offered: make([]float64, r.width), queues: make([]queueMeter, len(r.base.Queues)),
		classes: make([]classMeter, len(classBounds)+1), arriving: make([]float64, r.width), all: make([]float64, r.width),
	}
	for q := range m.queues {
		m.queues[q] = queueMeter{used: make([]float64, r.width), spent: make([]float64, r.width), lost: make([]float64, r.width)}
	}
	row := resource.NewAccount(r.width)
	for _, n := range r.base.NodeOrder {
		r.session.View().Idle(n, &row)
		for d, x := range row.V {
			m.offered[d] += max(x, 0)
		}
	}
	if len(r.jobs) > 0 {
		m.first, m.last = r.jobs[0].Arrival, r.jobs[len(r.jobs)-1].Arrival
	}
	m.at = m.first
	m.series = newSeries(m.first, len(m.queues))
	m.sharing = r.sharing(t, m.first)
	return m
}

// unitOf returns the amount of a resource that people count as one: a whole GPU or core, a gibibyte of memory.
func unitOf(name string) float64 {
	switch name {
	case "memory":
		return 1 << 30
	case "pods":
		return 1
	}
	return 1000
}

// classBounds are the largest amounts of the measured resource of each class of jobs but the last.
var classBounds = []float64{0, 1, 8, 64, 512}

// class is the class of a job by all that its tasks ask for.
func (m *meter) class(j *job) int {
	sum := 0.0
	for g := range j.rows {
		sum += j.rows[g][m.measured] * float64(j.Groups[g].Tasks)
	}
	for i, bound := range classBounds {
		if sum <= bound*m.unit {
			return i
		}
	}
	return len(classBounds)
}

func (m *meter) arrive(j *job) {
	q := &m.queues[j.queue]
	q.jobs++
	m.classes[m.class(j)].jobs++
	m.want(j, 1)
}

// want adds what a job asks for, or with -1 takes it away.
func (m *meter) want(j *job, sign float64) {
	for g := range j.rows {
		m.queues[j.queue].wanted += sign * j.rows[g][m.measured] * float64(j.Groups[g].Tasks)
	}
}

// use adds what a task uses, or with -1 takes it away.
func (m *meter) use(j *job, task int, sign float64) {
	if m.memory != nil {
		m.memory.use(j, task, m.now, int64(sign))
	}
	used := m.queues[j.queue].used
	for d, x := range j.rows[j.group(task)] {
		used[d] += sign * x
	}
}

// evict counts an eviction that costs so many seconds of a task's work.
func (m *meter) evict(j *job, task int, why cause, lost int64) {
	q := &m.queues[j.queue]
	q.evicted[why]++
	m.classes[m.class(j)].evicted++
	for d, x := range j.rows[j.group(task)] {
		q.lost[d] += float64(x * float64(lost))
	}
}

// finish counts a job that is done.
func (m *meter) finish(j *job) {
	for task, start := range j.started {
		if start != idle {
			m.use(j, task, -1)
		}
	}
	m.want(j, -1)
	q := &m.queues[j.queue]
	q.ended++
	q.waits = append(q.waits, j.waited)
	class := &m.classes[m.class(j)]
	class.waits = append(class.waits, j.waited)
	m.waits = append(m.waits, j.waited)
	m.finished++
	m.ended = j.end
}

// entitle finds what queues are entitled to, by the policy that says so.
func (r *run) entitle() error {
	s, err := engine.Open(r.session.View().Model, r.entitlement, r.stop)
	if err != nil {
		return err
	}
	for _, divider := range s.Dividers() {
		if divider.Queues == nil {
			continue
		}
		for q := range r.meter.queues {
			share, ok := divider.Queues.Share(model.QueueID(q))
			amount := 0.0
			if ok && !share.Deserved.Absent() {
				amount = max(share.Deserved.V[r.measured], 0)
			}
			r.meter.queues[q].entitled = amount
		}
		return nil
	}
	return nil
}

// pass sums the time up to a moment.
func (m *meter) pass(to int64) {
	seconds := to - m.at
	if seconds <= 0 {
		return
	}
	arriving := float64(max(min(to, m.last)-max(m.at, m.first), 0))
	sum, squares, n := 0.0, 0.0, 0
	for i := range m.queues {
		q := &m.queues[i]
		for d, x := range q.used {
			q.spent[d] += float64(x * float64(seconds))
			m.all[d] += float64(x * float64(seconds))
			m.arriving[d] += float64(x * arriving)
		}
		q.arriving += float64(q.used[m.measured] * arriving)
		due := min(q.entitled, q.wanted)
		if due <= 0 {
			continue
		}
		has := q.used[m.measured]
		q.wanting += seconds
		if has >= m.whole(due) {
			q.kept += seconds
		} else {
			q.short += float64((due - has) * float64(seconds))
		}
		part := min(has/due, 1)
		sum, squares, n = sum+part, squares+float64(part*part), n+1
	}
	index := jain(sum, squares, n)
	if n > 0 {
		m.fair += float64(index * float64(seconds))
		m.wanting += seconds
	}
	m.series.add(m, m.at, to, index, n > 0)
	m.sharing.add(m, m.at, to)
	m.at = to
}

// whole rounds an amount of the measured resource down to what people count: of 26.67 GPUs a queue can have 26.
func (m *meter) whole(amount float64) float64 {
	const rounding = 1e-6
	return math.Floor(amount/m.unit+rounding) * m.unit
}

// jain is the fairness index of Jain, Chiu and Hawe (DEC Research Report TR-301, 1984): the square of the sum over n times the sum of the
// squares; 1 if all queues have the same part of their entitlement, 1/n if one of n queues has everything. No part at all counts as equal.
func jain(sum, squares float64, n int) float64 {
	if n == 0 || squares == 0 {
		return 1
	}
	return float64(sum*sum) / float64(float64(n)*squares)
}

// points bounds the points of a series.
const points = 256

// series sums values over time in steps of equal length, which double when there are too many.
type series struct {
	start, step int64
	steps       []sums
	queues      int
}

// sums are those of a step: values times seconds.
type sums struct {
	seconds, wanting int64
	fair             float64
	used, entitled   []float64
}

func newSeries(start int64, queues int) series { return series{start: start, step: 60, queues: queues} }

// add adds the time from one moment to another, in which nothing changes.
func (s *series) add(m *meter, from, to int64, index float64, wanted bool) {
	for to-s.start > s.step*points {
		s.halve()
	}
	for from < to {
		i := int((from - s.start) / s.step)
		for len(s.steps) <= i {
			s.steps = append(s.steps, sums{used: make([]float64, s.queues), entitled: make([]float64, s.queues)})
		}
		end := min(to, s.start+int64(i+1)*s.step)
		seconds := end - from
		step := &s.steps[i]
		step.seconds += seconds
		if wanted {
			step.wanting += seconds
			step.fair += float64(index * float64(seconds))
		}
		for q := range m.queues {
			meter := &m.queues[q]
			step.used[q] += float64(meter.used[m.measured] * float64(seconds))
			step.entitled[q] += float64(min(meter.entitled, meter.wanted) * float64(seconds))
		}
		from = end
	}
}

// halve makes one step of two.
func (s *series) halve() {
	s.step *= 2
	for i := range (len(s.steps) + 1) / 2 {
		merged := s.steps[2*i]
		if 2*i+1 < len(s.steps) {
			other := &s.steps[2*i+1]
			merged.seconds += other.seconds
			merged.wanting += other.wanting
			merged.fair += other.fair
			for q := range merged.used {
				merged.used[q] += other.used[q]
				merged.entitled[q] += other.entitled[q]
			}
		}
		s.steps[i] = merged
	}
	s.steps = s.steps[:(len(s.steps)+1)/2]
}
