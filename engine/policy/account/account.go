// Package account sums the jobs of each queue when a session opens, as both proportion and capacity do in Volcano.
package account

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Queues holds the sums of every queue over its own jobs, at the queue's position: see model.QueueSum.
type Queues struct {
	// Allocated and Inqueue are the caller's own.
	Allocated, Inqueue []resource.Row
	// Request and Elastic belong to the model and are read-only.
	Request, Elastic []resource.Row
	// Jobs counts the jobs, regardless of phase and size.
	Jobs []int32
}

// Open returns the sums over the jobs of a fresh view.
func Open(v *policy.View) (*Queues, error) {
	n, width := len(v.Queues), v.Dims.Len()
	own, read := resource.NewTable(2*n, width), make([]resource.Row, 2*n)
	qs := &Queues{
		Allocated: own[:n:n], Inqueue: own[n:], Request: read[:n:n], Elastic: read[n:], Jobs: make([]int32, n),
	}
	for q := range n {
		if v.Stopped(q) {
			return nil, policy.ErrStopped
		}
		sum := v.QueueSumOf(model.QueueID(q))
		qs.Allocated[q].CopyFrom(sum.Allocated)
		qs.Inqueue[q].CopyFrom(sum.Inqueue)
		qs.Request[q], qs.Elastic[q], qs.Jobs[q] = sum.Request, sum.Elastic, sum.Jobs
	}
	return qs, nil
}

// InqueueNeed sets dst to what the permit of a job books as inqueue; see model.Model.InqueueNeed.
func InqueueNeed(v *policy.View, j model.JobID, dst *resource.Row) {
	v.InqueueNeed(v.Jobs.At(j), v.Account(j), dst)
}

// InqueueLack sets dst to what is booked as inqueue for a job that runs already; see model.Model.InqueueLack.
func InqueueLack(v *policy.View, j model.JobID, dst *resource.Row) {
	v.InqueueLack(v.Jobs.At(j), v.Account(j), dst)
}

// Elastic sets dst to what a job holds above its minimum; see model.Job.Elastic.
func Elastic(v *policy.View, j model.JobID, dst *resource.Row) {
	v.Jobs.At(j).Elastic(v.Account(j), dst)
}

// Changing holds the rows of those queues for which they differ from the model's, which are few in most sessions. The zero value holds
// none.
type Changing struct{ rows []resource.Row }

// ChangingOf holds a row for each queue, which the caller changes.
func ChangingOf(rows []resource.Row) Changing { return Changing{rows} }

// At returns the row of a queue; otherwise is the model's row.
func (c *Changing) At(q model.QueueID, otherwise resource.Row) resource.Row {
	if c.rows == nil || c.rows[q].Absent() {
		return otherwise
	}
	return c.rows[q]
}

// Change returns the row of a queue for writing, and saves it to the journal of the view.
func (c *Changing) Change(v *policy.View, q model.QueueID, otherwise resource.Row) *resource.Row {
	if c.rows == nil {
		c.rows = make([]resource.Row, len(v.Queues))
	}
	row := &c.rows[q]
	if row.Absent() {
		*row = otherwise.Clone()
	}
	v.Journal.Row(row)
	return row
}

// ResolveCapability sets dst to a queue's effective capability in both plugins and reports whether it limits anything. If it names any
// dimension, cpu and memory are unlimited where they are 0 or not named, while a scalar of 0 is 0; if it names none, dst is zeros and there
// is no limit.
func ResolveCapability(written resource.Row, dst *resource.Row) bool {
	if written.Has == 0 {
		dst.Clear(resource.Base)
		return false
	}
	dst.CopyFrom(written)
	dst.Has |= resource.Base
	for _, d := range [...]int{resource.CPU, resource.Memory} {
		if dst.V[d] <= 0 {
			dst.V[d] = math.Inf(1)
		}
	}
	return true
}

// Fits reports whether minimum + allocated + inqueue - elastic stays within limit, strictly and without tolerance, in every dimension that
// the minimum asks for; what limit does not name is 0, and `pods` does not count. why receives a reason for each dimension that does not
// fit, with the current amount in Have and the minimum in Need.
func Fits(
	plugin string, q model.QueueID, minimum, allocated, inqueue, elastic, limit resource.Row, pods resource.Mask, why *policy.Reasons,
) bool {
	fits := true
	for m := minimum.Positive() &^ pods; m != 0; m = m.Rest() {
		d := m.First()
		if minimum.V[d]+allocated.V[d]+inqueue.V[d]-elastic.V[d] <= limit.V[d] {
			continue
		}
		fits = false
		why.Add(policy.Reason{
			Plugin: plugin, Code: policy.AboveRealCapability, Queue: q, Dimension: d,
			Have: allocated.V[d] + inqueue.V[d] - elastic.V[d], Need: minimum.V[d], Limit: limit.V[d],
		})
	}
	return fits
}
