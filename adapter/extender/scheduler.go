package extender

import (
	"context"
	"errors"
	"sync"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// scheduler is the state of one path: the newest push and its policy.
type scheduler struct {
	path string
	Scheduler

	mu      sync.Mutex
	current *turn
	// last is the policy that the last lookup found.
	last *apportionv1.Policy
}

// policy returns the scheduler's policy, or the last one found if the name no longer exists.
func (s *scheduler) policy(lookup func(string) *apportionv1.Policy) *apportionv1.Policy {
	found := lookup(s.Policy)
	s.mu.Lock()
	defer s.mu.Unlock()
	if found != nil {
		s.last = found
	}
	return s.last
}

// turn is one session of Volcano's, from its push to its close.
type turn struct {
	// ready is closed when the snapshot is built, or has failed; snapshot is nil then.
	ready    chan struct{}
	once     sync.Once
	snapshot *snapshot
	// ctx ends when the turn is over or its push has failed; over cancels it.
	ctx  context.Context //nolint:containedctx // A turn is longer than the request that begins it.
	over context.CancelCauseFunc
}

// errOver says that the session has ended, or that another push has come.
var errOver = errors.New("the session is over")

// end sets the snapshot of a push, nil if it failed, and reports whether it was the first call.
func (t *turn) end(s *snapshot) (taken bool) {
	t.once.Do(func() {
		t.snapshot = s
		taken = true
		close(t.ready)
	})
	return taken
}

// begin makes a new turn the current one: later questions wait for its snapshot, and the previous turn ends.
func (s *scheduler) begin(ctx context.Context) *turn {
	t := &turn{ready: make(chan struct{})}
	t.ctx, t.over = context.WithCancelCause(context.WithoutCancel(ctx))
	s.replace(ctx, t)
	return t
}

// close ends the current turn.
func (s *scheduler) close(ctx context.Context) { s.replace(ctx, nil) }

func (s *scheduler) replace(ctx context.Context, t *turn) {
	s.mu.Lock()
	last := s.current
	s.current = t
	s.mu.Unlock()
	if last != nil {
		last.over(errOver)
		last.end(nil)
		if last.snapshot != nil {
			last.snapshot.closed(ctx)
		}
	}
}

// wait returns the snapshot of the current turn, for which it waits at most most, or the reason why there is none.
func (s *scheduler) wait(ctx context.Context, most time.Duration) (*snapshot, string) {
	s.mu.Lock()
	t := s.current
	s.mu.Unlock()
	if t == nil {
		return nil, noSnapshot
	}
	select {
	case <-t.ready:
	default:
		timer := time.NewTimer(most)
		defer timer.Stop()
		select {
		case <-t.ready:
		case <-timer.C:
			return nil, building
		case <-ctx.Done():
			return nil, callerGone
		}
	}
	if t.snapshot == nil {
		return nil, refusedPush
	}
	return t.snapshot, ""
}
