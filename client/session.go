package client

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// Session is a conversation about one snapshot: its steps are answered on the state that earlier ones left, which ends with it. It is safe
// for concurrent use; batches are answered one after the other.
type Session struct {
	basis *apportionv1.Basis

	mutex sync.Mutex
	do    func([]*apportionv1.Step) ([]*apportionv1.Answer, error)
	close func() error
}

// OpenSession opens a session on the input. It ends with Close, or with ctx.
func (c *Client) OpenSession(ctx context.Context, in Input) (*Session, error) {
	if c.remote == nil {
		return openLocal(ctx, in)
	}
	session, err := c.openRemote(ctx, in)
	if in.Upload != nil && Reason(err) == apportionv1.ErrorReason_ERROR_REASON_SNAPSHOT_NOT_FOUND {
		if err := c.send(ctx, in.Upload); err != nil {
			return nil, err
		}
		return c.openRemote(ctx, in)
	}
	return session, err
}

// Basis is what the answers rest on.
func (s *Session) Basis() *apportionv1.Basis { return s.basis }

// Do answers steps in order. A step that failed has an answer with an error, and changed nothing. An error of Do itself ends the session.
func (s *Session) Do(steps ...*apportionv1.Step) ([]*apportionv1.Answer, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.do(steps)
}

// Close ends the session.
func (s *Session) Close() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.close()
}

func openLocal(ctx context.Context, in Input) (*Session, error) {
	session, err := open(ctx, in.message())
	if err != nil {
		return nil, err
	}
	return &Session{
		basis: session.Basis(),
		do: func(steps []*apportionv1.Step) ([]*apportionv1.Answer, error) {
			answers, err := session.DoAll(steps)
			return answers, failure(err)
		},
		close: func() error { return nil },
	}, nil
}

func (c *Client) openRemote(ctx context.Context, in Input) (*Session, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := c.remote.RunSession(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	r := &remote{receive: stream.Recv, send: stream.Send, cancel: cancel}
	opened, err := r.open(in)
	if err != nil {
		cancel()
		return nil, err
	}
	return &Session{basis: opened.GetBasis(), do: r.do, close: func() error {
		defer cancel()
		return stream.CloseSend()
	}}, nil
}

// remote is the stream of a session.
type remote struct {
	send    func(*apportionv1.RunSessionRequest) error
	receive func() (*apportionv1.RunSessionResponse, error)
	cancel  context.CancelFunc
	last    uint64
}

// open sends the first message and waits for the answer.
func (r *remote) open(in Input) (*apportionv1.SessionOpened, error) {
	message, open := in.message(), &apportionv1.OpenSession{}
	switch source := message.GetSource().(type) {
	case *apportionv1.Input_Snapshot:
		open.Source = &apportionv1.OpenSession_Snapshot{Snapshot: source.Snapshot}
	case *apportionv1.Input_SnapshotDigest:
		open.Source = &apportionv1.OpenSession_SnapshotDigest{SnapshotDigest: source.SnapshotDigest}
	}
	switch rule := message.GetRule().(type) {
	case *apportionv1.Input_Policy:
		open.Rule = &apportionv1.OpenSession_Policy{Policy: rule.Policy}
	case *apportionv1.Input_PolicyName:
		open.Rule = &apportionv1.OpenSession_PolicyName{PolicyName: rule.PolicyName}
	}
	response, err := r.exchange(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: open}})
	if err != nil {
		return nil, err
	}
	if opened := response.GetOpened(); opened != nil {
		return opened, nil
	}
	return nil, protocol("the session was not opened")
}

func (r *remote) do(steps []*apportionv1.Step) ([]*apportionv1.Answer, error) {
	r.last++
	batch := &apportionv1.StepBatch{Id: r.last, Steps: steps}
	response, err := r.exchange(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Batch{Batch: batch}})
	if err != nil {
		r.cancel()
		return nil, err
	}
	answers := response.GetAnswers()
	if answers.GetId() != r.last || len(answers.GetAnswers()) != len(steps) {
		r.cancel()
		return nil, protocol("an answer to another batch")
	}
	return answers.GetAnswers(), nil
}

// exchange sends a message and waits for the one that answers it.
func (r *remote) exchange(message *apportionv1.RunSessionRequest) (*apportionv1.RunSessionResponse, error) {
	// io.EOF: the stream has ended; receiving tells why.
	if err := r.send(message); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for {
		response, err := r.receive()
		if errors.Is(err, io.EOF) {
			return nil, protocol("the server ended the session")
		}
		if err != nil || response.GetGoingAway() == nil {
			return response, err
		}
	}
}

// protocol is a fault of the conversation itself.
func protocol(message string) error {
	return status.FromProto(wire.Status(&wire.Fault{
		Code: codes.Unavailable, Reason: apportionv1.ErrorReason_ERROR_REASON_PROTOCOL, Text: message,
	})).Err()
}
