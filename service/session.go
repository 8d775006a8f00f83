package service

import (
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/connection"
)

type sessionStream = grpc.BidiStreamingServer[apportionv1.RunSessionRequest, apportionv1.RunSessionResponse]

// RunSession runs a session on one snapshot.
func (c *call) RunSession(stream sessionStream) error {
	if err := c.converse(stream); err != nil {
		return c.server.fail(stream.Context(), err)
	}
	return nil
}

func (c *call) converse(stream sessionStream) error {
	s := c.server
	identity := TenantOf(stream.Context())
	defer s.sessions.Add(identity, -1)
	mine, all := s.sessions.Add(identity, 1)
	if all > s.options.Limit.Sessions {
		return busy("sessions", int64(all), int64(s.options.Limit.Sessions), sessionsRetry, "too many sessions are open")
	}
	if mine > s.options.Limit.IdentitySessions {
		return busy("identity_sessions", int64(mine), int64(s.options.Limit.IdentitySessions), sessionsRetry,
			"this identity has too many sessions open")
	}
	v := conversation{
		call: c, server: s, stream: stream, from: connection.Of(stream.Context()), progress: follow(stream.Context()),
	}
	v.progress.limit = s.options.Deadline.Call
	defer v.release()
	if err := v.open(); err != nil {
		return err
	}
	defer v.seen.close(stream.Context())
	v.settle()
	return v.run()
}

// conversation is one session's stream.
type conversation struct {
	call    *call
	server  *Server
	stream  sessionStream
	from    *connection.Conn
	session *wire.Session
	seen    *record
	// base is the held snapshot on which, or on a change of which, the session was opened; else it is nil.
	base *entry
	// memory is the memory that the session uses.
	memory *reservation
	// progress is that of the batch under way.
	progress *progress
	// message is the message with the answers. It is reused together with a Room.
	message answersMessage
}

// release gives back what the session took.
func (v *conversation) release() {
	if v.memory != nil {
		v.memory.close()
	}
}

// settle notes that the client was sent every answer that it has asked for while its call lasted.
func (v *conversation) settle() {
	v.call.settled = v.stream.Context().Err() == nil
}

// run answers batches in the order in which they come, while further ones are read, until the client has no more.
func (v *conversation) run() error {
	ahead := newAhead(v.server.options.Limit.PendingBatches)
	go v.read(ahead)
	draining, gone := v.server.draining, v.stream.Context().Done()
	timeouts := v.server.newTimeouts()
	defer timeouts.stop()
	// A select over all channels costs as much as a small step, so it is made only if nothing waits, and at intervals.
	const between = 16
	for n := 0; ; n++ {
		if group := ahead.take(); len(group) > 0 {
			if end, err := v.next(group, ahead, timeouts); end {
				return err
			}
			if n%between != 0 {
				continue
			}
		}
		select {
		case <-gone:
			if group := ahead.take(); len(group) > 0 && group[0].err == nil {
				v.call.settled = false
			}
			return v.stream.Context().Err()
		case <-ahead.arrived:
		case <-timeouts.warned.C:
			if err := v.stream.Send(goingAway(timeouts.left())); err != nil {
				return err
			}
		case <-timeouts.over.C:
			return v.aged()
		case <-timeouts.idle.C:
			if !timeouts.idled() {
				continue
			}
			return sessionIdle(v.server.options.Limit.SessionIdle)
		case <-draining:
			draining = nil
			if err := v.stream.Send(goingAway(time.Until(v.server.drainEnd))); err != nil {
				return err
			}
		}
	}
}

// next answers a group of what was received, of which only the last can be the end of the stream. end: it was, or an error ends the
// session.
func (v *conversation) next(group []arrival, ahead *ahead, timeouts *timeouts) (end bool, err error) {
	defer clear(group)
	for len(group) > 0 && group[0].err == nil {
		v.call.settled = false
		answered, err := v.answer(group)
		if err != nil {
			return true, err
		}
		ahead.done(group[:answered])
		for i := range group[:answered] {
			group[i].message.unbook()
		}
		group = group[answered:]
		v.settle()
		timeouts.questioned(v.seen.ended())
	}
	switch {
	case len(group) == 0:
		return false, nil
	case errors.Is(group[0].err, io.EOF):
		return true, nil
	}
	return true, group[0].err
}

// sessionIdle is the fault of a session of which nothing was heard for as long as a limit.
func sessionIdle(limit time.Duration) error {
	return busy("session_idle", limit.Milliseconds(), limit.Milliseconds(), agedRetry, "the session was idle for too long")
}

// aged is the fault of a session that has lasted for as long as any may.
func (v *conversation) aged() error {
	o := &v.server.options
	return busy("session_time", o.Limit.SessionTime.Milliseconds(), o.Limit.SessionTime.Milliseconds(), agedRetry,
		"the session reached its maximum duration")
}

// read reads ahead: as many batches as the contract promises, so that a client that sends them before it reads answers does not block. It
// ends with the stream.
func (v *conversation) read(ahead *ahead) {
	ctx := v.stream.Context()
	for {
		var next arrival
		var request *apportionv1.RunSessionRequest
		if request, next.err = v.stream.Recv(); next.err == nil {
			if next.batch = request.GetBatch(); next.batch == nil {
				next.err = protocolFault("only batches of steps follow once a session is open")
			}
		}
		next.message = v.call.takePending()
		if !ahead.put(ctx, next) || next.err != nil {
			return
		}
	}
}

// answer answers the first batches of a group, as many as one turn is for, and sends the answers. It returns how many those were.
func (v *conversation) answer(group []arrival) (answered int, err error) {
	// What the client has not read yet holds back what follows.
	ctx := v.stream.Context()
	r, err := v.server.outbox.reserveFor(ctx, v.progress.tenant, v.from, firstBytes, admission.Forever)
	if err != nil {
		return 0, err
	}
	defer r.Release()
	room := takeRoom(v.seen, len(v.server.options.Stream))
	reused := room != nil
	if reused {
		v.session.Use(room)
		// Sending encodes. After an error the memory may still be referenced, and is not reused.
		defer func() {
			v.session.Use(nil)
			if err == nil {
				giveRoom(room)
			}
		}()
	}
	answered, err = v.decide(group, r)
	replies := make([]reply, answered)
	for i := range group[:answered] {
		a, message := &group[i], &v.message
		if !reused {
			message = &answersMessage{}
		}
		r.part(&replies[i], a.answerBytes)
		v.call.reply = &replies[i]
		if err := v.stream.Send(message.of(a)); err != nil {
			return 0, err
		}
	}
	return answered, err
}

// answersMessage is a message with answers, in one piece of memory.
type answersMessage struct {
	response apportionv1.RunSessionResponse
	member   apportionv1.RunSessionResponse_Answers
	batch    apportionv1.AnswerBatch
}

// of returns the message with the answers of a batch.
func (m *answersMessage) of(a *arrival) *apportionv1.RunSessionResponse {
	m.batch.Id, m.batch.Answers = a.batch.GetId(), a.answers
	m.member.Answers, m.response.Message = &m.batch, &m.member
	return &m.response
}

// decide answers the first batches of a group in one turn, and books what the answers take. It returns the number of answered steps, even
// if the next one has failed.
func (v *conversation) decide(group []arrival, r *reply) (answered int, err error) {
	memory, extent := v.session.StepMemory(group[0].batch.GetSteps(), v.session.Extent())
	n := 1
	for ; n < len(group) && group[n].err == nil && memory <= togetherBytes; n++ {
		var more int64
		more, extent = v.session.StepMemory(group[n].batch.GetSteps(), extent)
		memory += more
	}
	leave, err := v.server.enter(v.progress, admission.Decision, memory)
	if err != nil {
		return 0, err
	}
	defer leave()
	var bytes int64
	now := time.Now()
	for i := range group[:n] {
		// Answers that are large, or that took long, are sent without waiting for further answers.
		if i > 0 && (bytes > firstBytes-leastBytes || now.Sub(v.progress.began) > togetherTime) {
			return i, nil
		}
		a := &group[i]
		if err := v.ask(a, now); err != nil {
			return i, err
		}
		a.answerBytes = int64(v.session.AnswerBytes() + fieldBytes)
		bytes += max(a.answerBytes, leastBytes)
		if err := r.grow(v.stream.Context(), v.progress.turn, bytes, v.server.outbox.patience); err != nil {
			return i, err
		}
		now = v.seen.ended()
	}
	return n, nil
}

// ask answers a batch whose turn has come.
func (v *conversation) ask(a *arrival, now time.Time) (err error) {
	ctx, steps := v.stream.Context(), a.batch.GetSteps()
	v.seen.nextBatch(ctx, now)
	v.progress.began = now
	a.answers, err = v.session.DoAll(steps)
	v.seen.askedAll(v.session, steps, a.answers, err)
	v.seen.done()
	v.seen.end(ctx, StatusOf(err))
	if err != nil {
		return err
	}
	return v.memory.grow(v.session)
}

// goingAway asks a client to open anew elsewhere within the time that is left.
func goingAway(left time.Duration) *apportionv1.RunSessionResponse {
	left = max(left, 0)
	return &apportionv1.RunSessionResponse{Message: &apportionv1.RunSessionResponse_GoingAway{
		GoingAway: &apportionv1.GoingAway{DeadlineMs: uint64(left.Milliseconds())},
	}}
}

// timeouts says when a session ends that neither side has ended: after its lifetime, of which the client is warned, or because nothing is
// asked any more.
type timeouts struct {
	warned, over, idle *time.Timer
	end, asked         time.Time
	patience           time.Duration
}

// warning is the time before its end at which a session sends going_away, at most a tenth of its lifetime.
const warning = time.Minute

// never is longer than any session lasts.
const never = 100 * 365 * 24 * time.Hour

func (s *Server) newTimeouts() *timeouts {
	life, patience := s.options.Limit.SessionTime, s.options.Limit.SessionIdle
	if life < 0 {
		life = never
	}
	if patience < 0 {
		patience = never
	}
	now := time.Now()
	return &timeouts{
		warned: time.NewTimer(life - min(warning, life/10)), over: time.NewTimer(life), idle: time.NewTimer(patience),
		end: now.Add(life), asked: now, patience: patience,
	}
}

// questioned records the time of a question. It does not reset the timer idle, which costs more than many a step.
func (t *timeouts) questioned(at time.Time) { t.asked = at }

// idled is called when the timer idle has expired. It returns true if there was no question since the timer was set, and otherwise sets it
// again.
func (t *timeouts) idled() bool {
	left := t.patience - time.Since(t.asked)
	if left > 0 {
		t.idle.Reset(left)
	}
	return left <= 0
}

func (t *timeouts) left() time.Duration { return time.Until(t.end) }

func (t *timeouts) stop() {
	t.warned.Stop()
	t.over.Stop()
	t.idle.Stop()
}
