package volcano

import (
	"time"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
)

// run holds the times of a pod, in Unix nanoseconds; 0: not known.
type run struct {
	// limit is spec.activeDeadlineSeconds, after which the kubelet ends the pod. The other fields are those of a pod that holds resources.
	limit time.Duration
	holds bool
	// started is status.startTime; deadline is limit later.
	started, deadline int64
}

// runOf reads when a pod runs.
func (r *reader) runOf(status apportionv1.TaskStatus, spec, podStatus *objects.Value) run {
	u := run{holds: status == apportionv1.TaskStatus_TASK_STATUS_RUNNING || status == apportionv1.TaskStatus_TASK_STATUS_BOUND}
	if seconds := r.WholeAt(spec.Field("activeDeadlineSeconds")); seconds > 0 {
		u.limit = time.Duration(seconds) * time.Second
	}
	if !u.holds {
		return u
	}
	if u.started = r.MomentAt(podStatus.Field("startTime")); u.started != 0 && u.limit != 0 {
		u.deadline = u.started + int64(u.limit)
	}
	return u
}

// ending collects what determines the end of a job.
type ending struct {
	// at is the end and runtime the runtime that the annotations state; 0: none.
	at      int64
	runtime time.Duration
	// started is the start of the first of its pods, deadline the time when the last one must have ended; 0: unknown.
	started, deadline int64
	// open: some pod has no deadline.
	open bool
	// limit is the greatest limit of its pods, unlimited: some pod has none.
	limit     time.Duration
	unlimited bool
}

// endingOf reads the annotations of a PodGroup.
func (r *reader) endingOf(m objects.Metadata) ending {
	var e ending
	if v := m.Annotations.Field(ExpectedEndAnnotation); v != nil {
		at, known := momentOf(r.TextAt(v))
		if !known {
			r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v,
				"not a time like 2006-01-02T15:04:05Z, so the job's end is not known%s", objects.Shown(v))
		} else {
			e.at = at
		}
	}
	if v := m.Annotations.Field(ExpectedRuntimeAnnotation); v != nil {
		runtime, err := duration.Parse(r.TextAt(v))
		if err != nil || runtime <= 0 {
			r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v,
				"not a duration above 0 like 2h30m, so the job's end is not known%s", objects.Shown(v))
		} else {
			e.runtime = runtime
		}
	}
	return e
}

// add takes a pod of the job into account.
func (e *ending) add(u run) {
	e.limit = max(e.limit, u.limit)
	e.unlimited = e.unlimited || u.limit == 0
	if !u.holds {
		return
	}
	if u.started != 0 && (e.started == 0 || u.started < e.started) {
		e.started = u.started
	}
	e.deadline = max(e.deadline, u.deadline)
	e.open = e.open || u.deadline == 0
}

// set sets the job's end: the estimate, or the deadline of all its pods if it is earlier or there is no estimate. Its runtime is found
// likewise.
func (e *ending) set(job *apportionv1.Job) {
	job.ExpectedRuntime = int64(e.runtime)
	if e.limit != 0 && !e.unlimited && (e.runtime == 0 || e.limit < e.runtime) {
		job.ExpectedRuntime = int64(e.limit)
	}
	if job.ExpectedEnd = e.at; e.at == 0 && e.runtime > 0 && e.started != 0 {
		job.ExpectedEnd = e.started + int64(e.runtime)
	}
	if e.deadline != 0 && !e.open && (job.ExpectedEnd == 0 || e.deadline < job.ExpectedEnd) {
		job.ExpectedEnd, job.EndIsDeadline = e.deadline, true
	}
}
