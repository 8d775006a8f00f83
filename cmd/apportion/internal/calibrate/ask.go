package main

import (
	"context"
	"errors"
	"slices"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/forecast"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/odds"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// asked is one forecast with what came of it, in seconds.
type asked struct {
	job string
	at  int64
	// part is the trace, or the part of one, that the forecast is from: forecasts of one part depend on each other.
	part int
	// forecast are the starts that were forecast with the chances of levels, odds.Never for none before the horizon.
	forecast [levels]int64
	// drain and mean are the naive forecasts: the job's place in its queue times the mean time between two starts there, and the mean wait
	// of the queue.
	drain, mean float64
	// drifts: the forecast says that the load of the history changes.
	drifts bool
	// wait is how long the job waited from then on, Never if that was longer than the horizon.
	wait int64
}

// trial rehearses a trace under a policy and asks for forecasts in its later part.
type trial struct {
	snapshot *apportionv1.Snapshot
	trace    *trace.Trace
	part     int
	policy   string
	// train is when forecasts begin, until when they end, and step the time between two of them. Each looks horizon ahead.
	train, until, step, horizon int64
	runs                        int
	// alone leaves out the correction by forecasts of the past.
	alone bool
	// resource is the one in which the rehearsal measures.
	resource string

	next  int64
	asked []asked
	began map[string]int64
	// done are the jobs that ended so far, live those that are there.
	live  map[string]*trace.Job
	done  []finished
	waits map[string][]start
}

type finished struct {
	job *trace.Job
	at  int64
}

// start is a job's start with the time that it waited.
type start struct{ at, wait int64 }

// run returns the forecasts with what came of them.
func (t *trial) run(outer context.Context) ([]asked, error) {
	policy, _ := client.Preset(t.policy)
	for _, tier := range policy.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			if f := plugin.GetFair(); f != nil {
				// With turns a rehearsal states when jobs end, exactly.
				f.Turns = nil
			}
		}
	}
	entitled, _ := client.Preset("proportion")
	t.began, t.live, t.waits, t.next = map[string]int64{}, map[string]*trace.Job{}, map[string][]start{}, t.train
	// After the last forecast has come true or not, nothing is left to see.
	ctx, stop := context.WithCancel(outer)
	defer stop()
	var failed error
	actions := []cycle.Action{cycle.Enqueue, cycle.Allocate}
	if t.policy == "fair" {
		actions = cycle.All()
	}
	variant := &rehearsal.Variant{Name: t.policy, Snapshot: t.snapshot, Policy: policy, Actions: actions}
	_, err := rehearsal.Run(ctx, variant, t.trace, &rehearsal.Options{
		Every: 60, Resource: t.resource, Entitlement: entitled, Observe: func(m *rehearsal.Moment) {
			if failed == nil {
				failed = t.observe(m)
			}
			if failed != nil || m.Now > t.until+t.horizon {
				stop()
			}
		},
	})
	switch {
	case failed != nil:
		return nil, failed
	case err != nil && !(errors.Is(err, context.Canceled) && outer.Err() == nil):
		return nil, err
	}
	for i := range t.asked {
		a := &t.asked[i]
		a.wait = rehearsal.Never
		if at, began := t.began[a.job]; began && at-a.at <= t.horizon {
			a.wait = at - a.at
		}
	}
	return t.asked, nil
}

// observe notes starts and ends, and asks.
func (t *trial) observe(m *rehearsal.Moment) error {
	present := make(map[string]*trace.Job, len(m.Jobs))
	var waiting []*rehearsal.Seen
	for i := range m.Jobs {
		j := &m.Jobs[i]
		present[j.Name] = j.Job
		if j.Began == rehearsal.Never {
			waiting = append(waiting, j)
			continue
		}
		if _, known := t.began[j.Name]; !known {
			t.began[j.Name] = j.Began
			t.waits[j.Queue] = append(t.waits[j.Queue], start{j.Began, j.Began - j.Arrival})
		}
	}
	for name, job := range t.live {
		if present[name] == nil {
			t.done = append(t.done, finished{job, m.Now})
		}
	}
	t.live = present
	if m.Now < t.next || len(waiting) == 0 || m.Now > t.until {
		return nil
	}
	t.next = m.Now + t.step
	// The job that is asked about changes from one time to the next; a multiplier without common factors visits all places.
	return t.ask(m, waiting[len(t.asked)*7919%len(waiting)])
}

// ask asks for a forecast.
func (t *trial) ask(m *rehearsal.Moment, j *rehearsal.Seen) error {
	// Names order the jobs that ended at the same time, which a map does not.
	slices.SortFunc(t.done, func(l, r finished) int {
		if l.at != r.at {
			return int(l.at - r.at)
		}
		return slices.Compare([]byte(l.job.Name), []byte(r.job.Name))
	})
	q := &forecast.OddsQuestion{
		Job: j.ID, Runs: t.runs, Seed: 1, Arrivals: true, Started: map[model.JobID]int64{}, Pause: 60, Horizon: t.horizon,
	}
	for i := range m.Jobs {
		if since := m.Jobs[i].Since; since != rehearsal.Never {
			q.Started[m.Jobs[i].ID] = max(since, 1) * 1_000_000_000
		}
	}
	t.history(m, q)
	found, err := forecast.ByChance(m.Session, q)
	if err != nil || found == nil {
		return err
	}
	a := asked{job: j.Name, at: m.Now, part: t.part, drain: t.drained(m, j), mean: t.meanWait(j.Queue)}
	a.drifts = found.Drift != odds.Drift{}
	if t.alone && found.Raw != nil {
		found.Starts = found.Raw
	}
	for i := range a.forecast {
		a.forecast[i] = found.Percentile((i + 1) * 100 / (levels + 1))
	}
	t.asked = append(t.asked, a)
	return nil
}

// history states the jobs that have ended.
func (t *trial) history(m *rehearsal.Moment, q *forecast.OddsQuestion) {
	v := m.Session.View()
	for i := range t.done {
		job := t.done[i].job
		queue, _ := v.Queue(job.Queue)
		row := resource.NewAccount(v.Dims.Len())
		for _, a := range job.Groups[0].Request {
			if d, ok := v.Dims.Index(a.Resource); ok {
				row.Set(d, a.Amount)
			}
		}
		q.Kinds = append(q.Kinds, forecast.PastKind{
			Queue: queue, Owner: job.Owner, Priority: job.Priority, Tasks: job.Tasks(), Min: job.Min, Request: row,
		})
		// As logs state it: with the time in which the job was evicted.
		began := t.began[job.Name]
		q.Past = append(q.Past, forecast.PastJob{
			Kind: i, Arrival: job.Arrival - m.Now, Seconds: max(t.done[i].at-began, 1), Wait: began - job.Arrival,
		})
	}
}

// drained is a job's place in its queue times the mean time between two starts there, of the last week.
func (t *trial) drained(m *rehearsal.Moment, j *rehearsal.Seen) float64 {
	v := m.Session.View()
	place := 0
	for _, id := range m.Session.Waiting() {
		if v.Jobs.At(id).Queue != v.Jobs.At(j.ID).Queue {
			continue
		}
		place++
		if id == j.ID {
			break
		}
	}
	const recent = 7 * 24 * 3600
	n, from := 0, max(m.Now-recent, 0)
	for _, s := range t.waits[j.Queue] {
		if s.at >= from {
			n++
		}
	}
	return float64(place) * float64(m.Now-from) / float64(max(n, 1))
}

// meanWait is the mean wait of a queue's jobs so far.
func (t *trial) meanWait(queue string) float64 {
	sum := 0.0
	for _, s := range t.waits[queue] {
		sum += float64(s.wait)
	}
	return sum / float64(max(len(t.waits[queue]), 1))
}
