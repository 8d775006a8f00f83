package service

import (
	"context"
	"time"

	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/service/admission"
)

// progress is the work for one call or session: it has a turn while it runs, and stops when its answer is no longer needed.
type progress struct {
	ctx    context.Context //nolint:containedctx // It is the call's.
	tenant string
	// over is closed once the answer is no longer needed.
	over <-chan struct{}
	turn *admission.Turn
	// began is when the work under way did, limit how long it may take; 0: until over is closed.
	began time.Time
	limit time.Duration
}

// follow returns the progress of a call whose context is ctx.
func follow(ctx context.Context) *progress {
	return &progress{ctx: ctx, tenant: TenantOf(ctx), over: ctx.Done()}
}

// stop lets others have their turn, and reports whether to stop. Long work asks it often.
func (p *progress) stop() bool {
	p.turn.Yield(p.ctx)
	select {
	case <-p.over:
		return true
	default:
		return p.limit > 0 && time.Since(p.began) > p.limit
	}
}

// book books memory that the work came to need.
func (p *progress) book(bytes int64) error { return p.turn.Grow(bytes) }

// enter waits until work of about that many bytes may begin. The work has a turn until leave is called.
func (s *Server) enter(p *progress, rank admission.Rank, bytes int64) (leave func(), err error) {
	turn, err := s.admission.Enter(p.ctx, admission.Work{Identity: p.tenant, Rank: rank, Bytes: bytes})
	if err != nil {
		if decode.AsFault(err).Retry > 0 {
			s.metrics.shed.WithLabelValues(rank.String()).Inc()
		}
		return nil, err
	}
	p.turn = turn
	return func() {
		p.turn = nil
		turn.Leave()
	}, nil
}
