package service

import (
	"context"
	"time"

	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire/method"
	"github.com/apportion/apportion/service/admission"
)

// EvaluateShares returns what each queue deserves and holds, and the order of queues.
func (c *call) EvaluateShares(ctx context.Context, r *apportionv1.EvaluateSharesRequest) (*apportionv1.EvaluateSharesResponse, error) {
	return answered(ctx, c, &method.EvaluateShares, r)
}

// CheckEnqueue decides which jobs may enter their queues.
func (c *call) CheckEnqueue(ctx context.Context, r *apportionv1.CheckEnqueueRequest) (*apportionv1.CheckEnqueueResponse, error) {
	return answered(ctx, c, &method.CheckEnqueue, r)
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

// decision is a unary call on its way through the stages. A stage finds what the stages before it have set.
type decision struct {
	call  *call
	name  string
	input *apportionv1.Input
	steps []*apportionv1.Step
	// ctx ends when the time of the call is over; sent ends when gRPC is done with its response.
	ctx, sent context.Context //nolint:containedctx // A decision lives as long as its call.

	progress *progress
	seen     *record
	// leave gives back the turn, reply has the memory that is booked for the response.
	leave func()
	reply *reply
	// begun: the decision has a session and is in the record.
	begun bool
	opened
	answers []*apportionv1.Answer
	// bytes is an upper estimate of the size of the answers.
	bytes int
}

// stages are what a unary call passes, one after the other up to the first that fails. Their order matters:
//
//   - A call waits for its turn before anything is spent on it, and books memory for its response before the session, whose memory is much
//     larger: it never holds a session while it waits for room to answer.
//   - The session is open before the record begins: the record has the digests of what was decided on.
//   - The response is complete before more memory is booked for it: what a caller may not see is gone, in the record too.
//
// The stages only acquire. decide gives back what they acquired, in every case, in the opposite order.
var stages = [...]func(*decision) error{
	(*decision).enter, (*decision).reserve, (*decision).open, (*decision).answer, (*decision).grow,
}

// decide answers steps on the input of a unary call. It fails with a status.
func (c *call) decide(
	ctx context.Context, name string, in *apportionv1.Input, steps []*apportionv1.Step,
) (*apportionv1.Basis, []*apportionv1.Answer, error) {
	limited, cancel := c.limited(ctx)
	defer cancel()
	d := decision{call: c, name: name, input: in, steps: steps, ctx: limited, sent: ctx}
	if !c.transported {
		d.sent = limited
	}
	d.progress, d.seen = follow(limited), c.server.watch(limited, name, in.GetPolicyName())
	defer d.exit()
	err := d.pass()
	if err != nil {
		if !d.begun {
			d.seen.refused(err)
		}
		err = c.server.fail(limited, err)
	}
	d.seen.end(limited, err)
	// Not deferred: what a panic left behind is not used again.
	if d.release != nil {
		d.release()
	}
	return d.basis, d.answers, err
}

// pass passes the stages up to the first that fails.
func (d *decision) pass() error {
	for _, stage := range stages {
		if err := stage(d); err != nil {
			return err
		}
	}
	return nil
}

// exit gives back the turn, if there was one, also after a panic.
func (d *decision) exit() {
	if d.leave != nil {
		d.leave()
	}
}

// enter waits for the call's turn.
func (d *decision) enter() (err error) {
	s := d.call.server
	d.leave, err = s.enter(d.progress, rankOf(d.name, len(d.steps)), d.call.memory(d.progress.ctx, d.input, d.steps))
	return err
}

// reserve books memory for the response.
func (d *decision) reserve() (err error) {
	d.reply, err = d.call.reserve(d.sent)
	return err
}

// open opens the session and begins the record.
func (d *decision) open() (err error) {
	if d.opened, err = d.call.open(d.ctx, d.input, d.progress, d.seen, d.steps); err != nil {
		return decode.InInput(err, "input.")
	}
	d.session.Show(d.input.GetTexts(), d.input.GetOmitNames())
	d.session.Remember(d.call.server.past(d.ctx))
	d.seen.Texts, d.seen.OmitNames = d.input.GetTexts(), d.input.GetOmitNames()
	d.seen.begin(d.ctx, d.basis)
	d.begun = true
	return nil
}

// answer answers the steps, into reused memory if gRPC encodes the response before anybody else may look at it, and removes what the caller
// may not see.
func (d *decision) answer() (err error) {
	if d.call.reply != nil {
		d.reply.room = takeRoom(d.seen, len(d.call.server.options.Unary))
		d.session.Use(d.reply.room)
	}
	d.answers, d.bytes, err = d.seen.ask(d.session, d.steps)
	d.session.Use(nil)
	d.seen.done()
	if d.audience != nil {
		d.audience.Redact(d.answers)
	}
	return err
}

// grow books what the response takes beyond what was reserved.
func (d *decision) grow() error {
	bytes := int64(d.bytes + d.basis.SizeVT() + fieldBytes)
	return d.reply.grow(d.ctx, d.progress.turn, bytes, d.call.server.outbox.patience)
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
	expiry := s.answering.begin(func() { end(decode.AsFault(policy.ErrStopped)) })
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
		context.AfterFunc(sent, r.Release)
	}
	return r, nil
}

// progress is the work for one call or session: it has a turn while it runs, and stops when its answer is no longer needed.
type progress struct {
	ctx    context.Context //nolint:containedctx // It is the call's.
	tenant string
	// over is closed once the answer is no longer needed.
	over <-chan struct{}
	turn *admission.Turn
	// began is when the work under way did, limit how long it may take; 0: until over is closed.
	began time.Time
	limit time.Duration
}

// follow returns the progress of a call whose context is ctx.
func follow(ctx context.Context) *progress {
	return &progress{ctx: ctx, tenant: TenantOf(ctx), over: ctx.Done()}
}

// stop lets others have their turn, and reports whether to stop. Long work asks it often.
func (p *progress) stop() bool {
	p.turn.Yield(p.ctx)
	select {
	case <-p.over:
		return true
	default:
		return p.limit > 0 && time.Since(p.began) > p.limit
	}
}

// book books memory that the work came to need.
func (p *progress) book(bytes int64) error { return p.turn.Grow(bytes) }

// enter waits until work of about that many bytes may begin. The work has a turn until leave is called.
func (s *Server) enter(p *progress, rank admission.Rank, bytes int64) (leave func(), err error) {
	turn, err := s.admission.Enter(p.ctx, admission.Work{Identity: p.tenant, Rank: rank, Bytes: bytes})
	if err != nil {
		if decode.AsFault(err).Retry > 0 {
			s.metrics.shed.WithLabelValues(rank.String()).Inc()
		}
		return nil, err
	}
	p.turn = turn
	return func() {
		p.turn = nil
		turn.Leave()
	}, nil
}
