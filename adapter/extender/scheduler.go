package extender

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/apportion/apportion/engine"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// scheduler is a path: the newest push of whoever asks there, and the policy that decides.
type scheduler struct {
	path string
	Scheduler

	mu      sync.Mutex
	current *turn

	// The policy as it was last compiled.
	rules    sync.Mutex
	source   *apportionv1.Policy
	compiled engine.Policy
}

// turn is one session of Volcano's, from its push to its close.
type turn struct {
	// ready is closed once there is a snapshot, or none will come; snapshot is nil then.
	ready    chan struct{}
	once     sync.Once
	snapshot *snapshot
	// ctx ends when the turn is over, or nothing can become of it; over ends it.
	ctx  context.Context //nolint:containedctx // A turn is longer than the request that begins it.
	over context.CancelCauseFunc
}

// errOver says that the session has ended, or that another push has come.
var errOver = errors.New("the session is over")

// end says what became of a push.
func (t *turn) end(s *snapshot) {
	t.once.Do(func() {
		t.snapshot = s
		close(t.ready)
	})
}

// begin makes a new turn the current one: questions wait for it from now on, and answers about the last one are over.
func (s *scheduler) begin(ctx context.Context) *turn {
	t := &turn{ready: make(chan struct{})}
	t.ctx, t.over = context.WithCancelCause(context.WithoutCancel(ctx))
	s.replace(t)
	return t
}

// close ends the current turn.
func (s *scheduler) close() { s.replace(nil) }

func (s *scheduler) replace(t *turn) {
	s.mu.Lock()
	last := s.current
	s.current = t
	s.mu.Unlock()
	if last != nil {
		last.over(errOver)
		last.end(nil)
	}
}

// rule returns the policy as the engine has it.
func (s *scheduler) rule(lookup func(string) *apportionv1.Policy) (engine.Policy, error) {
	s.rules.Lock()
	defer s.rules.Unlock()
	p := lookup(s.Policy)
	if p == nil || p == s.source {
		return s.compiled, nil
	}
	compiled, err := wire.Policy(p)
	if err != nil {
		return engine.Policy{}, err
	}
	s.source, s.compiled = p, compiled
	return compiled, nil
}

// wait returns the snapshot of the current turn, waiting a while for it to be built, or why there is none.
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
