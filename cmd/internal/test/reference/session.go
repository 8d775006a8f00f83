package reference

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

// Session answers steps, each on the state after the steps before it. An error is a gRPC status.
type Session interface {
	Do(ctx context.Context, steps ...*apportionv1.Step) ([]*apportionv1.Answer, error)
	Basis() *apportionv1.Basis
	Close() error
}

// local is a session in this process, on a snapshot that came as bytes.
type local struct{ session *wire.Session }

func openLocal(_ context.Context, snapshot *apportionv1.Snapshot, policy *apportionv1.Policy) (Session, error) {
	data, err := proto.Marshal(snapshot)
	if err != nil {
		return nil, err
	}
	model, err := decode.CompileBytes(data)
	if err != nil {
		return nil, statusOf(err)
	}
	session, err := wire.Open(model, policy, wire.Options{})
	if err != nil {
		return nil, statusOf(err)
	}
	return local{session}, nil
}

// Do answers steps in order.
func (l local) Do(_ context.Context, steps ...*apportionv1.Step) ([]*apportionv1.Answer, error) {
	answers := make([]*apportionv1.Answer, len(steps))
	for i, step := range steps {
		answers[i] = l.session.Do(step)
	}
	return answers, nil
}

// Basis returns what the answers rest on.
func (l local) Basis() *apportionv1.Basis { return l.session.Basis() }

// Close has nothing to end.
func (local) Close() error { return nil }

// openWith returns how a client opens sessions.
func openWith(c *client.Client) func(context.Context, *apportionv1.Snapshot, *apportionv1.Policy) (Session, error) {
	return func(ctx context.Context, snapshot *apportionv1.Snapshot, policy *apportionv1.Policy) (Session, error) {
		session, err := c.OpenSession(ctx, client.Input{Snapshot: snapshot, Policy: policy})
		if err != nil {
			return nil, err
		}
		return session, nil
	}
}
