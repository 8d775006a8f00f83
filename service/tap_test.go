package service_test

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/apportion/apportion/service"
)

type tapKey struct{}

func TestATapRefusesACallAndHealthPassesIt(t *testing.T) {
	refused := status.Error(codes.ResourceExhausted, "not today")
	r := start(t, service.Options{Tap: []tap.ServerInHandle{
		func(context.Context, *tap.Info) (context.Context, error) { return nil, refused },
	}})
	_, err := r.Simulate(t.Context(), emptyRequest())
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Equal(t, healthv1.HealthCheckResponse_SERVING, healthOf(t, r, ""))
	require.Error(t, r.conn.Invoke(t.Context(), "/made.up/Name", emptyRequest(), emptyRequest()))

	requireCount(t, r.server.Registry(), 1, "/apportion.v1.ApportionService/Simulate", "ResourceExhausted")
	requireCount(t, r.server.Registry(), 1, "other", "ResourceExhausted")
}

func requireCount(t *testing.T, registry *prometheus.Registry, want int, labels ...string) {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	got := 0
	for _, family := range families {
		if family.GetName() != "apportion_calls_refused_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			values := map[string]bool{}
			for _, l := range m.GetLabel() {
				values[l.GetValue()] = true
			}
			if values[labels[0]] && values[labels[1]] {
				got += int(m.GetCounter().GetValue())
			}
		}
	}
	require.Equal(t, want, got, labels)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestTapsAreAskedInOrderAndPassAContextOn(t *testing.T) {
	var seen any
	r := start(t, service.Options{
		Tap: []tap.ServerInHandle{
			func(ctx context.Context, _ *tap.Info) (context.Context, error) {
				return context.WithValue(ctx, tapKey{}, 7), nil
			},
			func(ctx context.Context, _ *tap.Info) (context.Context, error) {
				if ctx.Value(tapKey{}) != 7 {
					return nil, errors.New("the first tap is not heard")
				}
				return ctx, nil
			},
		},
		Unary: []grpc.UnaryServerInterceptor{
			func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
				seen = ctx.Value(tapKey{})
				return handle(ctx, request)
			},
		},
	})
	_, err := r.Simulate(t.Context(), emptyRequest())
	require.NoError(t, err)
	require.Equal(t, 7, seen)
}
