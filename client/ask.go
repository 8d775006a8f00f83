package client

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/processor"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/internal/wire/method"
)

// question is a unary call, with the answers of the fallbacks.
type question[Q method.Request, A any] struct {
	kind   Kind
	method *method.Method[Q, A]
	// call is the method of a service.
	call func(*stubs, context.Context, Q, ...grpc.CallOption) (A, error)
	// fault returns why a response is none; nil: every response is one.
	fault func(A) error
	// answer returns the answer of FailClosed or FailOpen; false if they have none.
	answer func(vote apportionv1.Vote) (A, bool)
}

// asking is one question that is asked as the steps of a simulation, and fails with the first of them that fails.
func asking(
	kind Kind, instead func(apportionv1.Vote) ([]*apportionv1.Answer, bool),
) question[*apportionv1.SimulateRequest, *apportionv1.SimulateResponse] {
	return question[*apportionv1.SimulateRequest, *apportionv1.SimulateResponse]{
		kind: kind, method: &method.Simulate, call: (*stubs).Simulate,
		fault: func(response *apportionv1.SimulateResponse) error {
			for _, answer := range response.GetAnswers() {
				if fault := answer.GetError(); fault != nil {
					return status.FromProto(fault).Err()
				}
			}
			return nil
		},
		answer: func(vote apportionv1.Vote) (*apportionv1.SimulateResponse, bool) {
			answers, ok := instead(vote)
			return &apportionv1.SimulateResponse{Answers: answers}, ok
		},
	}
}

// ask makes a call.
func (q question[Q, A]) ask(ctx context.Context, c *Client, in Input, request Q) (response A, from origin, err error) {
	within, cancel := c.within(ctx, q.kind)
	defer cancel()
	answer, at, err := q.made(within, c, in, request)
	if err == nil && q.fault != nil {
		err = q.fault(answer)
	}
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
		return answer, at, err == nil && (q.fault == nil || q.fault(answer) == nil)
	case FailClosed:
		answer, ok = q.answer(apportionv1.Vote_VOTE_REJECT)
	case FailOpen:
		answer, ok = q.answer(apportionv1.Vote_VOTE_PERMIT)
	}
	return answer, nil, ok
}

// unanswerable is the answer function of questions without a plain yes or no.
func unanswerable[A any](apportionv1.Vote) (none A, ok bool) { return none, false }

// local answers the calls of the contract in process. Its errors are those of the service.
type local struct {
	policies map[string]*apportionv1.Policy
	// compiled returns what replaces the snapshot of a request, if it is not nil.
	compiled func() (*model.Model, error)
}

// about returns the engine for requests about an input, and how its State is held, if it has one.
func (l local) about(ctx context.Context, in Input) (local, *held, error) {
	if in.State == nil {
		if in.Upload != nil {
			l.compiled = in.Upload.compiled
		}
		return l, nil, nil
	}
	at, err := in.State.inProcess(ctx, stopped(ctx))
	if err != nil {
		return l, nil, err
	}
	l.compiled = func() (*model.Model, error) { return at.model, nil }
	return l, at, nil
}

// failure returns an error as a service would return it.
func failure(err error) error {
	if err == nil {
		return nil
	}
	return status.FromProto(decode.Status(err)).Err()
}

// open returns a session on the input of a request. Long work ends when stop returns true.
func (l local) open(in *apportionv1.Input, stop func() bool) (*wire.Session, error) {
	policy := in.GetPolicy()
	if name := in.GetPolicyName(); policy == nil && name == "" {
		return nil, failure(method.NoPolicy("input."))
	} else if policy == nil {
		if policy = l.policies[name]; policy == nil {
			return nil, failure(method.UnknownPolicy("input.", name))
		}
	}
	compile := l.compiled
	if compile == nil {
		snapshot := in.GetSnapshot()
		if snapshot == nil {
			return nil, failure(method.NoSnapshot())
		}
		compile = func() (*model.Model, error) { return decode.Compile(snapshot) }
	}
	compiled, err := compile()
	if err != nil {
		return nil, failure(decode.InInput(err, "input."))
	}
	session, err := wire.Open(compiled, policy, wire.Options{Stop: stop, Beside: processor.Beside})
	if err != nil {
		return nil, failure(decode.InInput(err, "input."))
	}
	if err := session.Continue(in.GetEvents(), 0, in.GetEdits(), "input."); err != nil {
		return nil, failure(err)
	}
	session.Show(in.GetTexts(), in.GetOmitNames())
	return session, nil
}

// stopped reports whether the answer is no longer needed.
func stopped(ctx context.Context) func() bool { return func() bool { return ctx.Err() != nil } }

// answered returns the answer to a call in process.
func answered[Q method.Request, A any](ctx context.Context, l local, m *method.Method[Q, A], request Q) (response A, err error) {
	steps, err := m.Steps(request)
	if err != nil {
		return response, failure(err)
	}
	session, err := l.open(request.GetInput(), stopped(ctx))
	if err != nil {
		return response, err
	}
	// Warnings refer to the snapshot before the steps.
	basis := session.Basis()
	answers, err := method.Ask(session, m.Name, steps)
	if err != nil {
		return response, failure(err)
	}
	return m.Response(basis, answers), nil
}

// down reports whether an error means that the service did not answer, as opposed to an error in its answer.
func down(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Unknown:
		return true
	default:
		return busy(err)
	}
}

// fallback returns the fallback for a service that failed; "": none.
func (c *Client) fallback(ctx context.Context, kind Kind, err error) Fallback {
	if c.remote == nil || !down(err) || errors.Is(ctx.Err(), context.Canceled) {
		return ""
	}
	return c.fallbacks[kind]
}

// fellBack logs and counts the answer of a fallback.
func (c *Client) fellBack(ctx context.Context, kind Kind, by Fallback, err error) {
	c.logger.LogAttrs(ctx, slog.LevelWarn, "the service did not answer; a fallback did",
		slog.String("kind", string(kind)), slog.String("fallback", string(by)), slog.Any("error", err))
	count(ctx, c.counters.fallbacks, attribute.String("kind", string(kind)), attribute.String("fallback", string(by)))
}

// plainEnqueue gives all jobs the same answer: the requested ones, or all of the snapshot, of which the action considers only the pending
// ones. It has no answer about a job that the snapshot does not have.
func plainEnqueue(in Input, q EnqueueQuestion, vote apportionv1.Vote) (*apportionv1.CheckEnqueueResponse, bool) {
	answer := &apportionv1.EnqueueAnswer{}
	add := func(index int, job *apportionv1.Job) {
		answer.Jobs = append(answer.Jobs, &apportionv1.EnqueueVerdict{
			Job: uint32(index), Uid: uidOf(job), Verdict: &apportionv1.Verdict{Vote: vote},
		})
	}
	jobs := in.snapshot().GetJobs()
	if q.Jobs == nil {
		for i, job := range jobs {
			pending := job.GetPhase() <= apportionv1.JobPhase_JOB_PHASE_PENDING
			if pending || !q.AsAction {
				add(i, job)
			}
		}
	}
	index := make(map[string]int, len(jobs))
	for i := 0; i < len(jobs) && len(q.Jobs) > 0; i++ {
		index[uidOf(jobs[i])] = i
	}
	for _, uid := range q.Jobs {
		i, found := index[uid]
		if !found {
			return nil, false
		}
		add(i, jobs[i])
	}
	return &apportionv1.CheckEnqueueResponse{Enqueue: answer}, true
}

// plainAllocatable gives all tasks the same answer, and never permits them to take from others.
func plainAllocatable(q AllocatableQuestion, vote apportionv1.Vote) []*apportionv1.Answer {
	verdicts := func(vote apportionv1.Vote) []*apportionv1.TaskVerdict {
		if q.Jointly {
			return []*apportionv1.TaskVerdict{{Verdict: &apportionv1.Verdict{Vote: vote}}}
		}
		list := make([]*apportionv1.TaskVerdict, len(q.Tasks))
		for i := range list {
			list[i] = &apportionv1.TaskVerdict{Verdict: &apportionv1.Verdict{Vote: vote}}
		}
		return list
	}
	answers := []*apportionv1.Answer{{Answer: &apportionv1.Answer_Allocatable{
		Allocatable: &apportionv1.AllocatableAnswer{Tasks: verdicts(vote)},
	}}}
	if q.Preemptive {
		answers = append(answers, &apportionv1.Answer{Answer: &apportionv1.Answer_Preemptive{
			Preemptive: &apportionv1.PreemptiveAnswer{Tasks: verdicts(apportionv1.Vote_VOTE_REJECT)},
		}})
	}
	return answers
}

// plainNodes answers that no node fits.
func plainNodes(in Input, q NodesQuestion) []*apportionv1.Answer {
	answer := &apportionv1.NodesAnswer{}
	for range q.Tasks {
		row := &apportionv1.TaskNodes{}
		for i, node := range in.snapshot().GetNodes() {
			if q.Top == 0 && (q.Nodes == nil || slices.Contains(q.Nodes, node.GetName())) {
				row.Nodes, row.Fits, row.Scores = append(row.Nodes, uint32(i)), append(row.Fits, false), append(row.Scores, 0)
			}
		}
		answer.Tasks = append(answer.Tasks, row)
	}
	return []*apportionv1.Answer{{Answer: &apportionv1.Answer_Nodes{Nodes: answer}}}
}
