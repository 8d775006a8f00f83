package model

import (
	"math"
	"math/bits"
	"slices"

	"github.com/apportion/apportion/engine/resource"
)

// put books n tasks of one status.
func (a *Account) put(request resource.Row, status Status, gate Gate, group int, n int32, bestEffort bool) {
	a.Tasks[status] += n
	a.GroupTasks[group][status] += n
	addTimes(&a.Total, request, n)
	a.hold(request, status, gate, group, n, bestEffort)
}

func (a *Account) hold(request resource.Row, status Status, gate Gate, group int, n int32, bestEffort bool) {
	switch {
	case status.Holds():
		addTimes(&a.Allocated, request, n)
	case status == Pending:
		addTimes(&a.Pending, request, n)
		if gate == GateOther {
			addTimes(&a.Gated, request, n)
		}
		if bestEffort {
			a.PendingBestEffort += n
			a.GroupPendingBestEffort[group] += n
		}
	}
}

// Move rebooks one task from one status to another. It subtracts and adds amounts, as Volcano's UpdateTaskStatus does; dimensions stay
// present.
func (a *Account) Move(request resource.Row, from, to Status, gate Gate, group int, bestEffort bool) {
	a.Tasks[from]--
	a.GroupTasks[group][from]--
	switch {
	case from.Holds():
		a.Allocated.SubWithin(request)
	case from == Pending:
		a.Pending.SubWithin(request)
		if gate == GateOther {
			a.Gated.SubWithin(request)
		}
		if bestEffort {
			a.PendingBestEffort--
			a.GroupPendingBestEffort[group]--
		}
	}
	a.Tasks[to]++
	a.GroupTasks[group][to]++
	a.hold(request, to, gate, group, 1, bestEffort)
}

// Clone returns a copy that shares nothing with a.
func (a *Account) Clone() *Account {
	b := *a
	b.Allocated, b.Pending, b.Gated, b.Total = a.Allocated.Clone(), a.Pending.Clone(), a.Gated.Clone(), a.Total.Clone()
	b.GroupTasks, b.GroupPendingBestEffort = slices.Clone(a.GroupTasks), slices.Clone(a.GroupPendingBestEffort)
	return &b
}

func addTimes(sum *resource.Row, request resource.Row, n int32) {
	if n == 1 {
		sum.Add(request)
		return
	}
	sum.AddTimes(request, float64(n))
}

// QueueSum contains the sums over the jobs of a queue when a session opens, as computed by both proportion and capacity in Volcano. All
// sums are formed in the order of the jobs' uids. A row names cpu and memory; it names a scalar if and only if some job names that scalar,
// which affects the policies' comparisons. Callers must not modify it.
type QueueSum struct {
	// Allocated sums the tasks that hold resources. Request adds those that are pending, and Gated sums those of them that are held by a
	// gate other than the scheduler's own.
	Allocated, Request, Gated resource.Row
	// Inqueue sums the parts of their minimum that admitted jobs lack.
	Inqueue resource.Row
	// Elastic sums the resources that jobs hold above their minimum.
	Elastic resource.Row
	// Named sums the requests of all tasks and the minimum resources of all jobs. It also names the requests of groups without tasks.
	Named resource.Row
	// Jobs counts the jobs of any phase and size.
	Jobs int32
	// Moving counts the jobs with tasks that are pipelined or releasing.
	Moving int32
	// named counts, for each row and dimension, the jobs that bring the dimension in.
	named []int32
}

// The rows of a QueueSum.
const (
	rowAllocated = iota
	rowRequest
	rowGated
	rowInqueue
	rowElastic
	rowNamed
	rowsOfSum
)

// QueueSumOf returns the sums over the jobs of a queue.
func (m *Model) QueueSumOf(q QueueID) *QueueSum { return m.sums[q] }

// sumStore allocates the sums of a model.
type sumStore struct {
	sums  []QueueSum
	of    []*QueueSum
	cells []float64
	named []int32
}

// open returns empty sums of n queues.
func (s *sumStore) open(n, width int) []*QueueSum {
	size := rowsOfSum * width
	s.sums, s.of, s.cells, s.named = zeroed(s.sums, n), zeroed(s.of, n), zeroed(s.cells, n*size), zeroed(s.named, n*size)
	for q := range s.sums {
		s.sums[q].open(s.cells[q*size:(q+1)*size], s.named[q*size:(q+1)*size])
		s.of[q] = &s.sums[q]
	}
	return s.of
}

// open makes the sums empty, in memory that holds zeros.
func (s *QueueSum) open(cells []float64, named []int32) {
	*s = QueueSum{named: named}
	s.lay(cells)
	for _, row := range s.rows() {
		row.Has = resource.Base
	}
}

// lay makes cells the memory of the rows.
func (s *QueueSum) lay(cells []float64) {
	width := len(cells) / rowsOfSum
	for i, row := range s.rows() {
		row.V = cells[i*width : (i+1)*width : (i+1)*width]
	}
}

func (s *QueueSum) rows() [rowsOfSum]*resource.Row {
	return [...]*resource.Row{&s.Allocated, &s.Request, &s.Gated, &s.Inqueue, &s.Elastic, &s.Named}
}

// newSum returns a sum of no jobs.
func newSum(width int) *QueueSum {
	s := &QueueSum{}
	s.open(make([]float64, rowsOfSum*width), make([]int32, rowsOfSum*width))
	return s
}

// summing adds jobs to the sums of queues.
type summing struct {
	*Model
	unbooked resource.Mask
	part     resource.Row
	// noted is the grain of the minima added and of the requests.
	noted grain
}

func (m *Model) summing() *summing {
	width := m.Dims.Len()
	noted := grain{bits: make([]uint64, width), total: make([]float64, width)}
	return &summing{Model: m, unbooked: m.unbooked(), part: resource.NewAccount(width), noted: noted}
}

// fill adds the jobs of a queue to an empty sum.
func (s *summing) fill(q QueueID, sum *QueueSum) {
	for _, j := range s.QueueJobs[q] {
		s.add(sum, s.Jobs.At(j), s.Accounts.At(j), 1)
	}
}

// add adds a job n times: n is 1, or -1 to subtract it, which is correct only if all sums are exact.
func (s *summing) add(sum *QueueSum, job *Job, tasks *Account, n int32) {
	sum.Jobs += n
	sum.put(rowNamed, &sum.Named, tasks.Total, n)
	if !job.MinResources.Absent() {
		sum.put(rowNamed, &sum.Named, job.MinResources, n)
		s.noted.include(job.MinResources)
	}
	sum.put(rowNamed, &sum.Named, resource.Row{Has: s.requested(job)}, n)
	s.addHeld(sum, job, tasks, n)
}

// requested returns the dimensions that the groups of a job request.
func (s *summing) requested(job *Job) resource.Mask {
	has := resource.Mask(0)
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		has |= s.Requests[s.Groups.At(g).Request].Has
	}
	return has
}

// addHeld is add for what depends on the statuses of the tasks, of a job that was added.
func (s *summing) addHeld(sum *QueueSum, job *Job, tasks *Account, n int32) {
	if tasks.Tasks[Pipelined]+tasks.Tasks[Releasing] > 0 {
		sum.Moving += n
	}
	// Rows without tasks are zeros that name cpu and memory; adding them has no effect.
	if tasks.Holding() > 0 {
		sum.put(rowAllocated, &sum.Allocated, tasks.Allocated, n)
		sum.put(rowRequest, &sum.Request, tasks.Allocated, n)
		job.Elastic(tasks, &s.part)
		sum.put(rowElastic, &sum.Elastic, s.part, n)
	}
	if tasks.Tasks[Pending] > 0 {
		sum.put(rowRequest, &sum.Request, tasks.Pending, n)
		sum.put(rowGated, &sum.Gated, tasks.Gated, n)
	}
	if isAdmitted(job, tasks) {
		s.setLack(job, tasks, s.unbooked, &s.part)
		s.deductGated(tasks, &s.part)
		sum.put(rowInqueue, &sum.Inqueue, s.part, n)
	}
}

// put adds a row n times to the i-th of the sums.
func (s *QueueSum) put(i int, sum *resource.Row, row resource.Row, n int32) {
	to, times := sum.V[:len(row.V)], float64(n)
	for d, x := range row.V {
		to[d] += float64(x * times)
	}
	for left := row.Has &^ resource.Base; left != 0; left = left.Rest() {
		d := left.First()
		named := &s.named[i*len(sum.V)+d]
		if *named += n; *named > 0 {
			sum.Has = sum.Has.With(d)
		} else {
			sum.Has = sum.Has.Without(d)
		}
	}
}

// grain determines whether sums of a model's amounts are exact: a common divisor of the amounts, possibly too small, and their totals.
type grain struct {
	// bits is, for each dimension, the union of the bits of all amounts.
	bits []uint64
	// total is, for each dimension, the total over all queues, with a rounding error below a half of it.
	total []float64
	// rough is true if some amount is not an integer.
	rough bool
}

// include adds the amounts of a row to bits and rough.
func (g *grain) include(row resource.Row) {
	for d, x := range row.V {
		whole := int64(x)
		g.rough = g.rough || float64(whole) != x
		g.bits[d] |= uint64(whole)
	}
}

// add adds the sum of a queue to the total.
func (g *grain) add(sum *QueueSum) {
	for d, x := range sum.Named.V {
		g.total[d] += x
	}
}

// exact reports whether sums up to total do not depend on the order of summation: all amounts are multiples of a power of two, and their
// total is less than 2^53 times that power, so that no sum or difference of them is rounded.
func (g *grain) exact(total []float64) bool {
	if g.rough {
		return false
	}
	for d, set := range g.bits {
		if !(total[d] <= math.Ldexp(1, 52+bits.TrailingZeros64(set))) {
			return false
		}
	}
	return true
}

// InqueueNeed sets dst to the amount that a permit of a job books as inqueue: its minimum resources minus the requests of its gated tasks,
// floored at 0; every dimension of the minimum stays named. tasks is the account of its tasks now.
func (m *Model) InqueueNeed(job *Job, tasks *Account, dst *resource.Row) {
	job.setMinimum(dst)
	m.deductGated(tasks, dst)
}

// InqueueLack sets dst to the amount booked as inqueue for a running job: the part of its minimum that it does not hold, minus the requests
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

// Elastic sets dst to the resources that a job holds above its minimum; without a minimum these are all (Volcano's GetElasticResources).
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

// setLack sets dst to the part of its minimum that a job does not hold (Volcano's GetInqueueResource). cpu and memory are floored at 0. A
// scalar that the job holds some of is named only where it lacks some; a dimension of which it holds nothing is present with 0, except
// `pods`.
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

// unbooked returns the dimensions that a permit books but a job's lack does not: Volcano's sum skips ephemeral storage.
func (m *Model) unbooked() resource.Mask {
	if d, ok := m.Dims.Index("ephemeral-storage"); ok {
		return resource.Mask(0).With(d)
	}
	return 0
}

// deductGated subtracts the requests of a job's gated tasks from dst, floored at 0; no dimension appears or disappears. Gated tasks that
// request only `pods` are ignored (Volcano's DeductSchGatedResources).
func (m *Model) deductGated(tasks *Account, dst *resource.Row) {
	if m.BestEffort(tasks.Gated) {
		return
	}
	for left := dst.Has & tasks.Gated.Has; left != 0; left = left.Rest() {
		d := left.First()
		dst.V[d] = max(dst.V[d]-tasks.Gated.V[d], 0)
	}
}
