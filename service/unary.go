package service

import (
	"context"

	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/wire"
)

// EvaluateShares returns what each queue deserves and holds, and the order of queues.
func (c *call) EvaluateShares(
	ctx context.Context, r *apportionv1.EvaluateSharesRequest,
) (*apportionv1.EvaluateSharesResponse, error) {
	basis, answers, err := c.decide(ctx, "EvaluateShares", r.GetInput(),
		&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: r.GetShares()}})
	if err != nil {
		return nil, err
	}
	return &apportionv1.EvaluateSharesResponse{Basis: basis, Shares: answers[0].GetShares()}, nil
}

// CheckEnqueue decides which jobs may enter their queues.
func (c *call) CheckEnqueue(ctx context.Context, r *apportionv1.CheckEnqueueRequest) (*apportionv1.CheckEnqueueResponse, error) {
	basis, answers, err := c.decide(ctx, "CheckEnqueue", r.GetInput(),
		&apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: r.GetEnqueue()}})
	if err != nil {
		return nil, err
	}
	return &apportionv1.CheckEnqueueResponse{Basis: basis, Enqueue: answers[0].GetEnqueue()}, nil
}

// CheckAllocatable decides which tasks' queues may use that much more, and which may take it from others.
func (c *call) CheckAllocatable(
	ctx context.Context, r *apportionv1.CheckAllocatableRequest,
) (*apportionv1.CheckAllocatableResponse, error) {
	var steps []*apportionv1.Step
	if q := r.GetAllocatable(); q != nil {
		steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Allocatable{Allocatable: q}})
	}
	if q := r.GetPreemptive(); q != nil {
		steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Preemptive{Preemptive: q}})
	}
	if len(steps) == 0 {
		return nil, c.server.fail(ctx, invalidRequest("allocatable", "nothing is asked, neither allocatable nor preemptive"))
	}
	basis, answers, err := c.decide(ctx, "CheckAllocatable", r.GetInput(), steps...)
	if err != nil {
		return nil, err
	}
	out := &apportionv1.CheckAllocatableResponse{Basis: basis}
	for _, answer := range answers {
		switch a := answer.GetAnswer().(type) {
		case *apportionv1.Answer_Allocatable:
			out.Allocatable = a.Allocatable
		case *apportionv1.Answer_Preemptive:
			out.Preemptive = a.Preemptive
		}
	}
	return out, nil
}

// SelectVictims returns the tasks that a task may evict.
func (c *call) SelectVictims(ctx context.Context, r *apportionv1.SelectVictimsRequest) (*apportionv1.SelectVictimsResponse, error) {
	step := &apportionv1.Step{}
	switch q := r.GetQuestion().(type) {
	case *apportionv1.SelectVictimsRequest_Reclaim:
		step.Step = &apportionv1.Step_Reclaim{Reclaim: q.Reclaim}
	case *apportionv1.SelectVictimsRequest_Preempt:
		step.Step = &apportionv1.Step_Preempt{Preempt: q.Preempt}
	default:
		return nil, c.server.fail(ctx, invalidRequest("question", "nothing is asked, neither reclaim nor preempt"))
	}
	basis, answers, err := c.decide(ctx, "SelectVictims", r.GetInput(), step)
	if err != nil {
		return nil, err
	}
	out := &apportionv1.SelectVictimsResponse{Basis: basis, Victims: answers[0].GetReclaim()}
	if r.GetPreempt() != nil {
		out.Victims = answers[0].GetPreempt()
	}
	return out, nil
}

// ScoreNodes returns the nodes on which tasks fit, with scores.
func (c *call) ScoreNodes(ctx context.Context, r *apportionv1.ScoreNodesRequest) (*apportionv1.ScoreNodesResponse, error) {
	if r.GetNodes() == nil {
		return nil, c.server.fail(ctx, invalidRequest("nodes", "nothing is asked"))
	}
	basis, answers, err := c.decide(ctx, "ScoreNodes", r.GetInput(),
		&apportionv1.Step{Step: &apportionv1.Step_Nodes{Nodes: r.GetNodes()}})
	if err != nil {
		return nil, err
	}
	return &apportionv1.ScoreNodesResponse{Basis: basis, Nodes: answers[0].GetNodes()}, nil
}

// Explain explains why jobs wait.
func (c *call) Explain(ctx context.Context, r *apportionv1.ExplainRequest) (*apportionv1.ExplainResponse, error) {
	basis, answers, err := c.decide(ctx, "Explain", r.GetInput(),
		&apportionv1.Step{Step: &apportionv1.Step_Explain{Explain: r.GetExplain()}})
	if err != nil {
		return nil, err
	}
	return &apportionv1.ExplainResponse{Basis: basis, Explain: answers[0].GetExplain()}, nil
}

// Plan returns where a job can be placed, and which tasks must be evicted for it.
func (c *call) Plan(ctx context.Context, r *apportionv1.PlanRequest) (*apportionv1.PlanResponse, error) {
	if r.GetPlan() == nil {
		return nil, c.server.fail(ctx, invalidRequest("plan", "no question is given"))
	}
	basis, answers, err := c.decide(ctx, "Plan", r.GetInput(), &apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: r.GetPlan()}})
	if err != nil {
		return nil, err
	}
	return &apportionv1.PlanResponse{Basis: basis, Plan: answers[0].GetPlan()}, nil
}

// Remedies tells what would make a job run.
func (c *call) Remedies(ctx context.Context, r *apportionv1.RemediesRequest) (*apportionv1.RemediesResponse, error) {
	if r.GetRemedies() == nil {
		return nil, c.server.fail(ctx, invalidRequest("remedies", "no question is given"))
	}
	step := &apportionv1.Step{Step: &apportionv1.Step_Remedies{Remedies: r.GetRemedies()}}
	basis, answers, err := c.decide(ctx, "Remedies", r.GetInput(), step)
	if err != nil {
		return nil, err
	}
	return &apportionv1.RemediesResponse{Basis: basis, Remedies: answers[0].GetRemedies()}, nil
}

// Simulate runs a list of steps.
func (c *call) Simulate(ctx context.Context, r *apportionv1.SimulateRequest) (*apportionv1.SimulateResponse, error) {
	basis, answers, err := c.decide(ctx, "Simulate", r.GetInput(), r.GetSteps()...)
	if err != nil {
		return nil, err
	}
	return &apportionv1.SimulateResponse{Basis: basis, Answers: answers}, nil
}

// decide opens a session on the input of a unary call and answers steps. What it fails with is a status.
func (c *call) decide(
	ctx context.Context, method string, in *apportionv1.Input, steps ...*apportionv1.Step,
) (basis *apportionv1.Basis, answers []*apportionv1.Answer, err error) {
	s, sent := c.server, ctx
	ctx, cancel := c.limited(ctx)
	defer cancel()
	if !c.transported {
		sent = ctx
	}
	p := follow(ctx)
	seen := s.watch(ctx, method, in.GetPolicyName())
	var (
		o opened
		r *reply
	)
	leave, err := c.turn(p, method, in, steps)
	if err == nil {
		defer leave()
		r, err = c.reserve(sent)
	}
	if err == nil {
		o, err = c.open(ctx, in, p.stop, seen, steps)
	}
	if err == nil {
		o.session.Texts(in.GetTexts())
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
			o.audience.answers(answers)
		}
		if err == nil {
			err = r.grow(ctx, int64(bytes+o.basis.SizeVT()+fieldBytes), s.outbox.patience)
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

// limited returns a context that ends with CallTime, or when cancel is called. That of a call which came by a transport is the call's own,
// and ends after CallTime alone.
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
func (c *call) turn(p *progress, method string, in *apportionv1.Input, steps []*apportionv1.Step) (leave func(), err error) {
	return c.server.enter(p, rankOf(method), c.memory(p.ctx, in, steps))
}

// rankOf is which work of a method comes first.
func rankOf(method string) admission.Rank {
	if method == "Simulate" {
		return admission.Simulation
	}
	return admission.Decision
}
