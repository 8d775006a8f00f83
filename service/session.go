package service

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

type sessionStream = grpc.BidiStreamingServer[apportionv1.RunSessionRequest, apportionv1.RunSessionResponse]

// RunSession holds a conversation about one snapshot.
func (s *Service) RunSession(stream sessionStream) error {
	if err := s.converse(stream); err != nil {
		return s.fail(stream.Context(), err)
	}
	return nil
}

func (s *Service) converse(stream sessionStream) error {
	defer s.sessions.Add(-1)
	if n := s.sessions.Add(1); n > int64(s.options.Sessions) {
		return limitFault("sessions", n, int64(s.options.Sessions), "too many sessions are open")
	}
	identity := IdentityOf(stream.Context())
	defer s.perIdentity.add(identity, -1)
	if n := s.perIdentity.add(identity, 1); n > s.options.IdentitySessions {
		return limitFault("identity_sessions", int64(n), int64(s.options.IdentitySessions), "this identity has too many sessions open")
	}
	c := conversation{service: s, stream: stream, limit: s.options.CallTime}
	release := context.AfterFunc(stream.Context(), func() { c.over.Store(true) })
	defer release()
	defer c.release()
	if err := c.open(); err != nil {
		return err
	}
	defer c.seen.close(stream.Context())
	return c.run()
}

// conversation is one session's stream.
type conversation struct {
	service *Service
	stream  sessionStream
	session *wire.Session
	seen    *record
	// held is what the session takes.
	held *holding
	// over is set when nobody waits any more; began and limit bound the batch under way.
	over  atomic.Bool
	began time.Time
	limit time.Duration
}

func (c *conversation) stop() bool {
	return c.over.Load() || c.limit > 0 && time.Since(c.began) > c.limit
}

// release gives back what the session took.
func (c *conversation) release() {
	if c.held != nil {
		c.held.close()
	}
}

// open takes the first message, and the chunks that it announces.
func (c *conversation) open() error {
	first, err := c.stream.Recv()
	if err != nil {
		return ended(err, "before it was opened")
	}
	open := first.GetOpen()
	if open == nil {
		return protocolFault("the first message opens the session")
	}
	r, err := c.service.rule(open.GetPolicy(), open.GetPolicyName(), "open.")
	if err != nil {
		return err
	}
	c.began = time.Now()
	ctx := c.stream.Context()
	c.seen = c.service.watchSession(ctx, open.GetPolicyName(), r)
	digest, err := c.openOn(open, r)
	if err == nil {
		c.held, err = c.service.holding.open(IdentityOf(ctx), c.seen.Snapshot.Model, c.session)
	}
	if err != nil {
		c.seen.refused(err)
		return err
	}
	c.seen.Basis = basisOf(c.session, digest)
	c.seen.end(ctx, nil)
	return c.stream.Send(&apportionv1.RunSessionResponse{Message: &apportionv1.RunSessionResponse_Opened{Opened: &apportionv1.SessionOpened{
		Basis: c.seen.Basis, MaxPendingBatches: uint32(c.service.options.PendingBatches),
	}}})
}

// openOn opens the session on whatever source the first message has, and returns the digest of the snapshot if its bytes are known.
func (c *conversation) openOn(open *apportionv1.OpenSession, r rule) (digest string, err error) {
	s, ctx := c.service, c.stream.Context()
	switch source := open.GetSource().(type) {
	case *apportionv1.OpenSession_Snapshot:
		return "", c.openInline(source.Snapshot, r)
	case *apportionv1.OpenSession_SnapshotDigest:
		h, err := s.find(ctx, source.SnapshotDigest, "open.snapshot_digest")
		if err != nil {
			return "", err
		}
		leave, err := s.admit(ctx, decisionRank, s.cache.size(h.key))
		if err != nil {
			return "", err
		}
		defer leave()
		c.began = time.Now()
		c.seen.Snapshot = Snapshot{Digest: h.key.digest, Model: h.model, Named: h.cluster}
		c.session, err = s.openModel(h.model, r, c.stop)
		return h.key.digest, err
	case *apportionv1.OpenSession_Chunked:
		return c.openChunked(source.Chunked, r)
	}
	return "", invalidRequest("open.snapshot", "no snapshot is given, announced, nor the digest of one")
}

// openInline opens the session on a snapshot in the first message, whose bytes were taken out of it before it was decoded.
func (c *conversation) openInline(snapshot *apportionv1.Snapshot, r rule) error {
	s, ctx := c.service, c.stream.Context()
	c.seen.Snapshot = snapshotOf(ctx, snapshot)
	held, ok := heldSnapshot(ctx)
	if !ok {
		data, err := proto.Marshal(snapshot)
		if err != nil {
			return invalidRequest("open.snapshot", "a text is not UTF-8")
		}
		held = &snapshotBytes{data: data}
	}
	if err := s.permit(ctx, func() string { return wire.ClusterOf(held.data) }); err != nil {
		return err
	}
	g := s.guard(c.stop)
	g.Size = held.measure()
	leave, err := s.admit(ctx, decisionRank, g.Size.Memory())
	if err != nil {
		return err
	}
	defer leave()
	c.began = time.Now()
	m, err := new(wire.Decoder).CompileWithin(held.data, g)
	s.metrics.compiledModel(c.began, m)
	if err != nil {
		return err
	}
	c.seen.Snapshot.Model = m
	c.session, err = s.openModel(m, r, c.stop)
	return err
}

func (c *conversation) openChunked(header *apportionv1.UploadHeader, r rule) (string, error) {
	if header.GetDigest() != "" {
		if err := checkDigest(header.GetDigest(), "open.chunked.digest"); err != nil {
			return "", err
		}
	}
	chunks := c.service.collect(c.stream.Context(), header)
	defer chunks.release()
	ctx, cancel := c.service.uploading(c.stream.Context())
	defer cancel()
	err := chunks.all(ctx, func() (*apportionv1.SnapshotChunk, error) {
		message, err := c.stream.Recv()
		return message.GetChunk(), err
	})
	if err == nil {
		err = c.service.permit(c.stream.Context(), func() string { return wire.ClusterOf(chunks.data) })
	}
	if err != nil {
		return "", err
	}
	c.began = time.Now()
	m, _, _, err := c.service.hold(ctx, heldKey{IdentityOf(ctx), chunks.digest}, chunks.data, c.stop)
	if err != nil {
		return "", err
	}
	leave, err := c.service.admit(ctx, decisionRank, wire.ModelBytes(m))
	if err != nil {
		return "", err
	}
	defer leave()
	c.began = time.Now()
	c.seen.Snapshot = Snapshot{Digest: chunks.digest, Model: m, data: chunks.data}
	c.session, err = c.service.openModel(m, r, c.stop)
	return chunks.digest, err
}

// arrival is a batch that was received, or the end of the stream.
type arrival struct {
	batch *apportionv1.StepBatch
	bytes int64
	// held is what is booked for the batch.
	held parcel
	err  error
}

// run answers batches in the order in which they come, while further ones are read, until the client has no more.
func (c *conversation) run() error {
	pending := make(chan arrival, c.service.options.PendingBatches)
	room := semaphore.NewWeighted(pendingBytes)
	go c.read(pending, room)
	draining, gone := c.service.draining, c.stream.Context().Done()
	ends := c.service.newEnds()
	defer ends.stop()
	for {
		select {
		case <-gone:
			return c.stream.Context().Err()
		case next := <-pending:
			if next.err != nil {
				if errors.Is(next.err, io.EOF) {
					return nil
				}
				return next.err
			}
			if err := c.answer(next); err != nil {
				return err
			}
			room.Release(next.bytes)
			next.held.unbook()
			ends.heard()
		case <-ends.warned.C:
			if err := c.stream.Send(goingAway(ends.left())); err != nil {
				return err
			}
		case <-ends.over.C:
			o := &c.service.options
			return limitFault("session_time", o.SessionTime.Milliseconds(), o.SessionTime.Milliseconds(),
				"the session has lasted long enough")
		case <-ends.idle.C:
			o := &c.service.options
			return limitFault("session_idle", o.SessionIdle.Milliseconds(), o.SessionIdle.Milliseconds(),
				"nothing was asked in this session for too long")
		case <-draining:
			draining = nil
			if err := c.stream.Send(goingAway(time.Until(c.service.drainEnd))); err != nil {
				return err
			}
		}
	}
}

// pendingBytes bounds the batches of one session that are read ahead of their answers.
const pendingBytes = 4 << 20

// read reads ahead: as many batches as are promised, so that a client that sends them before it reads answers is not stuck. It ends
// with the stream.
func (c *conversation) read(pending chan<- arrival, room *semaphore.Weighted) {
	ctx := c.stream.Context()
	for {
		var next arrival
		var message *apportionv1.RunSessionRequest
		if message, next.err = c.stream.Recv(); next.err == nil {
			if next.batch = message.GetBatch(); next.batch == nil {
				next.err = protocolFault("only batches of steps follow once a session is open")
			}
		}
		next.held = takeOver(ctx)
		next.bytes = min(next.held.length, pendingBytes)
		if room.Acquire(ctx, next.bytes) != nil {
			return
		}
		select {
		case pending <- next:
		case <-ctx.Done():
			return
		}
		if next.err != nil {
			return
		}
	}
}

func (c *conversation) answer(next arrival) error {
	ctx, batch := c.stream.Context(), next.batch
	leave, err := c.service.admit(ctx, decisionRank, questionMemory*next.bytes)
	if err != nil {
		return err
	}
	defer leave()
	c.seen.nextBatch(ctx)
	c.began = c.seen.Began
	answers, err := c.session.DoAll(batch.GetSteps())
	c.seen.askedAll(c.session, batch.GetSteps(), answers, err)
	c.seen.done()
	c.seen.end(ctx, statusOf(err))
	if err == nil {
		err = c.held.grow(c.session)
	}
	if err != nil {
		return err
	}
	return c.stream.Send(&apportionv1.RunSessionResponse{Message: &apportionv1.RunSessionResponse_Answers{
		Answers: &apportionv1.AnswerBatch{Id: batch.GetId(), Answers: answers},
	}})
}

// drain tells every session to open elsewhere; within is how long it may go on.
func (s *Service) drain(within time.Duration) {
	s.drainOnce.Do(func() {
		s.drainEnd = time.Now().Add(within)
		close(s.draining)
	})
}

// goingAway asks a client to open anew elsewhere within the time that is left.
func goingAway(left time.Duration) *apportionv1.RunSessionResponse {
	left = max(left, 0)
	return &apportionv1.RunSessionResponse{Message: &apportionv1.RunSessionResponse_GoingAway{
		GoingAway: &apportionv1.GoingAway{DeadlineMs: uint64(left.Milliseconds())},
	}}
}
