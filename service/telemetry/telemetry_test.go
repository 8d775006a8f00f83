package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/decisionlog"
	"github.com/apportion/apportion/service/servicetest"
	"github.com/apportion/apportion/service/telemetry"
)

// collector takes what OpenTelemetry sends, by path.
type collector struct {
	*httptest.Server

	mutex sync.Mutex
	got   map[string][]byte
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{got: map[string][]byte{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.got[r.URL.Path] = append(c.got[r.URL.Path], data...)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) text(path string) string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return string(c.got[path])
}

func begin(t *testing.T) *telemetry.Telemetry {
	t.Helper()
	tele, err := telemetry.Start(t.Context(), telemetry.Options{Version: "v0.0.0-test"})
	require.NoError(t, err)
	return tele
}

func replica(t *testing.T, tele *telemetry.Telemetry, observers ...service.Observer) *servicetest.Replica {
	t.Helper()
	return servicetest.Start(t, service.Options{
		Policies: map[string]*apportionv1.Policy{"cluster": servicetest.Proportion()}, Observers: observers,
		Registry: tele.Registry, Meter: tele.Meter, Tracer: tele.Tracer, Propagator: tele.Propagator,
	})
}

func ask(t *testing.T, r *servicetest.Replica) {
	t.Helper()
	_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: servicetest.Named(servicetest.Snapshot(1), "cluster")})
	require.NoError(t, err)
}

func TestNothingIsSentUnlessTheEnvironmentAsksForIt(t *testing.T) {
	tele := begin(t)
	require.Nil(t, tele.Tracer)
	ask(t, replica(t, tele))
	require.NoError(t, tele.Stop(t.Context()))
}

func TestTracesMetricsAndDecisionsGoWhereTheEnvironmentSays(t *testing.T) {
	c := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=trial")
	tele := begin(t)
	require.NotNil(t, tele.Tracer)
	sink, err := decisionlog.NewOTLPSink(t.Context(), "v0.0.0-test")
	require.NoError(t, err)
	log := decisionlog.New(decisionlog.Options{Sink: sink})
	r := replica(t, tele, log)
	ask(t, r)
	r.Stop()
	require.NoError(t, log.Close(t.Context()))
	require.NoError(t, tele.Stop(t.Context()))

	require.Contains(t, c.text("/v1/traces"), "apportion.v1.DecisionService.EvaluateShares")
	require.Contains(t, c.text("/v1/traces"), "apportion.policy.digest")
	require.Contains(t, c.text("/v1/traces"), "deployment.environment")
	require.Contains(t, c.text("/v1/metrics"), "apportion_decisions_total", "our own, over the bridge")
	require.Contains(t, c.text("/v1/metrics"), "grpc.server.call.duration", "gRPC's, once")
	require.NotContains(t, c.text("/v1/metrics"), "grpc_server_call_duration")
	require.Contains(t, c.text("/v1/logs"), `"method":"EvaluateShares"`)
	require.Contains(t, c.text("/v1/logs"), `"trace_id":"`, "a decision leads to its trace")
}

func TestTheWholeSDKMayBeDisabled(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:1")
	t.Setenv("OTEL_SDK_DISABLED", "true")
	tele := begin(t)
	require.Nil(t, tele.Tracer)
	require.NoError(t, tele.Stop(t.Context()))
}

func TestAnEnvironmentThatIsNotUnderstoodIsRefused(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_TRACES_EXPORTER": "pigeon", "OTEL_METRICS_EXPORTER": "pigeon", "OTEL_PROPAGATORS": "pigeon",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			_, err := telemetry.Start(t.Context(), telemetry.Options{})
			require.Error(t, err)
		})
	}
}

func TestTheAddressForOperatorsShowsMetricsHealthAndVersion(t *testing.T) {
	tele := begin(t)
	ask(t, replica(t, tele))
	ready := false
	admin := httptest.NewServer(tele.Admin(telemetry.AdminOptions{Ready: func() bool { return ready }}))
	t.Cleanup(admin.Close)
	get := func(path string) (int, string) {
		response, err := admin.Client().Get(admin.URL + path)
		require.NoError(t, err)
		defer func() { require.NoError(t, response.Body.Close()) }()
		data, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(data)
	}
	_, metrics := get("/metrics")
	for _, line := range []string{
		`apportion_build_info{engine="`, `apportion_decisions_total{plugin="",question="shares",reason="",verdict="answered"} 1`,
		`apportion_decision_duration_seconds_count{method="EvaluateShares"} 1`, "apportion_model_compile_seconds_count 1",
		`apportion_snapshot_jobs_bucket{le="100"} 1`, "go_goroutines ", "process_",
		`grpc_server_call_duration_seconds_count{grpc_method="apportion.v1.DecisionService/EvaluateShares",grpc_status="OK"} 1`,
	} {
		require.Contains(t, metrics, line)
	}
	code, _ := get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	ready = true
	code, _ = get("/readyz")
	require.Equal(t, http.StatusOK, code)
	code, _ = get("/healthz")
	require.Equal(t, http.StatusOK, code)
	_, version := get("/version")
	require.Contains(t, version, `"version":"v0.0.0-test"`)
	code, _ = get("/debug/pprof/")
	require.Equal(t, http.StatusNotFound, code, "profiles are served only where that is asked for")

	profiling := httptest.NewServer(tele.Admin(telemetry.AdminOptions{Profiling: true}))
	t.Cleanup(profiling.Close)
	response, err := profiling.Client().Get(profiling.URL + "/debug/pprof/heap?debug=1")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
}

func TestEntriesOfTheLogNameTheirTrace(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(telemetry.NewLogHandler(slog.NewJSONHandler(&out, nil), telemetry.Sampling{})).With("a", 1)
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	log.InfoContext(trace.ContextWithSpanContext(t.Context(), span), "traced")
	var entry map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &entry))
	require.Equal(t, span.TraceID().String(), entry["trace_id"])
	require.Equal(t, span.SpanID().String(), entry["span_id"])
	out.Reset()
	log.Info("plain")
	require.NotContains(t, out.String(), "trace_id")
}

func TestManyEntriesOfOneKindAreSampledButErrorsAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		handler := telemetry.NewLogHandler(slog.NewTextHandler(&out, nil), telemetry.Sampling{First: 10, Every: 100})
		log := slog.New(handler)
		count := func(of string) int { return bytes.Count(out.Bytes(), []byte(of)) }
		for range 1010 {
			log.Warn("often")
			log.Error("grave")
		}
		log.Warn("seldom")
		require.Equal(t, 10+10, count("msg=often"))
		require.Equal(t, 1010, count("msg=grave"))
		require.Equal(t, 1, count("msg=seldom"))
		require.InDelta(t, 990, testutil.ToFloat64(handler.Collector()), 0)
		time.Sleep(time.Second)
		log.Warn("often")
		require.Equal(t, 21, count("msg=often"), "each second counts anew")
	})
}

func TestQueuesShowWhatWasLastAnsweredAboutThem(t *testing.T) {
	queues := telemetry.NewQueues(telemetry.QueueOptions{Maximum: 4})
	tele := begin(t)
	tele.Registry.MustRegister(queues)
	r := replica(t, tele, queues)
	require.Zero(t, testutil.CollectAndCount(queues))
	ask(t, r)
	require.Equal(t, 4, testutil.CollectAndCount(queues, "apportion_queue_weight"), "six queues have jobs, four are shown")
	require.Positive(t, testutil.CollectAndCount(queues, "apportion_queue_deserved"))
	families, err := tele.Registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "apportion_queue_deserved" {
			labels := map[string]string{}
			for _, l := range f.GetMetric()[0].GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			require.Equal(t, "cluster", labels["policy"])
			require.Equal(t, "proportion", labels["plugin"])
			require.Equal(t, "anonymous", labels["identity"])
			require.Contains(t, labels, "resource")
		}
	}
}

func TestGaugesOfQueuesAreBoundedAndGrowOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queues := telemetry.NewQueues(telemetry.QueueOptions{Maximum: 5, Age: time.Minute})
		observe := func(identity string, names ...string) {
			share := &apportionv1.PluginShares{Plugin: "capacity"}
			for _, name := range names {
				share.Queues = append(share.Queues, &apportionv1.QueueShare{
					Name: name, Participating: !strings.HasPrefix(name, "idle"), Deserved: &apportionv1.Resource{Dimensions: []uint32{0, 1}, Amounts: []float64{1500, 1024}},
				})
			}
			answer := &apportionv1.Answer{Answer: &apportionv1.Answer_Shares{
				Shares: &apportionv1.SharesAnswer{Plugins: []*apportionv1.PluginShares{share, share}},
			}}
			queues.Observe(service.WithIdentity(t.Context(), identity), &service.Decision{
				Began: time.Now(), Basis: &apportionv1.Basis{Dimensions: []string{"cpu", "memory"}}, Answers: []*apportionv1.Answer{answer},
				Snapshot: service.Snapshot{Message: &apportionv1.Snapshot{Cluster: "north"}},
			})
		}
		count := func() int { return testutil.CollectAndCount(queues, "apportion_queue_share") }
		observe("a", "x", "y", "x")
		require.Equal(t, 2, count(), "equal names are shown once")
		expected := `
# HELP apportion_queue_deserved Deserved. Cores of cpu, bytes of memory, units of other resources.
# TYPE apportion_queue_deserved gauge
apportion_queue_deserved{cluster="north",identity="a",plugin="capacity",policy="",queue="x",resource="cpu"} 1.5
apportion_queue_deserved{cluster="north",identity="a",plugin="capacity",policy="",queue="x",resource="memory"} 1024
apportion_queue_deserved{cluster="north",identity="a",plugin="capacity",policy="",queue="y",resource="cpu"} 1.5
apportion_queue_deserved{cluster="north",identity="a",plugin="capacity",policy="",queue="y",resource="memory"} 1024
`
		require.NoError(t, testutil.CollectAndCompare(queues, bytes.NewReader([]byte(expected)), "apportion_queue_deserved"))
		observe("b", "1", "2", "3", "4", "5", "6")
		require.Equal(t, 5, count())
		observe("b", "idle 1", "idle 2", "idle 3", "idle 4", "idle 5", "6")
		require.Equal(t, 3, count(), "queues that take no part make no other give way")
		for i := range 20 {
			observe(string(rune('c'+i)), "q")
		}
		require.Equal(t, 5, count())
		time.Sleep(2 * time.Minute)
		require.Zero(t, count())
	})
}

func TestNamesThatACallerChoosesDoNotMakeAScrapeLarge(t *testing.T) {
	queues := telemetry.NewQueues(telemetry.QueueOptions{Maximum: 100})
	long := func(name string) string { return name + strings.Repeat("x", 4000) }
	observe := func(cluster string, queue func(string) string) {
		basis, amounts := &apportionv1.Basis{}, &apportionv1.Resource{}
		for d := range 64 {
			name := fmt.Sprintf("example.com/%d", d)
			if d < 8 {
				name = long(name)
			}
			basis.Dimensions = append(basis.Dimensions, name)
			amounts.Dimensions, amounts.Amounts = append(amounts.Dimensions, uint32(d)), append(amounts.Amounts, 1)
		}
		share := &apportionv1.PluginShares{Plugin: "capacity"}
		for n := range 1000 {
			share.Queues = append(share.Queues, &apportionv1.QueueShare{Name: queue(strconv.Itoa(n)), Participating: true, Deserved: amounts, Request: amounts})
		}
		queues.Observe(t.Context(), &service.Decision{
			Began: time.Now(), Basis: basis, Snapshot: service.Snapshot{Message: &apportionv1.Snapshot{Cluster: cluster}},
			Answers: []*apportionv1.Answer{{Answer: &apportionv1.Answer_Shares{
				Shares: &apportionv1.SharesAnswer{Plugins: []*apportionv1.PluginShares{share}},
			}}},
		})
	}
	short := func(name string) string { return name }
	observe(long("north"), short)
	observe("north", long)
	require.Zero(t, testutil.CollectAndCount(queues), "long names of clusters and queues are not exported")
	observe("north", short)
	require.Equal(t, 100, testutil.CollectAndCount(queues, "apportion_queue_share"))
	require.Equal(t, 100*24, testutil.CollectAndCount(queues, "apportion_queue_deserved"), "the first resources whose names are short")
}

func TestWhatCannotBeSentIsLogged(t *testing.T) {
	var out bytes.Buffer
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1/v1/traces")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100")
	tele, err := telemetry.Start(t.Context(), telemetry.Options{Logger: slog.New(slog.NewTextHandler(&out, nil))})
	require.NoError(t, err)
	ask(t, replica(t, tele))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	err = tele.Stop(ctx)
	require.True(t, err != nil || bytes.Contains(out.Bytes(), []byte("telemetry was not sent")), errors.Join(err, errors.New(out.String())))
}

var _ prometheus.Collector = (*telemetry.Queues)(nil)
