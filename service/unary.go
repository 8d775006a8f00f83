package service

import (
	"context"

	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/internal/wire/method"
)

// EvaluateShares returns what each queue deserves and holds, and the order of queues.
func (c *call) EvaluateShares(ctx context.Context, r *apportionv1.EvaluateSharesRequest) (*apportionv1.EvaluateSharesResponse, error) {
	return answered(ctx, c, &method.EvaluateShares, r)
}

// CheckEnqueue decides which jobs may enter their queues.
func (c *call) CheckEnqueue(ctx context.Context, r *apportionv1.CheckEnqueueRequest) (*apportionv1.CheckEnqueueResponse, error) {
	return answered(ctx, c, &method.CheckEnqueue, r)
}

// CheckAllocatable decides which tasks' queues may use that much more, and which may take it from others.
func (c *call) CheckAllocatable(
	ctx context.Context, r *apportionv1.CheckAllocatableRequest,
) (*apportionv1.CheckAllocatableResponse, error) {
	return answered(ctx, c, &method.CheckAllocatable, r)
}

// SelectVictims returns the tasks that a task may evict.
func (c *call) SelectVictims(ctx context.Context, r *apportionv1.SelectVictimsRequest) (*apportionv1.SelectVictimsResponse, error) {
	return answered(ctx, c, &method.SelectVictims, r)
}

// ScoreNodes returns the nodes on which tasks fit, with scores.
func (c *call) ScoreNodes(ctx context.Context, r *apportionv1.ScoreNodesRequest) (*apportionv1.ScoreNodesResponse, error) {
	return answered(ctx, c, &method.ScoreNodes, r)
}

// Explain explains why jobs wait.
func (c *call) Explain(ctx context.Context, r *apportionv1.ExplainRequest) (*apportionv1.ExplainResponse, error) {
	return answered(ctx, c, &method.Explain, r)
}

// Plan returns where a job can be placed, and which tasks must be evicted for it.
func (c *call) Plan(ctx context.Context, r *apportionv1.PlanRequest) (*apportionv1.PlanResponse, error) {
	return answered(ctx, c, &method.Plan, r)
}

// Forecast returns when a job starts, by chance.
func (c *call) Forecast(ctx context.Context, r *apportionv1.ForecastRequest) (*apportionv1.ForecastResponse, error) {
	return answered(ctx, c, &method.Forecast, r)
}

// Remedies returns changes that would make a job run.
func (c *call) Remedies(ctx context.Context, r *apportionv1.RemediesRequest) (*apportionv1.RemediesResponse, error) {
	return answered(ctx, c, &method.Remedies, r)
}

// Simulate runs a list of steps.
func (c *call) Simulate(ctx context.Context, r *apportionv1.SimulateRequest) (*apportionv1.SimulateResponse, error) {
	return answered(ctx, c, &method.Simulate, r)
}

// answered answers a unary call by its method.
func answered[Q method.Request, A any](ctx context.Context, c *call, m *method.Method[Q, A], request Q) (response A, err error) {
	steps, err := m.Steps(request)
	if err != nil {
		return response, c.server.fail(ctx, err)
	}
	basis, answers, err := c.decide(ctx, m.Name, request.GetInput(), steps)
	if err != nil {
		return response, err
	}
	return m.Response(basis, answers), nil
}

// decide opens a session on the input of a unary call and answers steps. What it fails with is a status.
func (c *call) decide(
	ctx context.Context, name string, in *apportionv1.Input, steps []*apportionv1.Step,
) (basis *apportionv1.Basis, answers []*apportionv1.Answer, err error) {
	s, sent := c.server, ctx
	ctx, cancel := c.limited(ctx)
	defer cancel()
	if !c.transported {
		sent = ctx
	}
	p := follow(ctx)
	seen := s.watch(ctx, name, in.GetPolicyName())
	var (
		o opened
		r *reply
	)
	leave, err := c.turn(p, name, in, steps)
	if err == nil {
		defer leave()
		r, err = c.reserve(sent)
	}
	if err == nil {
		o, err = c.open(ctx, in, p, seen, steps)
	}
	if err == nil {
		o.session.Texts(in.GetTexts())
		o.session.Remember(s.past(ctx))
		seen.Texts = in.GetTexts()
		seen.begin(ctx, o.basis)
		var bytes int
		if c.reply != nil {
			r.room = takeRoom(seen, len(s.options.Unary))
			o.session.Use(r.room)
		}
		answers, bytes, err = seen.ask(o.session, steps)
		o.session.Use(nil)
		seen.done()
		if o.audience != nil {
			o.audience.Redact(answers)
		}
		if err == nil {
			err = r.grow(ctx, p.turn, int64(bytes+o.basis.SizeVT()+fieldBytes), s.outbox.patience)
		}
	} else {
		seen.refused(err)
	}
	if err != nil {
		err = s.fail(ctx, err)
	}
	seen.end(ctx, err)
	// Not deferred: what a panic left behind is not used again.
	if o.release != nil {
		o.release()
	}
	return o.basis, answers, err
}

// fieldBytes is more than the tags and lengths of a response's own fields take.
const fieldBytes = 64

// limited returns a context that ends after CallTime, or when cancel is called. For a call from a transport it is the call's own context,
// and ends only after CallTime.
func (c *call) limited(ctx context.Context) (limited context.Context, cancel context.CancelFunc) {
	s := c.server
	if s.options.Deadline.Call <= 0 {
		return context.WithCancel(ctx)
	}
	end, ok := ctx.Value(endKey{}).(context.CancelCauseFunc)
	if !ok || c.messages == nil {
		return context.WithTimeout(ctx, s.options.Deadline.Call)
	}
	expiry := s.answering.begin(func() { end(wire.AsFault(policy.ErrStopped)) })
	return ctx, func() { s.answering.done(expiry) }
}

// reserve books memory for the response of a unary call. It is given back when gRPC has sent the response; where gRPC does not, when sent
// ends.
func (c *call) reserve(sent context.Context) (*reply, error) {
	r, err := c.server.outbox.reserve(sent, firstBytes, 0)
	if err != nil {
		return nil, err
	}
	if c.messages != nil && !c.transported {
		c.reply = r
	} else {
		context.AfterFunc(sent, r.release)
	}
	return r, nil
}

// turn waits until a unary call may be worked on.
func (c *call) turn(p *progress, name string, in *apportionv1.Input, steps []*apportionv1.Step) (leave func(), err error) {
	return c.server.enter(p, rankOf(name), c.memory(p.ctx, in, steps))
}
