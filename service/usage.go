package service

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/report"
	"github.com/apportion/apportion/service/admission"
)

// Ledger is a ledger that the server's program keeps. View may be called concurrently.
type Ledger interface {
	View(read func(*ledger.Ledger))
}

// remembered is a ledger with its budgets.
type remembered struct {
	Ledger

	budgets []ledger.Budget
}

// Remember lets callers ask who used what of the cluster whose snapshot has a name. The server need not keep the snapshot: the cluster has
// that name then, too, so that callers who may not name it are refused.
func (s *Server) Remember(name string, l Ledger, budgets []ledger.Budget) {
	s.ledgers.Store(name, &remembered{l, budgets})
}

// rememberedAs returns the ledger of a name, nil if there is none.
func (s *Server) rememberedAs(name string) *remembered {
	l, _ := s.ledgers.Load(name)
	of, _ := l.(*remembered)
	return of
}

// Bytes that a report takes for each line of its ledger and for each byte of its answer.
const usageLineBytes, usageAnswerBytes = 512, 4

// GetUsage returns who used what of a cluster.
func (c *call) GetUsage(ctx context.Context, r *apportionv1alpha1.GetUsageRequest) (*apportionv1alpha1.GetUsageResponse, error) {
	response, err := c.getUsage(ctx, r)
	if err != nil {
		return nil, c.server.fail(ctx, err)
	}
	return response, nil
}

func (c *call) getUsage(ctx context.Context, r *apportionv1alpha1.GetUsageRequest) (*apportionv1alpha1.GetUsageResponse, error) {
	s := c.server
	if r.GetName() == "" {
		return nil, invalidRequest("name", "no snapshot is named")
	}
	if err := report.Check(r); err != nil {
		return nil, invalidRequest("until", err.Error())
	}
	shows, err := s.usageOf(ctx, r.GetName())
	if err != nil {
		return nil, err
	}
	of := s.rememberedAs(r.GetName())
	if of == nil {
		return &apportionv1alpha1.GetUsageResponse{}, nil
	}
	limited, cancel := c.limited(ctx)
	defer cancel()
	lines := 0
	of.View(func(l *ledger.Ledger) { lines = l.Lines() })
	most := int(s.options.Limit.AnswerBytes)
	p := follow(limited)
	leave, err := s.enter(p, admission.Simulation, int64(lines)*usageLineBytes+usageAnswerBytes*int64(most))
	if err != nil {
		return nil, err
	}
	defer leave()
	var out *apportionv1alpha1.GetUsageResponse
	of.View(func(l *ledger.Ledger) {
		out, err = report.Make(l, &report.Asked{GetUsageRequest: r, Budgets: of.budgets, Shows: shows, Bytes: most})
	})
	switch {
	case errors.Is(err, report.ErrLarge) || err == nil && proto.Size(out) > most:
		return nil, &decode.Fault{
			Code: codes.OutOfRange, Reason: apportionv1.ErrorReason_ERROR_REASON_ANSWER_TOO_LARGE, Text: report.ErrLarge.Error(),
		}
	case err != nil:
		return nil, invalidRequest("until", err.Error())
	}
	reply, err := c.reserve(ctx)
	if err == nil {
		err = reply.grow(ctx, p.turn, int64(proto.Size(out)), s.outbox.patience)
	}
	return out, err
}

// usageOf returns which queues of a snapshot's ledger a caller may see: its own alone; nil: all. A queue that no longer exists belongs to
// the callers that own its name.
func (s *Server) usageOf(ctx context.Context, name string) (func(queue string) bool, error) {
	if s.keptNamed(name) == nil && s.rememberedAs(name) != nil {
		if err := s.mayAsk(ctx, name); err != nil {
			return nil, err
		}
		if err := s.permit(ctx, func() string { return name }); err != nil {
			return nil, err
		}
		// Without the snapshot, no queues are known to be below those of a caller: it sees the queues whose names it owns.
		if s.options.Own == nil {
			return nil, nil //nolint:nilnil // The caller may see all.
		}
		return s.options.Own(ctx), nil
	}
	v, err := s.newestShown(ctx, name, "name")
	if err != nil {
		return nil, err
	}
	a := s.audienceOf(ctx, v.entry)
	if a == nil {
		return nil, nil //nolint:nilnil // The caller may see all.
	}
	return func(queue string) bool {
		q, ok := v.model.Queue(queue)
		return ok && a.audience.Owns(q) || !ok && a.own(queue)
	}, nil
}

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
