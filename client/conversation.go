package client

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

// inside is a session in process.
type inside struct {
	session *wire.Session
	// asker is the caller that waits for an answer now.
	asker context.Context //nolint:containedctx // It is that of the batch under way.
}

func (s *Session) openLocal(ctx context.Context) (conversation, error) {
	in := s.in.message()
	if s.in.State == nil {
		if snapshot := s.in.snapshot(); snapshot != nil {
			in.Source = &apportionv1.Input_Snapshot{Snapshot: snapshot}
		}
	}
	c := &inside{asker: ctx}
	engine, _, err := s.client.engine.about(ctx, s.in)
	if err != nil {
		return nil, err
	}
	if c.session, err = engine.open(in, func() bool { return c.asker.Err() != nil || s.ctx.Err() != nil }); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *inside) basis() *apportionv1.Basis { return c.session.Basis() }

func (c *inside) do(ctx context.Context, steps []*apportionv1.Step) ([]*apportionv1.Answer, error) {
	c.asker = ctx
	answers, err := c.session.DoAll(steps)
	return answers, failure(err)
}

func (*inside) close() {}

// stream is a session at a replica.
type stream struct {
	grpc.BidiStreamingClient[apportionv1.RunSessionRequest, apportionv1.RunSessionResponse]

	cancel context.CancelFunc
	// received contains the messages of the replica, in order; ended is closed when the stream ends, for the reason in err.
	received chan *apportionv1.RunSessionResponse
	ended    chan struct{}
	err      error
	opened   *apportionv1.SessionOpened
	last     uint64
}

// openRemote opens the session at a replica, and sends an uploaded snapshot again if the replica does not hold it.
func (s *Session) openRemote(ctx context.Context) (conversation, error) {
	open := &apportionv1.OpenSession{Input: s.in.message()}
	if s.in.State != nil {
		return s.openMirrored(ctx, open)
	}
	for n := 0; ; n++ {
		c, err := s.openOnce(ctx, open)
		if err == nil {
			return c, nil
		}
		if !s.in.sends() || n > replicas || !notHeld(err) {
			return nil, err
		}
		if n == replicas {
			open.Input.Source = &apportionv1.Input_Snapshot{Snapshot: s.in.snapshot()}
		} else if err := s.client.spread(ctx, s.in.Upload); err != nil {
			return nil, err
		}
	}
}

// openMirrored opens the session on a State.
func (s *Session) openMirrored(ctx context.Context, open *apportionv1.OpenSession) (conversation, error) {
	ctx = s.in.State.mirror.route(ctx)
	var missing *held
	for range replicas {
		at, err := s.in.State.atReplica(ctx, missing)
		if tooLarge(err) {
			break
		}
		if err != nil {
			return nil, err
		}
		open.Input.Source = &apportionv1.Input_SnapshotDigest{SnapshotDigest: at.digest}
		c, err := s.openOnce(ctx, open)
		if err == nil {
			return c, nil
		}
		if !notHeld(err) {
			return nil, err
		}
		missing = at
	}
	s.in.State.inline(open.GetInput())
	return s.openOnce(ctx, open)
}

func (s *Session) openOnce(ctx context.Context, open *apportionv1.OpenSession) (*stream, error) {
	whole, cancel := context.WithCancel(s.ctx)
	if s.in.State != nil {
		whole = s.in.State.mirror.route(whole)
	}
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	opened, err := s.client.replica(whole).RunSession(whole) //nolint:contextcheck // The stream outlives the call that opened it.
	if err != nil {
		cancel()
		return nil, failed(ctx, err)
	}
	c := &stream{
		BidiStreamingClient: opened, cancel: cancel,
		received: make(chan *apportionv1.RunSessionResponse), ended: make(chan struct{}),
	}
	s.movings.Go(func() { c.receive(s) }) //nolint:contextcheck // As above.
	response, err := c.exchange(ctx, &apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: open}})
	if err == nil && response.GetOpened() == nil {
		err = protocol("the session was not opened")
	}
	if err != nil {
		c.close()
		return nil, err
	}
	c.opened = response.GetOpened()
	return c, nil
}

// receive receives the messages of the replica, also between batches, until the stream ends.
func (c *stream) receive(s *Session) {
	defer close(c.ended)
	var leaving atomic.Bool
	for {
		response, err := c.Recv()
		if err != nil {
			c.err = err
			if errors.Is(err, io.EOF) {
				c.err = protocol("the server ended the session")
			}
			return
		}
		if going := response.GetGoingAway(); going != nil {
			// One is enough, however many a replica sends.
			if leaving.CompareAndSwap(false, true) {
				within := time.Duration(min(going.GetDeadlineMs(), mostDeadline)) * time.Millisecond
				s.movings.Go(func() {
					defer leaving.Store(false)
					c.goingAway(s, within)
				})
			}
			continue
		}
		select {
		case c.received <- response:
		case <-c.Context().Done():
		}
	}
}

const (
	// leaveAtLeast is the time that a session waits before it leaves a replica, so that the client learns of the replica's health first;
	// leaveAtMost limits the random wait after that, so that the sessions of a replica do not all arrive elsewhere at the same time.
	leaveAtLeast = 50 * time.Millisecond
	leaveAtMost  = 2 * time.Second
	// mostDeadline bounds the milliseconds that a replica says are left.
	mostDeadline = 1 << 32
)

// goingAway moves the session before the replica ends.
func (c *stream) goingAway(s *Session, within time.Duration) {
	pause := leaveAtLeast + rand.N(1+min(within/4, leaveAtMost)) //nolint:gosec // G404: only to spread sessions in time.
	if sleep(c.Context(), pause) {
		s.leave(c, within)
	}
}

func (c *stream) basis() *apportionv1.Basis { return c.opened.GetBasis() }

func (c *stream) do(ctx context.Context, steps []*apportionv1.Step) ([]*apportionv1.Answer, error) {
	c.last++
	batch := &apportionv1.StepBatch{Id: c.last, Steps: steps}
	response, err := c.exchange(ctx, &apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{Batch: batch}})
	if err != nil {
		return nil, err
	}
	answers := response.GetAnswers()
	if answers.GetId() != c.last || len(answers.GetAnswers()) != len(steps) {
		return nil, protocol("an answer to another batch")
	}
	return answers.GetAnswers(), nil
}

// exchange sends a message and waits for its answer. If ctx ends first, it ends the stream, because the answer is no longer needed.
func (c *stream) exchange(ctx context.Context, message *apportionv1.RunSessionRequest) (*apportionv1.RunSessionResponse, error) {
	stop := context.AfterFunc(ctx, c.cancel)
	defer stop()
	// io.EOF: the stream has ended; receiving returns the reason.
	if err := c.Send(message); err != nil && !errors.Is(err, io.EOF) {
		return nil, failed(ctx, err)
	}
	select {
	case response := <-c.received:
		return response, nil
	case <-c.ended:
		return nil, failed(ctx, c.err)
	}
}

// failed returns the error of the context if the stream ended because of it.
func failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return err
}

func (c *stream) close() {
	_ = c.CloseSend()
	c.cancel()
	<-c.ended
}

// protocol returns the error of a message that violates the protocol.
func protocol(message string) error {
	return status.FromProto(decode.Status(&decode.Fault{
		Code: codes.Unavailable, Reason: apportionv1.ErrorReason_ERROR_REASON_PROTOCOL, Text: message,
	})).Err()
}
