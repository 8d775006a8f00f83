package service

import (
	"context"
	"strconv"
	"sync/atomic"

	"google.golang.org/grpc/codes"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// call is a session for one unary call.
type call struct {
	*wire.Session

	basis *apportionv1.Basis
	// release takes back what was lent, memory or session.
	release func()
}

// ask opens a session on the input of a unary call and hands it on. What comes back is a status.
func (s *Service) ask(ctx context.Context, in *apportionv1.Input, do func(call) error) error {
	if s.options.CallTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.options.CallTime)
		defer cancel()
	}
	stop, release := stopper(ctx)
	defer release()
	c, err := s.open(ctx, in, stop)
	if err == nil {
		err = do(c)
	}
	// Not deferred: what a panic left behind is not used again.
	if c.release != nil {
		c.release()
	}
	if err != nil {
		return s.fail(ctx, err)
	}
	return nil
}

// stopper returns a function that is cheap to ask whether a context has ended.
func stopper(ctx context.Context) (stop func() bool, release func() bool) {
	var over atomic.Bool
	over.Store(ctx.Err() != nil)
	release = context.AfterFunc(ctx, func() { over.Store(true) })
	return over.Load, release
}

func (s *Service) open(ctx context.Context, in *apportionv1.Input, stop func() bool) (call, error) {
	r, err := s.rule(in.GetPolicy(), in.GetPolicyName(), "input.")
	if err != nil {
		return call{}, err
	}
	switch source := in.GetSource().(type) {
	case *apportionv1.Input_Snapshot:
		m, release, err := compile(ctx, source.Snapshot)
		if err != nil {
			return call{}, err
		}
		session, err := s.openModel(m, r, stop)
		if err != nil {
			return call{release: release}, err
		}
		return call{session, session.Basis(), release}, nil
	case *apportionv1.Input_SnapshotDigest:
		h, err := s.find(ctx, source.SnapshotDigest, "input.snapshot_digest")
		if err != nil {
			return call{}, err
		}
		return s.openHeld(h, r, stop)
	}
	return call{}, invalidRequest("input.snapshot", "no snapshot is given, nor the digest of one")
}

// compile returns the model of the snapshot in a request, wherever its bytes are, and a function that takes the model's memory back.
func compile(ctx context.Context, snapshot *apportionv1.Snapshot) (*model.Model, func(), error) {
	if data, ok := heldSnapshot(ctx); ok {
		return compileHeld(data)
	}
	m, err := wire.Compile(snapshot)
	return m, func() {}, err
}

// rule returns the policy given or named. prefix leads to the fields that hold them.
func (s *Service) rule(given *apportionv1.Policy, name, prefix string) (rule, error) {
	if given != nil {
		return rule{given, wire.PolicyDigest(given)}, nil
	}
	if name == "" {
		return rule{}, invalidRequest(prefix+"policy", "no policy is given, nor the name of one")
	}
	if r, ok := s.rules[name]; ok {
		return r, nil
	}
	return rule{}, &wire.Fault{
		Code: codes.NotFound, Reason: apportionv1.ErrorReason_ERROR_REASON_POLICY_NOT_FOUND, Field: prefix + "policy_name",
		Text: "no policy " + strconv.Quote(name) + " is configured",
	}
}
