// Package account adds up what the jobs of a session mean to their queues, the way Volcano's proportion and capacity both do when a
// session opens.
package account

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Queues holds the sums of every queue over its own jobs, at the queue's position. Every row names cpu and memory; it names a scalar if
// and only if some job brings that scalar in, which policies' comparisons depend on.
type Queues struct {
	// Allocated sums the tasks that hold resources; Request adds those that are pending.
	Allocated, Request []resource.Row
	// Inqueue sums what admitted jobs still lack of their minimum.
	Inqueue []resource.Row
	// Elastic sums what jobs hold above their minimum.
	Elastic []resource.Row
	// Jobs counts the jobs present, of whatever phase and size.
	Jobs []int32
}

// Open returns the sums over the jobs that are present, formed in the order of their uids.
func Open(v *policy.View) (*Queues, error) {
	n, width := len(v.Queues), v.Dims.Len()
	rows := resource.NewAccounts(4*n, width)
	qs := &Queues{
		Allocated: rows[:n:n], Request: rows[n : 2*n : 2*n], Inqueue: rows[2*n : 3*n : 3*n], Elastic: rows[3*n:],
		Jobs: make([]int32, n),
	}
	unbooked := unbookedAtOpen(v)
	part := resource.NewAccount(width)
	for i, j := range v.Present() {
		if v.Stopped(i) {
			return nil, policy.ErrStopped
		}
		q, tasks := v.Jobs.At(j).Queue, v.Account(j)
		qs.Jobs[q]++
		qs.Allocated[q].Add(tasks.Allocated)
		qs.Request[q].Add(tasks.Allocated)
		qs.Request[q].Add(tasks.Pending)
		Elastic(v, j, &part)
		qs.Elastic[q].Add(part)
		if admitted(v, j) {
			setLack(v, j, unbooked, &part)
			deductGated(v, j, &part)
			qs.Inqueue[q].Add(part)
		}
	}
	return qs, nil
}

// InqueueNeed sets dst to what the permit of a job books as inqueue: its minimum resources less the requests of its gated tasks, floored
// at 0; every dimension of the minimum stays named.
func InqueueNeed(v *policy.View, j model.JobID, dst *resource.Row) {
	setMinimum(v, j, dst)
	deductGated(v, j, dst)
}

// InqueueLack sets dst to what is booked as inqueue for a job that runs already: what it holds less than its minimum, less the requests
// of its gated tasks.
func InqueueLack(v *policy.View, j model.JobID, dst *resource.Row) {
	setLack(v, j, unbookedAtOpen(v), dst)
	deductGated(v, j, dst)
}

// setMinimum sets dst to the minimum resources of a job, which are zeros of cpu and memory where it names none.
func setMinimum(v *policy.View, j model.JobID, dst *resource.Row) {
	if minimum := v.Jobs.At(j).MinResources; minimum.Absent() {
		dst.Clear(resource.Base)
	} else {
		dst.CopyFrom(minimum)
		dst.Has |= resource.Base
	}
}

// Elastic sets dst to what a job holds above its minimum; without a minimum that is everything (Volcano's GetElasticResources).
func Elastic(v *policy.View, j model.JobID, dst *resource.Row) {
	setMinimum(v, j, dst)
	dst.SetExceeded(v.Account(j).Allocated, *dst)
}

// admitted reports whether a job's minimum is booked when a session opens: it waits in the queue, or it runs with as many tasks as it
// needs and names a minimum. Succeeded tasks do not count.
func admitted(v *policy.View, j model.JobID) bool {
	job := v.Jobs.At(j)
	switch v.Phase(j) {
	case model.PhaseInqueue:
		return true
	case model.PhaseRunning:
		return !job.MinResources.Absent() && v.Account(j).Holding() >= job.MinAvailable
	default:
		return false
	}
}

// setLack sets dst to what a job holds less than its minimum (Volcano's GetInqueueResource). cpu and memory are floored at 0. A
// scalar that the job holds some of is named only where it lacks some; one that it holds none of is named even with 0, except `pods`.
func setLack(v *policy.View, j model.JobID, unbooked resource.Mask, dst *resource.Row) {
	dst.Clear(resource.Base)
	minimum, held := v.Jobs.At(j).MinResources, v.Account(j).Allocated
	alwaysNamed := ^(held.Has | v.Dims.Pods() | resource.Base)
	for m := minimum.Has &^ unbooked; m != 0; m = m.Rest() {
		d := m.First()
		if lack := minimum.V[d] - held.V[d]; lack > 0 || alwaysNamed.Has(d) {
			dst.Set(d, lack)
		}
	}
}

// unbookedAtOpen returns the dimensions that no job's lack is booked of, though a permit books them: Volcano's sum passes over
// ephemeral storage.
func unbookedAtOpen(v *policy.View) resource.Mask {
	if d, ok := v.Dims.Index("ephemeral-storage"); ok {
		return resource.Mask(0).With(d)
	}
	return 0
}

// deductGated takes the requests of a job's gated tasks off dst, floored at 0; no dimension appears or disappears. Gated tasks that ask
// for nothing but `pods` take nothing off (Volcano's DeductSchGatedResources).
func deductGated(v *policy.View, j model.JobID, dst *resource.Row) {
	gated := v.Account(j).Gated
	if v.BestEffort(gated) {
		return
	}
	for m := dst.Has & gated.Has; m != 0; m = m.Rest() {
		d := m.First()
		dst.V[d] = max(dst.V[d]-gated.V[d], 0)
	}
}
