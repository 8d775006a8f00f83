package client_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
)

// unused is an address that nothing listens on.
func unused(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// silent is an address that takes connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	return listener.Addr().String()
}

func lonely(t *testing.T, address string, options ...client.Option) *client.Client {
	t.Helper()
	c, err := client.Dial(address, append([]client.Option{
		client.WithPlaintext(), client.WithAttempts(2), client.WithLogger(slog.New(slog.DiscardHandler)),
	}, options...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

var (
	bothTasks = client.AllocatableQuestion{Tasks: []string{"ml/train-0", "ml/train-1"}, Preemptive: true}
	claim     = client.VictimsQuestion{Claimant: "ml/train-0"}
	places    = client.NodesQuestion{Tasks: []string{"ml/train-0"}}
)

func TestNothingIsMadeUpUnlessAFallbackIsNamed(t *testing.T) {
	c, in := lonely(t, unused(t)), client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}
	_, err := c.Enqueue(t.Context(), in, client.EnqueueQuestion{})
	require.Equal(t, codes.Unavailable, status.Code(err))
	_, err = c.OpenSession(t.Context(), in)
	require.Equal(t, codes.Unavailable, status.Code(err))
}

func TestFailClosedSaysNoToEverything(t *testing.T) {
	c, in := lonely(t, unused(t), client.WithFallback(client.FailClosed)), client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}
	admissions, err := c.Enqueue(t.Context(), in, client.EnqueueQuestion{AsAction: true})
	require.NoError(t, err)
	require.Equal(t, client.FailClosed, admissions.Fallback)
	require.Len(t, admissions.Jobs, 2, "those that are pending")
	require.Equal(t, "ml/train", admissions.Jobs[0].Job)
	require.False(t, admissions.Jobs[0].Permitted)
	require.Equal(t, "the service did not answer", admissions.Jobs[0].Why)
	require.Equal(t, uint32(1), admissions.Answer.GetJobs()[0].GetJob())

	allowances, err := c.Allocatable(t.Context(), in, bothTasks)
	require.NoError(t, err)
	require.False(t, allowances.Permitted())
	require.Equal(t, "ml/train-1", allowances.Allocatable[1].Task)
	require.Equal(t, "the service did not answer", allowances.Why())

	victims, err := c.Victims(t.Context(), in, claim)
	require.NoError(t, err)
	require.True(t, victims.Decided)
	require.Empty(t, victims.Tasks)

	scores, err := c.ScoreNodes(t.Context(), in, places)
	require.NoError(t, err)
	require.Len(t, scores.Tasks[0].Nodes, 2)
	require.False(t, scores.Tasks[0].Nodes[1].Fits)

	_, err = c.Shares(t.Context(), in, client.SharesQuestion{})
	require.Equal(t, codes.Unavailable, status.Code(err), "shares are neither yes nor no")
	_, err = c.Enqueue(t.Context(), in, client.EnqueueQuestion{Jobs: []string{"ml/unknown"}})
	require.Equal(t, codes.Unavailable, status.Code(err), "nor is there an answer about what is not there")
}

func TestFailOpenLetsInAndEvictsNobody(t *testing.T) {
	c, in := lonely(t, unused(t), client.WithFallback(client.FailOpen)), client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}
	admissions, err := c.Enqueue(t.Context(), in, client.EnqueueQuestion{Jobs: []string{"attic/old", "ml/train"}})
	require.NoError(t, err)
	require.Equal(t, client.FailOpen, admissions.Fallback)
	require.True(t, admissions.Jobs[0].Permitted)
	require.Equal(t, uint32(2), admissions.Answer.GetJobs()[0].GetJob())
	allowances, err := c.Allocatable(t.Context(), in, bothTasks)
	require.NoError(t, err)
	require.True(t, allowances.Permitted())
	require.False(t, allowances.Preemptive[0].Permitted, "nothing is taken from others")
	_, err = c.Victims(t.Context(), in, claim)
	require.Equal(t, codes.Unavailable, status.Code(err))
}

func TestTheEngineDecidesAsTheServiceWould(t *testing.T) {
	c := lonely(t, unused(t), client.WithFallback(client.FallbackEngine), client.WithPolicy("house", proportional(t)))
	own := client.InProcess()
	snapshot := twoTeams(t)
	in := client.Input{Snapshot: snapshot, PolicyName: "house"}
	inline := client.Input{Snapshot: snapshot, Policy: proportional(t)}

	shares, err := c.Shares(t.Context(), in, client.SharesQuestion{})
	require.NoError(t, err)
	require.Equal(t, client.FallbackEngine, shares.Fallback)
	want, err := own.Shares(t.Context(), inline, client.SharesQuestion{})
	require.NoError(t, err)
	require.Equal(t, want.Answer.String(), shares.Answer.String())

	victims, err := c.Victims(t.Context(), in, client.VictimsQuestion{Claimant: "ml/train-0", Candidates: []string{"web/shop-2"}})
	require.NoError(t, err)
	require.Equal(t, []string{"web/shop-2"}, victims.Tasks)
	simulation, err := c.Simulate(t.Context(), in, deallocate("web/shop-0"))
	require.NoError(t, err)
	require.Equal(t, client.FallbackEngine, simulation.Fallback)

	session, err := c.OpenSession(t.Context(), in)
	require.NoError(t, err)
	answers, err := session.Do(t.Context(), deallocate("web/shop-0"))
	require.NoError(t, err)
	require.Nil(t, answers[0].GetError())
	require.NoError(t, session.Close())
}

func TestASessionGoesOnInProcessWhenEveryReplicaIsLost(t *testing.T) {
	for name, tc := range map[string]struct {
		options []client.Option
		err     string
	}{
		"with the service's policy": {[]client.Option{client.WithPolicy("house", proportional(t))}, ""},
		"without it":                {nil, "in-process fallback failed too: "},
		"with another policy":       {[]client.Option{client.WithPolicy("house", client.VolcanoDefault())}, "policy or engine have changed"},
	} {
		r := startReplica(t, house(t, proportional(t)))
		c := dialAll(t, []*replica{r},
			append(tc.options, client.WithFallback(client.FallbackEngine, client.KindSession), client.WithAttempts(2))...)
		session, err := c.OpenSession(t.Context(), client.Input{Snapshot: twoTeams(t), PolicyName: "house"})
		require.NoError(t, err, name)
		_, err = session.Do(t.Context(), deallocate("web/shop-0"))
		require.NoError(t, err, name)
		r.kill()
		answers, err := session.Do(t.Context(), shares())
		if tc.err != "" {
			require.ErrorContains(t, err, tc.err, name)
			require.Equal(t, codes.Unavailable, status.Code(err), "the service may come back")
		} else {
			require.NoError(t, err, name)
			read := client.Shares{Basis: session.Basis(), Answer: answers[0].GetShares()}
			web, _ := read.Queue("web")
			require.Equal(t, "8", web.Allocated["cpu"], name)
		}
		require.NoError(t, session.Close())
	}
}

func TestAQuestionThatIsAtFaultHasNoFallback(t *testing.T) {
	r := startReplica(t, service.Options{})
	c := dialAll(t, []*replica{r}, client.WithFallback(client.FailOpen))
	_, err := c.Enqueue(t.Context(), client.Input{Snapshot: twoTeams(t), PolicyName: "castle"}, client.EnqueueQuestion{})
	require.Equal(t, apportionv1.ErrorReason_ERROR_REASON_POLICY_NOT_FOUND, client.Reason(err))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Enqueue(ctx, client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}, client.EnqueueQuestion{})
	require.Equal(t, codes.Canceled, status.Code(err), "nor is there one for a caller that has gone")
}

func TestWhoIsTooSlowIsNotWaitedFor(t *testing.T) {
	c := lonely(t, silent(t), client.WithFallback(client.FailClosed, client.KindEnqueue),
		client.WithDeadline(50*time.Millisecond, client.KindEnqueue, client.KindSession))
	in := client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}
	admissions, err := c.Enqueue(t.Context(), in, client.EnqueueQuestion{})
	require.NoError(t, err)
	require.Equal(t, client.FailClosed, admissions.Fallback)
	_, err = c.OpenSession(t.Context(), in)
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
}

func TestAFallbackThatCannotAnswerIsRefused(t *testing.T) {
	for fallback, kind := range map[client.Fallback]client.Kind{
		client.FailOpen: client.KindVictims, client.FailClosed: client.KindShares, client.FallbackEngine: client.KindUpload, "ask mother": client.KindNodes,
	} {
		_, err := client.Dial("localhost:1", client.WithFallback(fallback, kind))
		require.ErrorContains(t, err, "fallback", fallback)
	}
}

func TestFallbacksAreLoggedAndCounted(t *testing.T) {
	var log bytes.Buffer
	reader := sdkmetric.NewManualReader()
	c := lonely(t, unused(t), client.WithFallback(client.FailClosed), client.WithMeter(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
		client.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	in := client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}
	for range 3 {
		_, err := c.Victims(t.Context(), in, claim)
		require.NoError(t, err)
	}
	require.Contains(t, log.String(), `level=WARN msg="the service did not answer; a fallback did" kind=victims fallback=closed error="rpc error:`)
	var metrics metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &metrics))
	counts := map[string]int64{}
	attempts := false
	for _, scope := range metrics.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && scope.Scope.Name == "github.com/apportion/apportion/client" {
				counts[m.Name] = sum.DataPoints[0].Value
			}
			attempts = attempts || m.Name == "grpc.client.attempt.duration"
		}
	}
	require.Equal(t, map[string]int64{"apportion.client.fallbacks": 3, "apportion.client.retries": 3}, counts)
	require.True(t, attempts, "gRPC's own metrics are there too")
}

func TestCallsAreTraced(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	r := startReplica(t, service.Options{})
	c := dialAll(t, []*replica{r}, client.WithTracer(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)), nil))
	_, err := c.Shares(t.Context(), client.Input{Snapshot: twoTeams(t), Policy: proportional(t)}, client.SharesQuestion{})
	require.NoError(t, err)
	names := map[string]bool{}
	for _, span := range recorder.Ended() {
		names[span.Name()] = true
	}
	require.Contains(t, names, "Sent.apportion.v1.DecisionService.EvaluateShares")
}
