package client

import (
	"context"

	"google.golang.org/grpc"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/wire/method"
)

// question is a unary call, with the answers of the fallbacks.
type question[Q method.Request, A any] struct {
	kind   Kind
	method *method.Method[Q, A]
	// call is the method of a service.
	call func(apportionv1.ApportionServiceClient, context.Context, Q, ...grpc.CallOption) (A, error)
	// answer returns the answer of FailClosed or FailOpen; false if they have none.
	answer func(vote apportionv1.Vote) (A, bool)
}

// ask makes a call.
func (q question[Q, A]) ask(ctx context.Context, c *Client, in Input, request Q) (response A, from origin, err error) {
	within, cancel := c.within(ctx, q.kind)
	defer cancel()
	answer, at, err := q.made(within, c, in, request)
	if err == nil {
		return answer, origin{at: at}, nil
	}
	by := c.fallback(ctx, q.kind, err)
	instead, at, ok := q.instead(ctx, c, by, in, request)
	if !ok {
		return response, origin{}, err
	}
	c.fellBack(ctx, q.kind, by, err)
	return instead, origin{by, at}, nil
}

// made makes the call to the service or in process.
func (q question[Q, A]) made(ctx context.Context, c *Client, in Input, request Q) (response A, at *held, err error) {
	switch {
	case in.State != nil && in.State.mirror.client != c:
		return response, nil, errForeign
	case c.remote == nil:
		return q.local(ctx, c, in, request)
	case in.State != nil:
		return q.mirrored(in.State.mirror.route(ctx), c, in.State, request)
	}
	answer, err := q.remote(ctx, c, in, request)
	return answer, nil, err
}

// local answers with the engine of this process.
func (q question[Q, A]) local(ctx context.Context, c *Client, in Input, request Q) (response A, at *held, err error) {
	engine, at, err := c.engine.about(ctx, in)
	if err != nil {
		return response, nil, err
	}
	response, err = answered(ctx, engine, q.method, request)
	return response, at, err
}

// mirrored makes the call about a State, and sends the State again if the replica does not hold it.
func (q question[Q, A]) mirrored(ctx context.Context, c *Client, s *State, request Q) (response A, at *held, err error) {
	ask := func() (A, error) { return q.call(c.mirrored, ctx, request) }
	var missing *held
	for range replicas {
		at, err := s.atReplica(ctx, missing)
		if tooLarge(err) {
			break
		}
		if err != nil {
			return response, nil, err
		}
		request.GetInput().Source = &apportionv1.Input_SnapshotDigest{SnapshotDigest: at.digest}
		answer, err := again(ctx, c, q.kind, ask)
		if !notHeld(err) {
			return answer, at, err
		}
		missing = at
	}
	at = s.inline(request.GetInput())
	response, err = again(ctx, c, q.kind, ask)
	return response, at, err
}

// remote makes the call, and sends an uploaded snapshot again if the replica does not hold it.
func (q question[Q, A]) remote(ctx context.Context, c *Client, in Input, request Q) (A, error) {
	ask := func() (A, error) { return q.call(c.remote, ctx, request) }
	for range replicas {
		answer, err := again(ctx, c, q.kind, ask)
		if !in.sends() || !notHeld(err) {
			return answer, err
		}
		if err := c.spread(ctx, in.Upload); err != nil {
			return answer, err
		}
	}
	request.GetInput().Source = &apportionv1.Input_Snapshot{Snapshot: in.snapshot()}
	return again(ctx, c, q.kind, ask)
}

// instead returns the answer of a fallback; false: it has none.
func (q question[Q, A]) instead(ctx context.Context, c *Client, by Fallback, in Input, request Q) (answer A, at *held, ok bool) {
	switch by {
	case FallbackEngine:
		if in.partial() {
			break
		}
		if in.State == nil {
			request.GetInput().Source = &apportionv1.Input_Snapshot{Snapshot: in.snapshot()}
		}
		answer, at, err := q.local(ctx, c, in, request)
		return answer, at, err == nil
	case FailClosed:
		answer, ok = q.answer(apportionv1.Vote_VOTE_REJECT)
	case FailOpen:
		answer, ok = q.answer(apportionv1.Vote_VOTE_PERMIT)
	}
	return answer, nil, ok
}

// unanswerable is the answer function of questions without a plain yes or no.
func unanswerable[A any](apportionv1.Vote) (none A, ok bool) { return none, false }
