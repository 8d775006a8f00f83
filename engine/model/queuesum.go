package model

import (
	"math"
	"math/bits"

	"github.com/apportion/apportion/engine/resource"
)

// QueueSum is what the jobs of a queue add up to when a session opens, the way Volcano's proportion and capacity both add them up. All sums
// are formed in the order of the jobs' uids. A row names cpu and memory; it names a scalar if and only if some job brings that scalar in,
// which policies' comparisons depend on. Callers only read it.
type QueueSum struct {
	// Allocated sums the tasks that hold resources; Request adds those that are pending, and Gated sums those of them that a gate other than
	// the scheduler's own holds.
	Allocated, Request, Gated resource.Row
	// Inqueue sums what admitted jobs still lack of their minimum.
	Inqueue resource.Row
	// Elastic sums what jobs hold above their minimum.
	Elastic resource.Row
	// Named sums the requests of all tasks and the minimum resources of all jobs.
	Named resource.Row
	// Jobs counts the jobs, of whatever phase and size.
	Jobs int32
	// Moving says that tasks are pipelined or releasing.
	Moving bool
}

// rowsOfSum is how many rows a QueueSum has.
const rowsOfSum = 6

// QueueSumOf returns what the jobs of a queue add up to.
func (m *Model) QueueSumOf(q QueueID) *QueueSum { return m.sums[q] }

// sumStore is the memory of the sums of a model that is built at once.
type sumStore struct {
	sums  []QueueSum
	of    []*QueueSum
	cells []float64
}

// open returns empty sums of n queues.
func (s *sumStore) open(n, width int) []*QueueSum {
	s.sums, s.of, s.cells = zeroed(s.sums, n), zeroed(s.of, n), zeroed(s.cells, rowsOfSum*n*width)
	for q := range s.sums {
		s.sums[q].open(s.cells[q*rowsOfSum*width:], width)
		s.of[q] = &s.sums[q]
	}
	return s.of
}

// open makes the sums empty, in the cells given, which are zeros.
func (s *QueueSum) open(cells []float64, width int) {
	*s = QueueSum{}
	for i, row := range s.rows() {
		*row = resource.Row{V: cells[i*width : (i+1)*width : (i+1)*width], Has: resource.Base}
	}
}

func (s *QueueSum) rows() [rowsOfSum]*resource.Row {
	return [...]*resource.Row{&s.Allocated, &s.Request, &s.Gated, &s.Inqueue, &s.Elastic, &s.Named}
}

// newSum returns a sum of no jobs.
func newSum(width int) *QueueSum {
	s := &QueueSum{}
	s.open(make([]float64, rowsOfSum*width), width)
	return s
}

// summing adds jobs to the sums of queues.
type summing struct {
	*Model
	unbooked resource.Mask
	part     resource.Row
	// grain has every bit that is set in the amount of some minimum, by dimension; rough says that some amount is no integer.
	grain []uint64
	rough bool
}

func (m *Model) summing() *summing {
	width := m.Dims.Len()
	return &summing{Model: m, unbooked: m.unbooked(), part: resource.NewAccount(width), grain: make([]uint64, width)}
}

// fill adds the jobs of a queue to an empty sum.
func (s *summing) fill(q QueueID, sum *QueueSum) {
	for _, j := range s.QueueJobs[q] {
		s.add(sum, s.Jobs.At(j), s.Accounts.At(j))
	}
}

func (s *summing) add(sum *QueueSum, job *Job, tasks *Account) {
	sum.Jobs++
	sum.Moving = sum.Moving || tasks.Tasks[Pipelined]+tasks.Tasks[Releasing] > 0
	sum.Named.Add(tasks.Total)
	if !job.MinResources.Absent() {
		sum.Named.Add(job.MinResources)
		s.grind(job.MinResources)
	}
	// Rows of no task are zeros that name cpu and memory; adding them changes nothing.
	if tasks.Holding() > 0 {
		sum.Allocated.Add(tasks.Allocated)
		sum.Request.Add(tasks.Allocated)
		job.Elastic(tasks, &s.part)
		sum.Elastic.Add(s.part)
	}
	if tasks.Tasks[Pending] > 0 {
		sum.Request.Add(tasks.Pending)
		sum.Gated.Add(tasks.Gated)
	}
	if isAdmitted(job, tasks) {
		s.setLack(job, tasks, s.unbooked, &s.part)
		s.deductGated(tasks, &s.part)
		sum.Inqueue.Add(s.part)
	}
}

// grind notes the amounts of a row.
func (s *summing) grind(row resource.Row) {
	for d, x := range row.V {
		whole := int64(x)
		s.rough = s.rough || float64(whole) != x
		s.grain[d] |= uint64(whole)
	}
}

// exact reports whether all sums of all queues are the same in whatever order they were formed: all amounts are multiples of a power of
// two, and come to less than 2^53 times that power together, so that no sum and no difference of them was rounded.
func (s *summing) exact() bool {
	for _, request := range s.Requests {
		s.grind(request)
	}
	for d, grain := range s.grain {
		total := 0.0
		for _, sum := range s.sums {
			total += sum.Named.V[d]
		}
		// total may be rounded itself, but not by half.
		if total > math.Ldexp(1, 52+bits.TrailingZeros64(grain)) {
			return false
		}
	}
	return !s.rough
}

// InqueueNeed sets dst to what the permit of a job books as inqueue: its minimum resources less the requests of its gated tasks, floored
// at 0; every dimension of the minimum stays named. tasks is what its tasks add up to now.
func (m *Model) InqueueNeed(job *Job, tasks *Account, dst *resource.Row) {
	job.setMinimum(dst)
	m.deductGated(tasks, dst)
}

// InqueueLack sets dst to what is booked as inqueue for a job that runs already: what it holds less than its minimum, less the requests
// of its gated tasks.
func (m *Model) InqueueLack(job *Job, tasks *Account, dst *resource.Row) {
	m.setLack(job, tasks, m.unbooked(), dst)
	m.deductGated(tasks, dst)
}

// setMinimum sets dst to the minimum resources of a job, which are zeros of cpu and memory where it names none.
func (j *Job) setMinimum(dst *resource.Row) {
	if j.MinResources.Absent() {
		dst.Clear(resource.Base)
		return
	}
	dst.CopyFrom(j.MinResources)
	dst.Has |= resource.Base
}

// Elastic sets dst to what a job holds above its minimum; without a minimum that is everything (Volcano's GetElasticResources).
func (j *Job) Elastic(tasks *Account, dst *resource.Row) {
	j.setMinimum(dst)
	dst.SetExceeded(tasks.Allocated, *dst)
}

// isAdmitted reports whether a job's minimum is booked when a session opens: it waits in the queue, or it runs with as many tasks as it
// needs and names a minimum. Succeeded tasks do not count.
func isAdmitted(job *Job, tasks *Account) bool {
	switch job.Phase {
	case PhaseInqueue:
		return true
	case PhaseRunning:
		return !job.MinResources.Absent() && tasks.Holding() >= job.MinAvailable
	default:
		return false
	}
}

// setLack sets dst to what a job holds less than its minimum (Volcano's GetInqueueResource). cpu and memory are floored at 0. A
// scalar that the job holds some of is named only where it lacks some; one that it holds none of is named even with 0, except `pods`.
func (m *Model) setLack(job *Job, tasks *Account, unbooked resource.Mask, dst *resource.Row) {
	dst.Clear(resource.Base)
	minimum, held := job.MinResources, tasks.Allocated
	alwaysNamed := ^(held.Has | m.Dims.Pods() | resource.Base)
	for left := minimum.Has &^ unbooked; left != 0; left = left.Rest() {
		d := left.First()
		if lack := minimum.V[d] - held.V[d]; lack > 0 || alwaysNamed.Has(d) {
			dst.Set(d, lack)
		}
	}
}

// unbooked returns the dimensions that no job's lack is booked of, though a permit books them: Volcano's sum passes over ephemeral storage.
func (m *Model) unbooked() resource.Mask {
	if d, ok := m.Dims.Index("ephemeral-storage"); ok {
		return resource.Mask(0).With(d)
	}
	return 0
}

// deductGated takes the requests of a job's gated tasks off dst, floored at 0; no dimension appears or disappears. Gated tasks that ask
// for nothing but `pods` take nothing off (Volcano's DeductSchGatedResources).
func (m *Model) deductGated(tasks *Account, dst *resource.Row) {
	if m.BestEffort(tasks.Gated) {
		return
	}
	for left := dst.Has & tasks.Gated.Has; left != 0; left = left.Rest() {
		d := left.First()
		dst.V[d] = max(dst.V[d]-tasks.Gated.V[d], 0)
	}
}
