package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Session runs steps on one snapshot, each on the state that the previous steps left. The state ends with the session. It is safe for
// concurrent use; batches are answered one after the other.
//
// The state is kept by a replica. When the replica is lost or drains, the session is opened on another one, and the steps that changed
// something are repeated there; equal engines and policies give equal states. If they are not equal, or there are too many steps to keep,
// the session ends: Do returns ErrMoved or ErrLogFull.
type Session struct {
	client *Client
	in     Input
	// ctx is the session's, cancel ends it.
	ctx     context.Context //nolint:containedctx // A session lives as long as the context that it was opened with.
	cancel  context.CancelFunc
	movings sync.WaitGroup

	mutex sync.Mutex
	basis *apportionv1.Basis
	// current holds the state; nil: the state was lost.
	current conversation
	log     stepLog
	ended   error
}

var (
	// ErrMoved is returned if the policy or engine differs on the replica to which a session moves.
	ErrMoved = errors.New("the session cannot continue: policy or engine have changed")
	// ErrLogFull is returned if a session is lost after more steps than WithSessionLog keeps.
	ErrLogFull = errors.New("the session was lost, and has too many steps to repeat")
	// ErrClosed is returned by a session after Close.
	ErrClosed = errors.New("the session is closed")
)

// conversation is a replica, or this process, that holds the state of a session.
type conversation interface {
	basis() *apportionv1.Basis
	// do answers steps. An error means that the state is lost.
	do(ctx context.Context, steps []*apportionv1.Step) ([]*apportionv1.Answer, error)
	close()
}

// OpenSession opens a session on the input. It ends with Close, or with ctx; the deadline of KindSession applies only to opening.
//
//nolint:contextcheck // The session's context is made of ctx.
func (c *Client) OpenSession(ctx context.Context, in Input) (*Session, error) {
	if in.State != nil && in.State.mirror.client != c {
		return nil, errForeign
	}
	s := &Session{client: c, in: in, log: stepLog{limit: c.logBytes}}
	s.ctx, s.cancel = context.WithCancel(ctx)
	// A replica may send GoingAway before the session is registered here.
	s.mutex.Lock()
	defer s.mutex.Unlock()
	opening, done := c.within(s.ctx, KindSession)
	defer done()
	current, err := again(opening, c, KindSession, func() (conversation, error) { return s.restore(opening) })
	if err != nil {
		current, err = s.instead(ctx, err)
	}
	if err != nil {
		s.cancel()
		return nil, err
	}
	s.current, s.basis = current, current.basis()
	return s, nil
}

// Basis returns the basis of the answers.
func (s *Session) Basis() *apportionv1.Basis { return s.basis }

// Do runs steps in order. A failed step has an answer with an error, and changes nothing. After an error of Do itself, nothing of the batch
// has been executed; the session can continue with the next batch unless the error is ErrMoved, ErrLogFull or ErrClosed, or its context has
// ended.
func (s *Session) Do(ctx context.Context, steps ...*apportionv1.Step) ([]*apportionv1.Answer, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(s.ctx, cancel) //nolint:contextcheck // The session's context ends the batch as well.
	defer stop()
	answers, err := s.do(ctx, steps)
	if err == nil {
		s.log.add(steps, answers)
	}
	return answers, err
}

// do returns the answers to steps, from a fallback if no replica answers.
func (s *Session) do(ctx context.Context, steps []*apportionv1.Step) ([]*apportionv1.Answer, error) {
	within, cancel := s.client.within(ctx, KindBatch)
	defer cancel()
	attempt := s.client.newAttempt(within, KindBatch)
	for {
		answers, err := s.once(within, steps)
		if err == nil || s.ended != nil {
			return answers, err
		}
		if attempt.again(within, err) {
			continue
		}
		if s.current, err = s.instead(ctx, err); err != nil {
			return nil, err
		}
		return s.once(ctx, steps)
	}
}

// once returns the answers to steps from the holder of the state, or from one on which the state can be restored.
func (s *Session) once(ctx context.Context, steps []*apportionv1.Step) ([]*apportionv1.Answer, error) {
	if s.ended == nil && s.ctx.Err() != nil {
		s.ended = status.FromContextError(s.ctx.Err()).Err()
	}
	if s.ended != nil {
		return nil, s.ended
	}
	if s.current == nil {
		current, err := s.restore(ctx)
		if errors.Is(err, ErrMoved) {
			s.ended = err
		}
		if err != nil {
			return nil, err
		}
		s.current = current
		s.moved(ctx)
	}
	answers, err := s.current.do(ctx, steps)
	if err == nil {
		return answers, nil
	}
	s.current.close()
	s.current = nil
	if s.log.full {
		s.ended = fmt.Errorf("%w (%d bytes): %w", ErrLogFull, s.log.limit, err)
		return nil, s.ended
	}
	return nil, err
}

// restore opens the session again, and repeats the steps of its log.
func (s *Session) restore(ctx context.Context) (conversation, error) {
	if s.client.remote == nil {
		return s.replayed(ctx, s.openLocal)
	}
	return s.replayed(ctx, s.openRemote)
}

// instead restores the session in process, if that is the fallback for the error of the replicas.
func (s *Session) instead(ctx context.Context, err error) (conversation, error) {
	if s.in.partial() || s.client.fallback(ctx, KindSession, err) != FallbackEngine {
		return nil, err
	}
	current, refused := s.replayed(ctx, s.openLocal)
	if refused != nil {
		return nil, fmt.Errorf("%w; in-process fallback failed too: %v", err, refused) //nolint:errorlint // The service may come back.
	}
	s.client.fellBack(ctx, KindSession, FallbackEngine, err)
	return current, nil
}

// replayed opens a conversation and repeats the steps of the log in it.
func (s *Session) replayed(ctx context.Context, open func(context.Context) (conversation, error)) (conversation, error) {
	current, err := open(ctx)
	if err != nil {
		return nil, err
	}
	if s.basis == nil {
		return current, nil
	}
	if err := s.replay(ctx, current); err != nil {
		current.close()
		return nil, err
	}
	return current, nil
}

func (s *Session) replay(ctx context.Context, current conversation) error {
	was, is := s.basis, current.basis()
	if was.GetPolicyDigest() != is.GetPolicyDigest() {
		return fmt.Errorf("%w: policy %s, and %s now", ErrMoved, was.GetPolicyDigest(), is.GetPolicyDigest())
	}
	if was.GetEngineVersion() != is.GetEngineVersion() {
		return fmt.Errorf("%w: engine %s, and %s now", ErrMoved, was.GetEngineVersion(), is.GetEngineVersion())
	}
	for batch := range s.log.batches() {
		answers, err := current.do(ctx, batch)
		if err != nil {
			return err
		}
		for _, answer := range answers {
			if fault := answer.GetError(); fault != nil {
				return fmt.Errorf("%w: a step that succeeded before is now refused: %w", ErrMoved, status.FromProto(fault).Err())
			}
		}
	}
	return nil
}

// moved logs and counts a session that continues on another replica.
func (s *Session) moved(ctx context.Context) {
	s.client.logger.LogAttrs(ctx, slog.LevelInfo, "a session goes on at another replica", slog.Int("steps", s.log.len()))
	count(ctx, s.client.counters.moves, attribute.String("kind", string(KindSession)))
}

// leave moves the session away from a replica that ends within a time. If that fails, the session stays until the replica ends.
func (s *Session) leave(from conversation, within time.Duration) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.current != from || s.ended != nil || s.log.full {
		return
	}
	ctx, cancel := s.client.within(s.ctx, KindSession)
	defer cancel()
	current, err := again(ctx, s.client, KindSession, func() (conversation, error) { return s.restore(ctx) })
	if err != nil {
		s.client.logger.LogAttrs(ctx, slog.LevelWarn, "a session could not leave a replica that ends",
			slog.Duration("within", within), slog.Any("error", err))
		return
	}
	s.current.close()
	s.current = current
	s.moved(ctx)
}

// Close ends the session.
func (s *Session) Close() error {
	s.cancel()
	s.mutex.Lock()
	if s.current != nil {
		s.current.close()
	}
	s.current, s.ended = nil, ErrClosed
	s.mutex.Unlock()
	s.movings.Wait()
	return nil
}
