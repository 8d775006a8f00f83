package service_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
)

// call calls one method with a request in text format.
type method func(t *testing.T, r *replica, request string) error

func simulate(t *testing.T, r *replica, request string) error {
	t.Helper()
	_, err := r.Simulate(t.Context(), parse(t, &apportionv1.SimulateRequest{}, request))
	return err
}

func TestAFaultyRequestNamesItsField(t *testing.T) {
	shares := func(t *testing.T, r *replica, request string) error {
		t.Helper()
		_, err := r.EvaluateShares(t.Context(), parse(t, &apportionv1.EvaluateSharesRequest{}, request))
		return err
	}
	enqueue := func(t *testing.T, r *replica, request string) error {
		t.Helper()
		_, err := r.CheckEnqueue(t.Context(), parse(t, &apportionv1.CheckEnqueueRequest{}, request))
		return err
	}
	plan := func(t *testing.T, r *replica, request string) error {
		t.Helper()
		_, err := r.Plan(t.Context(), parse(t, &apportionv1.PlanRequest{}, request))
		return err
	}
	const whole = `input { snapshot {} policy {} } `
	for _, c := range []struct {
		name       string
		call       method
		request    string
		code       codes.Code
		reason     string
		metadata   map[string]string
		violations []string
	}{
		{
			"no input at all", simulate, ``, codes.InvalidArgument, "INVALID_REQUEST",
			map[string]string{"violations": "1"},
			[]string{"input.policy: neither a policy nor the name of one is given"},
		},
		{
			"no snapshot", simulate, `input { policy {} }`, codes.InvalidArgument, "INVALID_REQUEST",
			map[string]string{"violations": "1"},
			[]string{"input.snapshot: neither a snapshot nor the digest or name of one is given"},
		},
		{
			"a policy that is not configured", simulate, `input { snapshot {} policy_name: "spot" }`, codes.NotFound, "POLICY_NOT_FOUND",
			map[string]string{"field": "input.policy_name"},
			nil,
		},
		{
			"a snapshot with two faults", shares, `input { snapshot { queues { name: "a" } queues { name: "a" } jobs { uid: "j" queue: "b" } } policy {} }`,
			codes.InvalidArgument, "INVALID_SNAPSHOT",
			map[string]string{"violations": "2"},
			[]string{`input.snapshot.queues[1].name: queue "a" is queues[0] already`, `input.snapshot.jobs[0].queue: no queue "b"`},
		},
		{
			"a policy with a nameless plugin", shares, `input { snapshot {} policy { tiers { plugins {} } } }`,
			codes.InvalidArgument, "INVALID_POLICY",
			map[string]string{"violations": "1"},
			[]string{"input.policy.tiers[0].plugins[0].plugin: the plugin has no kind that this version supports"},
		},
		{
			"a selection of what is not there", shares, whole + `shares { queues { indices: 3 names: "x" } }`,
			codes.InvalidArgument, "INVALID_STEP",
			map[string]string{"violations": "2"},
			[]string{"shares.queues.indices[0]: no queue 3, there are 0", `shares.queues.names[0]: no queue "x"`},
		},
		{
			"an unknown mode", enqueue, whole + `enqueue { mode: 99 }`, codes.InvalidArgument, "INVALID_STEP",
			map[string]string{"violations": "1"},
			[]string{"enqueue.mode: no mode 99"},
		},
		{
			"no job to plan for", plan, whole, codes.InvalidArgument, "INVALID_REQUEST",
			map[string]string{"violations": "1"},
			[]string{"plan: the request has no question"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, service.Options{})
			metadata, violations := requireFault(t, c.call(t, r, c.request), c.code, c.reason)
			require.Equal(t, c.metadata, metadata)
			require.Equal(t, c.violations, violations)
		})
	}
}

func TestManyViolationsAreCountedAndTheFirstFewAreListedWithinAHeader(t *testing.T) {
	r := start(t, service.Options{})
	var snapshot strings.Builder
	for i := range 500 {
		fmt.Fprintf(&snapshot, `jobs { uid: "j%d" queue: "%s" }`, i, strings.Repeat("q", 100))
	}
	err := simulate(t, r, `input { policy {} snapshot {`+snapshot.String()+`} }`)
	metadata, violations := requireFault(t, err, codes.InvalidArgument, "INVALID_SNAPSHOT")
	require.Equal(t, "500", metadata["violations"])
	size := 0
	for _, v := range violations {
		size += len(v)
	}
	require.Less(t, size, 4<<10)
	require.Greater(t, len(violations), 20)
	require.LessOrEqual(t, len(violations), 50)
	require.Equal(t, `input.snapshot.jobs[0].queue: no queue "`+strings.Repeat("q", 100)+`"`, violations[0])
}

func TestAnAnswerThatIsTooLargeSaysWhatToNarrow(t *testing.T) {
	r := start(t, service.Options{Limit: setting.Limit{AnswerBytes: 1000}})
	in := inputOf(t)
	for range 50 {
		in.GetSnapshot().Queues = append(in.GetSnapshot().GetQueues(), &apportionv1.Queue{Name: fmt.Sprint(len(in.GetSnapshot().GetQueues()))})
	}
	_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
	metadata, _ := requireFault(t, err, codes.OutOfRange, "ANSWER_TOO_LARGE")
	require.Equal(t, map[string]string{"narrow": "shares.queues", "limit": "answer_bytes", "maximum": "1000"}, metadata)

	_, err = r.Simulate(t.Context(), parse(t, &apportionv1.SimulateRequest{Input: in}, strings.Repeat(`steps { mark {} }`, 100)))
	metadata, _ = requireFault(t, err, codes.OutOfRange, "ANSWER_TOO_LARGE")
	require.Equal(t, "steps", metadata["narrow"])
}

func TestAConfiguredPolicyIsNamed(t *testing.T) {
	gang := parse(t, &apportionv1.Policy{}, `tiers { plugins { gang {} } }`)
	r := start(t, service.Options{Policies: map[string]*apportionv1.Policy{"gangs": gang}})
	named, err := r.Simulate(t.Context(), parse(t, &apportionv1.SimulateRequest{}, `input { snapshot {} policy_name: "gangs" }`))
	require.NoError(t, err)
	given, err := r.Simulate(t.Context(), parse(t, &apportionv1.SimulateRequest{}, `input { snapshot {} policy { tiers { plugins { gang {} } } } }`))
	require.NoError(t, err)
	require.Equal(t, given.GetBasis().GetPolicyDigest(), named.GetBasis().GetPolicyDigest())
}

func TestAFaultyPolicyOfTheOperatorIsRefusedAtOnce(t *testing.T) {
	_, err := service.New(service.Options{Policies: map[string]*apportionv1.Policy{
		"good": {}, "bad": {Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{{}}}}},
	}})
	require.ErrorContains(t, err, `policy "bad": `)
	require.ErrorContains(t, err, "policy.tiers[0].plugins[0].plugin")
	require.NotContains(t, err.Error(), `"good"`)
}

func TestAMessageThatIsTooLargeIsRefusedByItsLengthAlone(t *testing.T) {
	r := start(t, service.Options{Limit: setting.Limit{MessageBytes: 1000}})
	in := inputOf(t)
	in.GetSnapshot().Cluster = strings.Repeat("x", 1000)
	_, err := r.Simulate(t.Context(), &apportionv1.SimulateRequest{Input: in})
	requireLimit(t, err, "message_bytes", "1000")
}

// garbage sends bytes that are no message.
type garbage struct{}

func (garbage) Marshal(any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer("\xff\xff\xff")}, nil
}
func (garbage) Unmarshal(mem.BufferSlice, any) error { return nil }
func (garbage) Name() string                         { return "proto" }

var _ encoding.CodecV2 = garbage{}

func TestBytesThatAreNoMessageAreTheCallersFault(t *testing.T) {
	r := start(t, service.Options{})
	err := r.conn.Invoke(t.Context(), apportionv1.DecisionService_Simulate_FullMethodName,
		&apportionv1.SimulateRequest{}, &apportionv1.SimulateResponse{}, grpc.ForceCodecV2(garbage{}))
	requireFault(t, err, codes.InvalidArgument, "INVALID_REQUEST")
}

func TestAPanicIsLoggedAndTellsTheCallerNothing(t *testing.T) {
	var log bytes.Buffer
	r := start(t, service.Options{
		Logger: slog.New(slog.NewJSONHandler(&log, nil)),
		Unary: []grpc.UnaryServerInterceptor{
			func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
				panic("secret of the house")
			},
		},
	})
	err := simulate(t, r, `input { snapshot {} policy {} }`)
	requireFault(t, err, codes.Internal, "INTERNAL")
	require.NotContains(t, err.Error(), "secret")
	require.Contains(t, log.String(), "secret of the house")
	require.Contains(t, log.String(), `"grpc_code":"Internal"`)
	require.Equal(t, 1.0, metric(t, r, "apportion_panics_recovered_total"))
	require.Equal(t, 1.0, metric(t, r, "grpc_server_call_duration_seconds", "grpc_method", "apportion.v1.DecisionService/Simulate", "grpc_status", "INTERNAL"))
}

// metric returns the value of a counter with these labels.
func metric(t *testing.T, r *replica, name string, labels ...string) float64 {
	t.Helper()
	families, err := r.server.Registry().Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
	next:
		for _, m := range family.GetMetric() {
			for i := 0; i < len(labels); i += 2 {
				found := false
				for _, l := range m.GetLabel() {
					found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
				}
				if !found {
					continue next
				}
			}
			if c := m.GetCounter(); c != nil {
				return c.GetValue()
			}
			if h := m.GetHistogram(); h != nil {
				return float64(h.GetSampleCount())
			}
			return m.GetGauge().GetValue()
		}
	}
	require.Fail(t, "no metric "+name)
	return 0
}

func TestACallOfAnotherTransportIsInterceptedBeforeTheServerServes(t *testing.T) {
	s, err := service.New(service.Options{})
	require.NoError(t, err)
	_, err = s.Call(t.Context(), apportionv1.DecisionService_Simulate_FullMethodName, nil,
		func(context.Context, any) (any, error) { panic("broken") })
	requireFault(t, err, codes.Internal, "INTERNAL")
}
