package web_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/gen/apportion/v1/apportionv1connect"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/gen/apportion/v1alpha1/apportionv1alpha1connect"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/internal/wire/method"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/identity"
	"github.com/apportion/apportion/service/servicetest"
	"github.com/apportion/apportion/service/web"
)

const (
	shares   = "/apportion.v1.DecisionService/EvaluateShares"
	simulate = "/apportion.v1.DecisionService/Simulate"
	small    = `{"input":{"snapshot":{"dimensions":["cpu"],"nodes":[{"name":"n0","allocatable":{"dimensions":[0],"amounts":[10000]}}],
"queues":[{"name":"ml"}],"jobs":[{"uid":"train","queue":"ml","phase":"JOB_PHASE_RUNNING","groups":[{"request":{"dimensions":[0],"amounts":[3000]},
"tasks":[{"uid":"t0","status":"TASK_STATUS_RUNNING","node":0}]}]}]},"policyName":"cluster"}}`
)

type site struct {
	*servicetest.Replica

	http *httptest.Server
}

func start(t *testing.T, so service.Options, o web.Options) *site { //nolint:gocritic // Once a test.
	t.Helper()
	so.Policies = map[string]*apportionv1.Policy{"cluster": servicetest.Proportion()}
	r := servicetest.Start(t, so)
	s := &site{r, httptest.NewServer(web.NewHandler(r.Server, o))}
	t.Cleanup(s.http.Close)
	return s
}

// post sends JSON, and returns the status, the headers and the answer.
func (s *site) post(t *testing.T, path, body string, headers ...string) (int, http.Header, map[string]any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.http.Client().Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	answer := map[string]any{}
	if len(data) > 0 && data[0] == '{' {
		require.NoError(t, json.Unmarshal(data, &answer), string(data))
	}
	return response.StatusCode, response.Header, answer
}

// requireError requires an error of the contract.
func requireError(t *testing.T, answer map[string]any, code, reason string) *errdetails.ErrorInfo {
	t.Helper()
	require.Equal(t, code, answer["code"], answer)
	details, _ := answer["details"].([]any)
	require.NotEmpty(t, details, answer)
	first, _ := details[0].(map[string]any)
	require.Equal(t, "google.rpc.ErrorInfo", first["type"])
	value, _ := first["value"].(string)
	raw, err := base64.RawStdEncoding.DecodeString(value)
	require.NoError(t, err)
	var info errdetails.ErrorInfo
	require.NoError(t, proto.Unmarshal(raw, &info))
	require.Equal(t, reason, info.GetReason())
	require.Equal(t, "apportion.dev", info.GetDomain())
	return &info
}

func TestACallInJSONIsAnsweredInJSON(t *testing.T) {
	s := start(t, service.Options{}, web.Options{})
	status, header, answer := s.post(t, shares, small)
	require.Equal(t, http.StatusOK, status, answer)
	require.Equal(t, "application/json", header.Get("Content-Type"))
	require.Empty(t, header.Get("Access-Control-Allow-Origin"))
	data, err := json.Marshal(answer["shares"])
	require.NoError(t, err)
	require.Contains(t, string(data), `"name":"ml"`)
	require.Contains(t, string(data), `"deserved":{"amounts":[3000,0]`)
}

func TestJSONMayNameItsCharset(t *testing.T) {
	s := start(t, service.Options{}, web.Options{})
	for _, media := range []string{"application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON"} {
		status, header, answer := s.post(t, shares, small, "Content-Type", media)
		require.Equal(t, http.StatusOK, status, answer)
		require.Contains(t, header.Get("Content-Type"), "application/json", media)
		require.Contains(t, answer, "shares", media)
		status, _, answer = s.post(t, shares, `{"no": 1}`, "Content-Type", media)
		require.Equal(t, http.StatusBadRequest, status, media)
		requireError(t, answer, "invalid_argument", "INVALID_REQUEST")
	}
}

func TestEveryCallAnswersAsOverGRPC(t *testing.T) {
	s := start(t, service.Options{}, web.Options{})
	client := apportionv1connect.NewDecisionServiceClient(s.http.Client(), s.http.URL)
	snapshots := apportionv1connect.NewSnapshotServiceClient(s.http.Client(), s.http.URL)
	insights := apportionv1alpha1connect.NewInsightServiceClient(s.http.Client(), s.http.URL)
	input := servicetest.Named(servicetest.Snapshot(2), "cluster")
	job := &apportionv1.Selector{Indices: []uint32{0}}
	tried := []string{
		same(t, s.EvaluateShares, client.EvaluateShares, &apportionv1.EvaluateSharesRequest{Input: input}),
		same(t, s.CheckEnqueue, client.CheckEnqueue, &apportionv1.CheckEnqueueRequest{Input: input}),
		same(t, s.Explain, client.Explain, &apportionv1.ExplainRequest{Input: input}),
		same(t, s.Plan, client.Plan, &apportionv1.PlanRequest{Input: input, Plan: &apportionv1.PlanStep{Job: job}}),
		same(t, s.Forecast, client.Forecast,
			&apportionv1.ForecastRequest{Input: input, Forecast: &apportionv1.ForecastStep{Job: job}}),
		same(t, s.Remedies, client.Remedies,
			&apportionv1.RemediesRequest{Input: input, Remedies: &apportionv1.RemediesStep{Job: job}}),
		same(t, s.Simulate, client.Simulate, &apportionv1.SimulateRequest{Input: input, Steps: servicetest.Steps()}),
		same(t, s.ListSnapshots, snapshots.ListSnapshots, &apportionv1.ListSnapshotsRequest{}),
		same(t, s.GetServerInfo, snapshots.GetServerInfo, &apportionv1.GetServerInfoRequest{}),
		same(t, s.GetHistory, insights.GetHistory, &apportionv1alpha1.GetHistoryRequest{Name: "none"}),
		same(t, s.GetUsage, insights.GetUsage, &apportionv1alpha1.GetUsageRequest{Name: "none"}),
	}
	for _, call := range method.Calls() {
		require.True(t, !method.IsUnary(call) || slices.Contains(tried, string(call.Name())+"Request"), call.Name())
	}
}

func TestASnapshotIsDownloadedInChunksInEachEncoding(t *testing.T) {
	s := start(t, service.Options{}, web.Options{})
	shape := generate.Standard()
	shape.Jobs, shape.Tasks, shape.UIDs = 2000, 40_000, true
	data, err := proto.Marshal(generate.Snapshot(shape))
	require.NoError(t, err)
	k := s.Server.Keep("cluster", "", func(*apportionv1.SnapshotView) {})
	require.NoError(t, k.Put(t.Context(), data, &apportionv1.SnapshotView{}))
	named := func(name string) *apportionv1.DownloadSnapshotRequest {
		return &apportionv1.DownloadSnapshotRequest{Source: &apportionv1.DownloadSnapshotRequest_Name{Name: name}}
	}
	for name, options := range map[string][]connect.ClientOption{
		"connect": nil, "JSON": {connect.WithProtoJSON()}, "gRPC-Web": {connect.WithGRPCWeb()}, "compressed": {connect.WithSendGzip()},
	} {
		t.Run(name, func(t *testing.T) {
			client := apportionv1connect.NewSnapshotServiceClient(s.http.Client(), s.http.URL, options...)
			stream, err := client.DownloadSnapshot(t.Context(), named("cluster"))
			require.NoError(t, err)
			var got []byte
			var header *apportionv1.DownloadHeader
			for stream.Receive() {
				header = cmp.Or(header, stream.Msg().GetHeader())
				got = append(got, stream.Msg().GetChunk().GetData()...)
			}
			require.NoError(t, stream.Err())
			require.Equal(t, data, got)
			require.Equal(t, decode.Digest(got), header.GetView().GetDigest())
			require.EqualValues(t, len(data), header.GetSize())
			stream, err = client.DownloadSnapshot(t.Context(), named("none"))
			require.NoError(t, err)
			require.False(t, stream.Receive())
			require.Equal(t, connect.CodeNotFound, connect.CodeOf(stream.Err()))
		})
	}
}

// same requires that a call is answered in the same way over gRPC and over HTTP, and returns the name of its request.
func same[Q any, A proto.Message](
	t *testing.T, over func(context.Context, Q, ...grpc.CallOption) (A, error), beside func(context.Context, Q) (A, error), request Q,
) string {
	t.Helper()
	want, fault := over(t.Context(), request)
	got, err := beside(t.Context(), request)
	require.Equal(t, fault == nil, err == nil)
	require.True(t, err == nil || connect.CodeOf(err) == connect.Code(status.Code(fault)), err)
	require.True(t, proto.Equal(want, got))
	return reflect.TypeFor[Q]().Elem().Name()
}

func TestErrorsAreThoseOfTheContract(t *testing.T) {
	s := start(t, service.Options{Limit: setting.Limit{MessageBytes: 2000}}, web.Options{})
	for name, c := range map[string]struct {
		path, body   string
		status       int
		code, reason string
		text         string
	}{
		"no such policy": {shares, strings.Replace(small, "cluster", "none", 1), 404, "not_found", "POLICY_NOT_FOUND", `no policy "none"`},
		"bad snapshot": {
			shares, strings.Replace(small, `"queue":"ml"`, `"queue":"x"`, 1), 400, "invalid_argument", "INVALID_SNAPSHOT", "input.snapshot.jobs[0].queue",
		},
		"not held": {
			shares, `{"input":{"snapshotDigest":"sha256:` + strings.Repeat("0", 64) + `","policyName":"cluster"}}`,
			400, "failed_precondition", "SNAPSHOT_NOT_FOUND", "send it again",
		},
		"no JSON":        {shares, `{"input":`, 400, "invalid_argument", "INVALID_REQUEST", "the message cannot be read: "},
		"unknown field":  {shares, `{"inputs":{}}`, 400, "invalid_argument", "INVALID_REQUEST", `unknown field "inputs"`},
		"nothing at all": {simulate, `{}`, 400, "invalid_argument", "INVALID_REQUEST", "neither a policy nor the name of one is given"},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, answer := s.post(t, c.path, c.body)
			require.Equal(t, c.status, status, answer)
			requireError(t, answer, c.code, c.reason)
			require.Contains(t, answer["message"], c.text)
		})
	}
	t.Run("too large", func(t *testing.T) {
		status, _, answer := s.post(t, shares, small+strings.Repeat(" ", 2000))
		require.Equal(t, http.StatusBadRequest, status)
		requireError(t, answer, "out_of_range", "LIMIT_EXCEEDED")
	})
	t.Run("streams are for gRPC", func(t *testing.T) {
		status, _, _ := s.post(t, "/apportion.v1.DecisionService/RunSession", "{}")
		require.Equal(t, http.StatusNotFound, status)
	})
	t.Run("bytes that are no message", func(t *testing.T) {
		client := connect.NewClient[apportionv1.Policy, apportionv1.EvaluateSharesResponse](s.http.Client(), s.http.URL+shares)
		broken := &apportionv1.Policy{}
		broken.ProtoReflect().SetUnknown([]byte{0x0a, 0x03, 0xff, 0xff, 0xff})
		_, err := client.CallUnary(t.Context(), connect.NewRequest(broken))
		require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
		require.ErrorContains(t, err, "the message cannot be read")
	})
}

func TestAPanicIsAnInternalErrorAndNothingMore(t *testing.T) {
	s := start(t, service.Options{Unary: []grpc.UnaryServerInterceptor{
		func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) { panic("secret") },
	}}, web.Options{})
	status, _, answer := s.post(t, shares, small)
	require.Equal(t, http.StatusInternalServerError, status)
	requireError(t, answer, "internal", "INTERNAL")
	require.NotContains(t, answer["message"], "secret")
}

func TestCallersAreKnownByTheirTokens(t *testing.T) {
	gate := identity.NewGate(nil)
	require.NoError(t, gate.Admit([]identity.Identity{
		{Name: "reader", Tokens: []identity.Hash{identity.HashOf("apportion_reader")}, Methods: []string{"EvaluateShares"}, Clusters: []string{"*"}},
	}))
	s := start(t, service.Options{Tap: []tap.ServerInHandle{gate.Tap}, Transport: gate.ServerOptions()}, web.Options{})

	status, _, answer := s.post(t, shares, small)
	require.Equal(t, http.StatusUnauthorized, status)
	requireError(t, answer, "unauthenticated", "UNAUTHENTICATED")

	status, _, answer = s.post(t, shares, small, "Authorization", "Bearer apportion_reader")
	require.Equal(t, http.StatusOK, status, answer)

	status, _, answer = s.post(t, simulate, small, "Authorization", "Bearer apportion_reader")
	require.Equal(t, http.StatusForbidden, status)
	requireError(t, answer, "permission_denied", "PERMISSION_DENIED")
}

func TestMoreCallsThanAllowedAreToldToTryAgain(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := start(t, service.Options{Observers: []service.Observer{holding{entered, leave}}}, web.Options{Settings: setting.HTTP{Calls: 1}})
	first := make(chan int, 1)
	go func() {
		response, err := s.http.Client().Post(s.http.URL+shares, "application/json", strings.NewReader(small))
		if err != nil {
			first <- 0
			return
		}
		first <- response.StatusCode
		_ = response.Body.Close()
	}()
	<-entered
	status, header, answer := s.post(t, shares, small)
	require.Equal(t, http.StatusTooManyRequests, status)
	requireError(t, answer, "resource_exhausted", "OVERLOADED")
	require.Equal(t, "1", header.Get("Retry-After"))
	close(leave)
	require.Equal(t, http.StatusOK, <-first)
}

// holding is an observer that keeps calls at their work.
type holding struct {
	entered, leave chan struct{}
}

// Wants is true for every call.
func (holding) Wants(context.Context, string, string) bool { return true }

// Observe is called before the answer is sent.
func (h holding) Observe(context.Context, *service.Decision) {
	h.entered <- struct{}{}
	<-h.leave
}

func TestTheDeadlineOfTheCallerHolds(t *testing.T) {
	s := start(t, service.Options{Unary: []grpc.UnaryServerInterceptor{
		func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
			<-ctx.Done()
			return nil, status.FromContextError(ctx.Err()).Err()
		},
	}}, web.Options{})
	began := time.Now()
	code, _, answer := s.post(t, shares, small, "Connect-Timeout-Ms", "20")
	require.Less(t, time.Since(began), 10*time.Second)
	require.Equal(t, http.StatusGatewayTimeout, code)
	require.Equal(t, "deadline_exceeded", answer["code"])
}

func TestOtherOriginsAreHeardOnlyIfListed(t *testing.T) {
	preflight := func(s *site, origin string) (int, http.Header) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, s.http.URL+shares, http.NoBody)
		require.NoError(t, err)
		request.Header.Set("Origin", origin)
		request.Header.Set("Access-Control-Request-Method", "POST")
		response, err := s.http.Client().Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode, response.Header
	}
	silent := start(t, service.Options{}, web.Options{})
	status, header := preflight(silent, "https://page.example")
	require.Equal(t, http.StatusMethodNotAllowed, status)
	require.Empty(t, header.Get("Access-Control-Allow-Origin"))

	open := start(t, service.Options{}, web.Options{Settings: setting.HTTP{Origins: []string{"https://page.example"}}})
	status, header = preflight(open, "https://page.example")
	require.Equal(t, http.StatusNoContent, status)
	require.Equal(t, "https://page.example", header.Get("Access-Control-Allow-Origin"))
	require.Contains(t, header.Get("Access-Control-Allow-Headers"), "Authorization")
	_, header = preflight(open, "https://other.example")
	require.Empty(t, header.Get("Access-Control-Allow-Origin"))
	_, header, _ = open.post(t, shares, small, "Origin", "https://page.example")
	require.Equal(t, "https://page.example", header.Get("Access-Control-Allow-Origin"))
}

func TestCallsAreMeasuredAndTraced(t *testing.T) {
	registry, spans := prometheus.NewRegistry(), tracetest.NewInMemoryExporter()
	s := start(t, service.Options{}, web.Options{
		Registry: registry, Tracer: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)),
	})
	s.post(t, shares, small, "Traceparent", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	s.post(t, shares, "{}")
	require.Equal(t, 2, testutil.CollectAndCount(registry, "apportion_http_call_duration_seconds"))
	var names []string
	for _, span := range spans.GetSpans() {
		names = append(names, span.Name)
		if span.Name == "open" {
			require.Equal(t, "0123456789abcdef0123456789abcdef", span.SpanContext.TraceID().String())
		}
	}
	require.Equal(t, []string{
		"open", "decide", "apportion.v1.DecisionService/EvaluateShares", "apportion.v1.DecisionService/EvaluateShares",
	}, names)
}

func TestMessagesOverHTTPTakeFromWhatThereIsForAll(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := start(t, service.Options{Registry: registry}, web.Options{})
	for range 3 {
		status, _, answer := s.post(t, shares, small)
		require.Equal(t, http.StatusOK, status, answer)
	}
	// A message without a length counts as it grows.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http.URL+shares, io.MultiReader(strings.NewReader(small)))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := s.http.Client().Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	requireGivenBack(t, registry)
}

// requireGivenBack requires that no memory is booked for messages any more.
func requireGivenBack(t *testing.T, registry *prometheus.Registry) {
	t.Helper()
	require.Eventually(t, func() bool {
		return testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP apportion_message_bytes Memory booked for the messages of calls and sessions.
# TYPE apportion_message_bytes gauge
apportion_message_bytes 0
`), "apportion_message_bytes") == nil
	}, 5*time.Second, 10*time.Millisecond, "everything was given back")
}

func TestAnAnswerIsBookedUntilItIsSent(t *testing.T) {
	s := start(t, service.Options{}, web.Options{})
	for range 3 {
		_, _, answer := s.post(t, "/apportion.v1.DecisionService/EvaluateShares", `{"input": {"policyName": "cluster", "snapshot": {}}}`)
		require.Contains(t, answer, "shares")
	}
	booked := func() float64 {
		families, err := s.Server.Registry().Gather()
		require.NoError(t, err)
		for _, family := range families {
			if family.GetName() == "apportion_answer_bytes" {
				return family.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return -1
	}
	require.Eventually(t, func() bool { return booked() == 0 }, 5*time.Second, time.Millisecond)
}

// TestTheDocumentedCallIsAnsweredAsDocumented makes the call of docs/clients.md.
func TestTheDocumentedCallIsAnsweredAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/clients.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(page, -1)
	require.Len(t, blocks, 3)
	s := start(t, service.Options{}, web.Options{})
	status, _, answer := s.post(t, "/apportion.v1.DecisionService/CheckEnqueue", string(blocks[0][1]))
	require.Equal(t, http.StatusOK, status, answer)
	basis, _ := answer["basis"].(map[string]any)
	require.Equal(t, engine.Version, basis["engineVersion"])
	basis["engineVersion"] = "0.1.0"
	got, err := json.MarshalIndent(answer, "", "  ")
	require.NoError(t, err)
	require.JSONEq(t, string(blocks[1][1]), string(got), string(got))

	_, _, answer = s.post(t, "/apportion.v1.DecisionService/CheckEnqueue", `{"input":{"snapshot":{},"policyName":"none"}}`)
	var want map[string]any
	require.NoError(t, json.Unmarshal(blocks[2][1], &want))
	delete(answer, "details")
	require.Equal(t, want, answer)
}
