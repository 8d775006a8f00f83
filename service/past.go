package service

import (
	"context"
	"errors"

	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/ledger"
)

// rememberedJobs returns the jobs of a ledger as sessions read them.
func rememberedJobs(jobs []ledger.Job) []wire.RememberedJob {
	out := make([]wire.RememberedJob, 0, len(jobs))
	for i := range jobs {
		job := &jobs[i]
		of := wire.RememberedJob{
			Queue: job.Queue, Owner: job.Owner, Priority: job.Priority, Tasks: job.Tasks, Min: job.Min, Request: map[string]float64{},
			Arrived: job.Arrived, Began: job.Began, Ended: job.Ended, Runs: job.Runs,
		}
		for name, amount := range job.Request {
			of.Request[name] = float64(amount)
		}
		out = append(out, of)
	}
	return out
}

// past returns where the sessions of a call find past jobs: in the ledger of a name.
func (s *Server) past(ctx context.Context) func(name string) ([]wire.RememberedJob, error) {
	return func(name string) ([]wire.RememberedJob, error) {
		shows, err := s.usageOf(ctx, name)
		if err != nil {
			return nil, err
		}
		if shows != nil {
			return nil, errors.New("the past jobs of a cluster are shown to callers alone who may see all of it")
		}
		of := s.rememberedAs(name)
		if of == nil {
			return nil, nil
		}
		var jobs []ledger.Job
		of.View(func(l *ledger.Ledger) { jobs = l.Jobs() })
		return rememberedJobs(jobs), nil
	}
}
