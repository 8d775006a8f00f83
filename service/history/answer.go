package history

import (
	"cmp"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/internal/text"
)

// Audience says what a caller may see. Its functions get the name of a queue.
type Audience struct {
	// Owns reports whether it may see the queue and its jobs; nil: it may see everything.
	Owns func(queue string) bool
	// Shows reports whether it may know the name of a queue. It is not nil if Owns is not.
	Shows func(queue string) bool
}

func (a *Audience) owns(queue string) bool { return a.Owns == nil || a.Owns(queue) }

func (a *Audience) shows(queue string) bool { return a.Owns == nil || a.Shows(queue) }

// Answer answers a request, as far as an audience may see it.
func (h *History) Answer(r *apportionv1alpha1.GetHistoryRequest, audience *Audience) *apportionv1alpha1.GetHistoryResponse {
	h.mutex.RLock()
	defer h.mutex.RUnlock()
	out := &apportionv1alpha1.GetHistoryResponse{
		Begins: h.state.Begins, Started: h.started, Latest: h.state.Latest, Versions: h.state.Versions,
	}
	for _, gap := range h.state.Gaps {
		out.Gaps = append(out.Gaps, &apportionv1alpha1.HistoryGap{StartTime: gap[0], EndTime: gap[1]})
	}
	if audience.Owns == nil {
		out.UnrecordedJobs = uint32(h.unrecorded)
	}
	for _, name := range r.GetJobs() {
		id := name
		if h.jobs[id] == nil {
			id = h.names[name]
		}
		if job := h.jobs[id]; job != nil && audience.owns(job.Queue) {
			out.Jobs = append(out.Jobs, h.job(id, job, job.Intervals, audience))
		}
	}
	if r.GetWaiting() {
		out.Jobs = append(out.Jobs, h.waiting(audience)...)
	}
	for _, name := range r.GetQueues() {
		if q := h.queues[name]; q != nil && audience.owns(name) {
			out.Queues = append(out.Queues, h.queue(name, q))
		}
	}
	return out
}

// waiting returns the jobs that wait, with their last intervals, the longest wait first.
func (h *History) waiting(audience *Audience) []*apportionv1alpha1.JobHistory {
	var list []*apportionv1alpha1.JobHistory
	for id, job := range h.jobs {
		if job.Ended == 0 && audience.owns(job.Queue) {
			list = append(list, h.job(id, job, job.Intervals[len(job.Intervals)-1:], audience))
		}
	}
	slices.SortFunc(list, func(a, b *apportionv1alpha1.JobHistory) int {
		return cmp.Or(cmp.Compare(a.GetSince(), b.GetSince()), cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetUid(), b.GetUid()))
	})
	return list
}

// job returns a job with some of its intervals, which end with the last one.
func (h *History) job(id string, r *record, intervals []interval, audience *Audience) *apportionv1alpha1.JobHistory {
	out := &apportionv1alpha1.JobHistory{
		Uid: id, Name: r.Name, Queue: r.Queue, State: apportionv1alpha1.WaitState_WAIT_STATE_WAITS, Since: r.since(), Ended: r.Ended,
	}
	switch {
	case r.Gone:
		out.State = apportionv1alpha1.WaitState_WAIT_STATE_GONE
	case r.Ended != 0:
		out.State = apportionv1alpha1.WaitState_WAIT_STATE_ENDED
	}
	for i := range intervals {
		one := intervals[i]
		lasts := r.Ended == 0 && i == len(intervals)-1
		if lasts {
			one.Until, one.Versions = h.state.Latest, uint32(h.state.Versions-r.Before)
		}
		cause := one.Cause
		if !audience.shows(cause.Queue) {
			cause.Queue = ""
		}
		out.Intervals = append(out.Intervals, &apportionv1alpha1.CauseInterval{
			Verdict: cause.Verdict, Check: cause.Check, Code: cause.Code, Queue: cause.Queue, Resource: cause.Dimension,
			StartTime: one.From, EndTime: one.Until, Lasts: lasts, Versions: one.Versions, Merged: one.Merged, Text: cause.text(),
		})
	}
	return out
}

// text is the cause as the end of a sentence.
func (c *Cause) text() string {
	group := &apportionv1.PendingGroup{Verdict: c.Verdict, Check: c.Check, Jobs: []uint32{0}}
	if c.Code != apportionv1.CauseCode_CAUSE_CODE_UNSPECIFIED {
		group.Cause = &apportionv1.Cause{Code: c.Code}
		if c.Queue != "" {
			group.Cause.Queue = new(uint32(0))
		}
		if c.Dimension != "" {
			group.Cause.Dimensions = []uint32{0}
		}
	}
	return text.Group(text.Names{Dimensions: []string{c.Dimension}, Queues: []string{c.Queue}}, group, nil)
}

func (h *History) queue(name string, q *series) *apportionv1alpha1.QueueHistory {
	out := &apportionv1alpha1.QueueHistory{
		Queue: name, Seen: q.Seen, WaitingSince: q.WaitingSince, OverusedSince: q.OverusedSince,
		Dimensions: slices.Clone(h.state.Dimensions),
	}
	for i := range q.samples {
		s := &q.samples[i]
		one := &apportionv1alpha1.QueueSample{StartTime: s.From, EndTime: s.Until, Versions: s.Versions, WaitingJobs: s.Waiting}
		for _, a := range s.Amounts {
			one.Amounts = append(one.Amounts, &apportionv1alpha1.QueueAmount{
				Dimension: uint32(a.Dimension), Deserved: a.Deserved, Allocated: a.Allocated, Request: a.Request,
			})
		}
		out.Samples = append(out.Samples, one)
	}
	return out
}
