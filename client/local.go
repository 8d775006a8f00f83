package client

import (
	"context"

	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/processor"
	"github.com/apportion/apportion/internal/wire"
	"github.com/apportion/apportion/internal/wire/method"
)

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
		return nil, failure(err)
	}
	session, err := wire.Open(compiled, policy, wire.Options{Stop: stop, Beside: processor.Beside})
	if err != nil {
		return nil, failure(err)
	}
	session.Texts(in.GetTexts())
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
