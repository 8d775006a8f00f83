package service

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// call is a session for one unary call.
type call struct {
	*wire.Session

	basis *apportionv1.Basis
	seen  *record
	// release takes back what was lent, memory or session.
	release func()
}

// Ask answers one step, and notes it.
func (c call) Ask(step *apportionv1.Step) (*apportionv1.Answer, error) {
	answer, err := c.Session.Ask(step)
	c.seen.asked(c.Session, step, answer, err)
	return answer, err
}

// DoAll answers steps in order, and notes them.
func (c call) DoAll(steps []*apportionv1.Step) ([]*apportionv1.Answer, error) {
	answers, err := c.Session.DoAll(steps)
	c.seen.askedAll(c.Session, steps, answers, err)
	return answers, err
}

// ask opens a session on the input of a unary call and hands it on. What comes back is a status.
func (s *Service) ask(ctx context.Context, method string, in *apportionv1.Input, do func(call) error) error {
	if s.options.CallTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.options.CallTime)
		defer cancel()
	}
	stop, release := stopper(ctx)
	defer release()
	seen := s.watch(ctx, method, in.GetPolicyName())
	var c call
	leave, err := s.turn(ctx, method, in)
	if err == nil {
		defer leave()
		c, err = s.open(ctx, in, stop, seen)
	}
	if err == nil {
		c.seen = seen
		seen.begin(ctx, c.basis)
		err = do(c)
		seen.done()
	} else {
		seen.refused(err)
	}
	if err != nil {
		err = s.fail(ctx, err)
	}
	seen.end(ctx, err)
	// Not deferred: what a panic left behind is not used again.
	if c.release != nil {
		c.release()
	}
	return err
}

// stopper returns a function that is cheap to ask whether a context has ended.
func stopper(ctx context.Context) (stop func() bool, release func() bool) {
	var over atomic.Bool
	over.Store(ctx.Err() != nil)
	release = context.AfterFunc(ctx, func() { over.Store(true) })
	return over.Load, release
}

func (s *Service) open(ctx context.Context, in *apportionv1.Input, stop func() bool, seen *record) (call, error) {
	r, err := s.rule(in.GetPolicy(), in.GetPolicyName(), "input.")
	if err != nil {
		return call{}, err
	}
	seen.Policy = r.policy
	opened := phase(ctx, "open")
	defer opened()
	switch source := in.GetSource().(type) {
	case *apportionv1.Input_Snapshot:
		seen.Snapshot = snapshotOf(ctx, source.Snapshot)
		m, release, err := s.compile(ctx, source.Snapshot, stop)
		if err != nil {
			return call{}, err
		}
		session, err := s.openModel(m, r, stop)
		if err != nil {
			return call{release: release}, err
		}
		return call{Session: session, basis: session.Basis(), release: release}, nil
	case *apportionv1.Input_SnapshotDigest:
		h, err := s.find(ctx, source.SnapshotDigest, "input.snapshot_digest")
		if err != nil {
			return call{}, err
		}
		seen.Snapshot = Snapshot{Digest: h.key.digest, Model: h.model, Named: h.cluster}
		return s.openHeld(h, r, stop)
	}
	return call{}, invalidRequest("input.snapshot", "no snapshot is given, nor the digest of one")
}

// compile returns the model of the snapshot in a request, wherever its bytes are, and a function that takes the model's memory back.
func (s *Service) compile(ctx context.Context, snapshot *apportionv1.Snapshot, stop func() bool) (*model.Model, func(), error) {
	began := time.Now()
	if held, ok := heldSnapshot(ctx); ok {
		if err := s.permit(ctx, func() string { return wire.ClusterOf(held.data) }); err != nil {
			return nil, nil, err
		}
		g := s.guard(stop)
		g.Size = held.measure()
		m, release, err := compileHeld(held.data, g)
		s.metrics.compiledModel(began, m)
		return m, release, err
	}
	if err := s.permit(ctx, snapshot.GetCluster); err != nil {
		return nil, nil, err
	}
	// Whoever calls without gRPC, or writes an input in parts, is held to the same limits.
	data, err := proto.Marshal(snapshot)
	if err != nil {
		return nil, nil, invalidRequest("input.snapshot", "a text is not UTF-8")
	}
	m, err := new(wire.Decoder).CompileWithin(data, s.guard(stop))
	s.metrics.compiledModel(began, m)
	return m, func() {}, err
}

// turn waits until a unary call may be worked on.
func (s *Service) turn(ctx context.Context, method string, in *apportionv1.Input) (leave func(), err error) {
	r := decisionRank
	if method == "Simulate" {
		r = simulationRank
	}
	var bytes int64
	switch source := in.GetSource().(type) {
	case *apportionv1.Input_Snapshot:
		if held, ok := heldSnapshot(ctx); ok {
			bytes = held.measure().Memory()
		} else {
			bytes = questionMemory * int64(proto.Size(source.Snapshot))
		}
	case *apportionv1.Input_SnapshotDigest:
		bytes = s.cache.size(heldKey{IdentityOf(ctx), source.SnapshotDigest})
	}
	return s.admit(ctx, r, bytes)
}

// rule returns the policy given or named. prefix leads to the fields that hold them.
func (s *Service) rule(given *apportionv1.Policy, name, prefix string) (rule, error) {
	if given != nil {
		return rule{given, wire.PolicyDigest(given)}, nil
	}
	if name == "" {
		return rule{}, invalidRequest(prefix+"policy", "no policy is given, nor the name of one")
	}
	if r, ok := (*s.rules.Load())[name]; ok {
		return r, nil
	}
	return rule{}, &wire.Fault{
		Code: codes.NotFound, Reason: apportionv1.ErrorReason_ERROR_REASON_POLICY_NOT_FOUND, Field: prefix + "policy_name",
		Text: "no policy " + strconv.Quote(name) + " is configured",
	}
}
