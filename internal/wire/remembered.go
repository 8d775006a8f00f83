package wire

import (
	"math"

	"github.com/apportion/apportion/engine/forecast"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// RememberedJob is a past job that a server knows itself. Times are in Unix seconds.
type RememberedJob struct {
	Queue, Owner          string
	Priority              int32
	Tasks, Min            int
	Request               map[string]float64
	Arrived, Began, Ended int64
	// Runs says that it had not ended by Ended.
	Runs bool
}

// Remember says where the past jobs of a snapshot are found by its name. The function returns nil and no error if none are known.
func (s *Session) Remember(past func(name string) ([]RememberedJob, error)) { s.past = past }

// remember reads the past jobs that the server knows.
func (s *Session) remember(q *apportionv1.ForecastStep, question *forecast.OddsQuestion, faults *model.Error) {
	v := s.engine.View()
	name := q.GetRemembered()
	switch {
	case name == "" || faults.Total > 0:
		return
	case len(q.GetPast().GetKindIndices()) > 0:
		faults.Add("remembered", "past jobs are given in past already")
		return
	case s.past == nil:
		faults.Add("remembered", "past jobs are known to a server alone, which follows the cluster with a ledger")
		return
	case v.AsOf == 0:
		faults.Add("remembered", "the snapshot does not state its time, as_of")
		return
	}
	jobs, err := s.past(name)
	if err != nil {
		faults.Add("remembered", "%s", err)
		return
	}
	const second = int64(1_000_000_000)
	now := v.AsOf / second
	for i := range jobs[:min(len(jobs), maxRemembered)] {
		job := &jobs[i]
		queue, known := v.Queue(job.Queue)
		if !known || !v.HasQueue(queue) || job.Arrived >= now || job.Ended > now || job.Runs {
			// Those that run are in the snapshot.
			continue
		}
		row := resource.NewAccount(v.Dims.Len())
		for name, amount := range job.Request {
			if d, ok := v.Dims.Index(name); ok && amount >= 0 && !math.IsInf(amount, 0) {
				row.Set(d, amount)
			}
		}
		tasks := min(max(job.Tasks, 1), maxPastTasks)
		question.Kinds = append(question.Kinds, forecast.PastKind{
			Queue: queue, Owner: job.Owner, Priority: job.Priority, Tasks: tasks, Min: min(max(job.Min, 1), tasks), Request: row,
		})
		question.Past = append(question.Past, forecast.PastJob{
			Kind: len(question.Kinds) - 1, Arrival: job.Arrived - now, Seconds: max(job.Ended-job.Began, 1),
			Wait: max(job.Began-job.Arrived, 0),
		})
	}
}
