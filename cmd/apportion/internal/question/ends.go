package question

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/lookup"
)

// EndFlags set the expected ends of running jobs.
type EndFlags struct {
	ends, runtimes []string
}

// Register adds the flags.
func (f *EndFlags) Register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.ends, "ends", nil,
		"expect a running job to end then: `JOB=TIME`, as 2006-01-02T15:04:05Z or 2h30m from now (repeatable)")
	flags.StringArrayVar(&f.runtimes, "runtime", nil,
		"expect the jobs of a queue of which nothing else is known to run so long from their start: `QUEUE=TIME`, as 2h30m (repeatable)")
}

// Set writes the expected ends into the jobs of an input. Durations count from the time of the snapshot. If that is not set, and is needed
// for a duration or to find the jobs of a live cluster that should have ended, it is the current time.
func (f *EndFlags) Set(loaded *Loaded, live bool) error {
	known := len(f.ends)+len(f.runtimes) > 0
	if live {
		for _, job := range loaded.Lookup.GetJobs() {
			known = known || job.GetExpectedEnd() != 0
		}
	}
	if known && loaded.Snapshot.GetAsOf() == 0 {
		loaded.Snapshot.AsOf = time.Now().UnixNano()
	}
	if err := f.setRuntimes(loaded); err != nil {
		return err
	}
	for _, written := range f.ends {
		name, text, ok := strings.Cut(written, "=")
		if !ok {
			return fmt.Errorf("--ends: JOB=TIME is expected, got %q", written)
		}
		index, err := loaded.Lookup.JobOrTask(name)
		if err != nil {
			return fmt.Errorf("--ends: %w", err)
		}
		at, err := time.Parse(time.RFC3339, text)
		if after, notDuration := duration.Parse(text); notDuration == nil {
			at, err = time.Unix(0, loaded.Snapshot.GetAsOf()).Add(after), nil
		}
		if year := at.UTC().Year(); err != nil || year < 1971 || year > 2261 {
			return fmt.Errorf("--ends: a time such as 2006-01-02T15:04:05Z or a duration such as 2h30m is expected, got %q", text)
		}
		job := loaded.Lookup.GetJobs()[index]
		if !runs(job) {
			return fmt.Errorf("--ends: %s does not run", lookup.JobName(job))
		}
		job.ExpectedEnd, job.EndIsDeadline = at.UnixNano(), false
	}
	return nil
}

// runs reports whether a task of a job has a place.
func runs(job *apportionv1.Job) bool {
	placed := func(s apportionv1.TaskStatus) bool { return s > apportionv1.TaskStatus_TASK_STATUS_PENDING }
	return slices.ContainsFunc(job.GetGroups(), func(g *apportionv1.TaskGroup) bool {
		return slices.ContainsFunc(g.GetTasks(), func(t *apportionv1.Task) bool { return placed(t.GetStatus()) }) ||
			slices.ContainsFunc(g.GetCounts(), func(c *apportionv1.TaskCount) bool { return placed(c.GetStatus()) })
	})
}

// setRuntimes sets the expected ends of the jobs of queues to a time after their start.
func (f *EndFlags) setRuntimes(loaded *Loaded) error {
	for _, written := range f.runtimes {
		name, text, ok := strings.Cut(written, "=")
		if !ok {
			return fmt.Errorf("--runtime: QUEUE=TIME is expected, got %q", written)
		}
		if _, err := loaded.Lookup.Queue(name); err != nil {
			return fmt.Errorf("--runtime: %w", err)
		}
		runtime, err := duration.Parse(text)
		if err != nil || runtime <= 0 {
			return fmt.Errorf("--runtime: a duration above 0 such as 2h30m is expected, got %q", text)
		}
		for i, job := range loaded.Lookup.GetJobs() {
			if started := loaded.Started(i, job); job.GetQueue() == name && job.GetExpectedEnd() == 0 && started != 0 {
				if int64(runtime) > math.MaxInt64-started {
					return fmt.Errorf("--runtime: %s after the start of a job is beyond the year 2261", written)
				}
				job.ExpectedEnd = started + int64(runtime)
			}
		}
	}
	return nil
}

// Started returns when the first pod of a running job started or, if only its creation is known, was created; 0: the job does not run.
func (in *Loaded) Started(index int, job *apportionv1.Job) int64 {
	if in.Cluster != nil && index < len(in.Cluster.Started) && in.Cluster.Started[index] != 0 {
		return in.Cluster.Started[index]
	}
	first := int64(0)
	for _, group := range job.GetGroups() {
		for _, task := range group.GetTasks() {
			created := task.GetCreateTime()
			if task.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_RUNNING && created != 0 && (first == 0 || created < first) {
				first = created
			}
		}
	}
	return first
}
