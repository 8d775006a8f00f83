package extender_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"
	"google.golang.org/grpc/test/bufconn"

	"github.com/apportion/apportion/adapter/extender"
	"github.com/apportion/apportion/adapter/extender/extendertest"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const proportionConf = "actions: allocate\ntiers: [{plugins: [{name: gang}]}, {plugins: [{name: proportion}]}]"

// full is a push of a cluster whose only queue is overused once full is true: one node of 10 cpu, one queue, one job that runs on it.
func cluster(running int) []byte {
	var tasks strings.Builder
	for i := range 4 {
		status, node := 1, ""
		if i < running {
			status, node = 32, "n"
		}
		if i > 0 {
			tasks.WriteByte(',')
		}
		fmt.Fprintf(&tasks, `"t%d":%s`, i, taskOf(i, status, node))
	}
	return []byte(`{"Jobs":{"ns/j":{"UID":"ns/j","Name":"j","Namespace":"ns","Queue":"q","MinAvailable":2,"Tasks":{` + tasks.String() +
		`},"PodGroup":{"spec":{"minResources":{"cpu":"20"}},"status":{"phase":"Pending"}}}},` +
		`"Nodes":{"n":{"Name":"n","Allocatable":{"MilliCPU":10000,"Memory":0,"ScalarResources":null}}},` +
		`"Queues":{"q":{"Name":"q","Weight":1,"Queue":{"spec":{},"status":{"state":"Open"}}}}}`)
}

func taskOf(i, status int, node string) string {
	return fmt.Sprintf(`{"UID":"t%d","Job":"ns/j","Name":"t%d","Namespace":"ns","TaskRole":"","Resreq":{"MilliCPU":5000,"Memory":0,"ScalarResources":null},`+
		`"NodeName":%q,"Status":%d,"Priority":1,"Preemptable":true}`, i, i, node, status)
}

const (
	aboutQueue = `{"queue":{"UID":"q","Name":"q"}}`
	aboutJob   = `{"job":{"UID":"ns/j"}}`
)

func (b *bridge) overused() bool {
	b.t.Helper()
	return b.asked("queueOverused", []byte(aboutQueue)).Overused
}

func TestEventsKeepTheSnapshotCurrent(t *testing.T) {
	b := newBridge(t, proportionConf)
	b.asked("onSessionOpen", cluster(1))
	event := func(verb string, task, status int) {
		b.asked(verb, []byte(`{"task":`+taskOf(task, status, "n")+`}`))
	}
	require.False(t, b.overused())
	require.Equal(t, "false", string(b.asked("jobReady", []byte(aboutJob)).Status))

	event("allocate", 1, 2)
	require.True(t, b.overused())
	require.Equal(t, "true", string(b.asked("jobReady", []byte(aboutJob)).Status))

	event("deallocate", 0, 64)
	require.False(t, b.overused(), "an evicted task gives back what it has")
	event("allocate", 0, 32)
	require.True(t, b.overused(), "an undone eviction takes it again")
	event("deallocate", 1, 1)
	event("allocate", 1, 4)
	require.True(t, b.overused(), "a pipelined task is booked")
	require.Equal(t, "false", string(b.asked("jobReady", []byte(aboutJob)).Status), "but is not ready")
	b.requireNoAbstention()
}

func TestALostOrRepeatedEventIsNeverBookedTwice(t *testing.T) {
	b := newBridge(t, proportionConf)
	b.asked("onSessionOpen", cluster(1))
	for range 3 {
		b.asked("allocate", []byte(`{"task":`+taskOf(0, 2, "n")+`}`))
		b.asked("deallocate", []byte(`{"task":`+taskOf(2, 1, "")+`}`))
	}
	require.False(t, b.overused())
	b.asked("allocate", []byte(`{"task":{"UID":"stranger","Status":2}}`))
	require.Equal(t, map[string]float64{"unknown allocate ": 1}, b.counts("apportion_extender_abstentions_total"))
	require.Equal(t, map[string]float64{"repeated allocate ": 3, "repeated deallocate ": 3}, b.counts("apportion_extender_events_total"))

	// A question about the job shows the state of its tasks, and with it what was lost.
	b.asked("jobReady", []byte(`{"job":{"UID":"ns/j","Tasks":{"t1":`+taskOf(1, 2, "n")+`}}}`))
	require.True(t, b.overused())
}

func TestTheNewestPushOfAPathIsItsSnapshot(t *testing.T) {
	b := newBridge(t, proportionConf)
	b.asked("onSessionOpen", cluster(1))
	require.False(t, b.overused())
	b.asked("onSessionOpen", cluster(2))
	require.True(t, b.overused())
	b.asked("onSessionClose", []byte("{}"))
	require.False(t, b.overused(), "after its end nothing is known of a session")
	require.Equal(t, map[string]float64{"no_snapshot queueOverused ": 1}, b.counts("apportion_extender_abstentions_total"))
}

func TestEachPathHasItsOwnSnapshotAndPolicy(t *testing.T) {
	b := newBridge(t, proportionConf, func(o *extender.Options) {
		o.Schedulers["/team/a/"] = extender.Scheduler{Policy: "native"}
		o.Schedulers["/"] = extender.Scheduler{Policy: "native"}
	})
	require.Equal(t, []string{"", "/team/a", volcanoPath}, b.Paths())
	b.asked("onSessionOpen", cluster(2))
	ask := func(path string) string {
		w := httptest.NewRecorder()
		b.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(aboutQueue)))
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.String()
	}
	require.JSONEq(t, `{"overused":true}`, ask("/volcano/queueOverused"))
	require.JSONEq(t, `{"overused":false}`, ask("/team/a/queueOverused"))
	require.JSONEq(t, `{"overused":false}`, ask("/queueOverused"))
}

// slow makes every build wait until release is called.
func slow(policy *apportionv1.Policy) (change func(*extender.Options), release func()) {
	gate := make(chan struct{})
	var pushed atomic.Bool
	change = func(o *extender.Options) {
		o.Wait = 20 * time.Millisecond
		o.Now = func() time.Time { // asked when a push begins
			pushed.Store(true)
			return asOf
		}
		o.Policy = func(string) *apportionv1.Policy {
			if pushed.Load() {
				<-gate
			}
			return policy
		}
	}
	return change, sync.OnceFunc(func() { close(gate) })
}

func TestQuestionsWaitForTheBuildAndThenAbstain(t *testing.T) {
	change, release := slow(policyOf(t, proportionConf))
	b := newBridge(t, proportionConf, change)
	defer release()
	b.asked("onSessionOpen", cluster(2))
	for verb, body := range map[string]string{
		"queueOverused": aboutQueue, "jobReady": aboutJob, "jobEnqueueable": aboutJob, "predicate": `{"task":{"UID":"t3"},"node":{"Name":"n"}}`,
		"prioritize":  `{"task":{"UID":"t3"},"nodes":[{"Name":"n"}]}`,
		"reclaimable": `{"evictor":{"UID":"t3"},"evictees":[{"UID":"t1"}]}`, "preemptable": `{"evictor":{"UID":"t3"},"evictees":[{"UID":"t1"}]}`,
		"allocate": `{"task":{"UID":"t3","Status":2}}`, "deallocate": `{"task":{"UID":"t0","Status":64}}`,
	} {
		w := b.post(verb, []byte(body))
		require.Equal(t, http.StatusOK, w.Code)
		require.JSONEq(t, map[string]string{
			"queueOverused": `{"overused":false}`, "jobReady": `{"status":true}`, "jobEnqueueable": `{"status":0}`, "predicate": `{"status":"","code":0}`,
			"prioritize": `{"nodeScore":{},"errorMessage":""}`, "reclaimable": `{"status":0,"victims":[]}`, "preemptable": `{"status":0,"victims":[]}`,
			"allocate": `{"errorMessage":""}`, "deallocate": `{"errorMessage":""}`,
		}[verb], w.Body.String(), verb)
		require.Equal(t, 1.0, b.counts("apportion_extender_abstentions_total")["building "+verb+" "], verb)
	}
	release()
	require.Eventually(t, b.overused, time.Minute, time.Millisecond)
}

func TestAPushThatCannotBeDecidedAboutLeavesEverythingToVolcano(t *testing.T) {
	var log bytes.Buffer
	b := newBridge(t, proportionConf, func(o *extender.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	broken := bytes.Replace(cluster(2), []byte(`"MilliCPU":10000`), []byte(`"MilliCPU":-1`), 1)
	b.asked("onSessionOpen", cluster(2))
	b.asked("onSessionOpen", broken)
	require.False(t, b.overused())
	require.Equal(t, map[string]float64{"refused_push queueOverused ": 1}, b.counts("apportion_extender_abstentions_total"))
	require.Contains(t, log.String(), "nodes[0].allocatable.amounts")
}

func TestWhatIsNotVolcanosIsRefused(t *testing.T) {
	b := newBridge(t, proportionConf, func(o *extender.Options) { o.PushBytes, o.VictimBytes = 2000, 100 })
	for name, c := range map[string]struct {
		method, path, body string
		status             int
	}{
		"another method":     {http.MethodGet, "/volcano/jobReady", "", http.StatusMethodNotAllowed},
		"another verb":       {http.MethodPost, "/volcano/jobUnready", "", http.StatusNotFound},
		"another path":       {http.MethodPost, "/kubernetes/jobReady", "", http.StatusNotFound},
		"no path":            {http.MethodPost, "/jobReady", "", http.StatusNotFound},
		"an empty body":      {http.MethodPost, "/volcano/jobReady", "", http.StatusBadRequest},
		"no JSON":            {http.MethodPost, "/volcano/onSessionOpen", "{]", http.StatusBadRequest},
		"another type":       {http.MethodPost, "/volcano/onSessionOpen", `{"Jobs":{"j":{"UID":7}}}`, http.StatusBadRequest},
		"too large a push":   {http.MethodPost, "/volcano/onSessionOpen", string(cluster(2)) + strings.Repeat(" ", 2000), http.StatusRequestEntityTooLarge},
		"too much to keep":   {http.MethodPost, "/volcano/reclaimable", `{"evictees":[` + strings.Repeat(" ", 200) + `]}`, http.StatusOK},
		"too large to count": {http.MethodPost, "/volcano/jobReady", `{"job":{"UID":"` + strings.Repeat("x", 3000) + `"}}`, http.StatusOK},
	} {
		w := httptest.NewRecorder()
		b.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body)))
		require.Equal(t, c.status, w.Code, name)
	}
	require.Equal(t, map[string]float64{"too_large reclaimable ": 1, "too_large jobReady ": 1}, b.counts("apportion_extender_abstentions_total"))
}

func TestOnlyWhoIsKnownMayAsk(t *testing.T) {
	// The password is "correct horse battery staple".
	users, err := extender.ReadUsers(strings.NewReader("# who may ask\n\nvolcano:c4bbcb1fbec99d65bf59d85c8cb62ee2db963f0fe106f483d9afa73bd4e39a8a\n"))
	require.NoError(t, err)
	b := newBridge(t, proportionConf, func(o *extender.Options) { o.Authorize = users.Authorize })
	for name, c := range map[string]struct {
		user, password string
		status         int
	}{
		"no user":        {"", "", http.StatusUnauthorized},
		"a stranger":     {"stranger", "correct horse battery staple", http.StatusUnauthorized},
		"a wrong word":   {"volcano", "incorrect", http.StatusUnauthorized},
		"the right word": {"volcano", "correct horse battery staple", http.StatusOK},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/volcano/onSessionClose", strings.NewReader("{}"))
		if c.user != "" {
			r.SetBasicAuth(c.user, c.password)
		}
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		require.Equal(t, c.status, w.Code, name)
	}
	for _, wrong := range []string{"", "volcano", "volcano:12", ":c4bbcb1f", "a:" + strings.Repeat("0", 64) + "\na:" + strings.Repeat("0", 64)} {
		_, err := extender.ReadUsers(strings.NewReader(wrong))
		require.Error(t, err, wrong)
	}
}

func TestAShadowDecidesAndChangesNothing(t *testing.T) {
	var log bytes.Buffer
	b := newBridge(t, proportionConf, func(o *extender.Options) {
		o.Schedulers[volcanoPath] = extender.Scheduler{Policy: "native", Shadow: true}
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	b.asked("onSessionOpen", cluster(2))
	require.False(t, b.overused())
	require.Equal(t, "0", string(b.asked("jobEnqueueable", []byte(aboutJob)).Status))
	require.Equal(t, map[string]float64{"reject true queueOverused ": 1, "reject true jobEnqueueable ": 1}, b.counts("apportion_extender_decisions_total"))
	require.Contains(t, log.String(), "queue=q decision=reject")
	require.Contains(t, log.String(), "proportion: above real capability")
}

func TestFaultsOfTheOptionsAreToldAtOnce(t *testing.T) {
	policy := func(name string) *apportionv1.Policy {
		switch name {
		case "good":
			return &apportionv1.Policy{}
		case "bad":
			return &apportionv1.Policy{TierWalk: 77}
		}
		return nil
	}
	for _, schedulers := range []map[string]extender.Scheduler{
		nil, {"volcano": {Policy: "good"}}, {"/a": {Policy: "missing"}}, {"/a": {Policy: "bad"}}, {"/a": {Policy: "good"}, "/a/": {Policy: "good"}},
	} {
		_, err := extender.New(extender.Options{Schedulers: schedulers, Policy: policy})
		require.Error(t, err, "%v", schedulers)
	}
	_, err := extender.New(extender.Options{Schedulers: map[string]extender.Scheduler{"/a": {Policy: "good"}}, Policy: policy})
	require.NoError(t, err)
}

// TestASessionOverOneConnection shows that an empty answer keeps the connection, which Volcano's plugin loses after any other to a push.
func TestASessionOverOneConnection(t *testing.T) {
	b := newBridge(t, proportionConf)
	var mu sync.Mutex
	connections := 0
	server := httptest.NewUnstartedServer(b)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			mu.Lock()
			connections++
			mu.Unlock()
		}
	}
	server.Start()
	defer server.Close()
	client := server.Client()
	push := extendertest.Push(extendertest.Shape{Pods: 200})
	for range 5 {
		for _, step := range []struct{ verb, body string }{{"onSessionOpen", string(push)}, {"queueOverused", aboutQueue}, {"onSessionClose", "{}"}} {
			response, err := client.Post(server.URL+"/volcano/"+step.verb, "application/json", strings.NewReader(step.body))
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, response.StatusCode)
			if step.verb != "queueOverused" { // Volcano does not read these answers.
				require.Equal(t, int64(0), response.ContentLength)
			} else {
				_, err = io.Copy(io.Discard, response.Body)
				require.NoError(t, err)
			}
			require.NoError(t, response.Body.Close())
		}
	}
	require.Equal(t, 1, connections)
}

// TestManyAskAtOnce runs under the race detector.
func TestManyAskAtOnce(t *testing.T) {
	b := newBridge(t, benchConf, func(o *extender.Options) { o.Wait = time.Millisecond })
	shape := extendertest.Shape{Pods: 100, Lean: true}
	push, job, event, victims := extendertest.Push(shape), extendertest.Job(shape), extendertest.Event(shape, 2), extendertest.Victims(shape, 10)
	var asking sync.WaitGroup
	for worker := range 8 {
		asking.Go(func() {
			for range 5 {
				for _, q := range []struct {
					verb string
					body []byte
				}{
					{"onSessionOpen", push},
					{"jobReady", job},
					{"jobEnqueueable", job},
					{"allocate", event},
					{"reclaimable", victims},
					{"predicate", extendertest.Predicate(shape)},
					{"prioritize", extendertest.Prioritize(shape, 5)},
					{"onSessionClose", []byte("{}")},
				}[worker%3:] {
					w := httptest.NewRecorder()
					b.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, volcanoPath+"/"+q.verb, bytes.NewReader(q.body)))
					if w.Code != http.StatusOK {
						t.Errorf("%s: %d", q.verb, w.Code)
					}
				}
			}
		})
	}
	asking.Wait()
	require.Zero(t, b.counts("apportion_extender_panics_recovered_total")[""])
}

func TestARequestIsTracedAndWhatBecomesOfAPushInIt(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	b := newBridge(t, proportionConf, func(o *extender.Options) {
		o.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	})
	b.asked("onSessionOpen", cluster(1))
	require.False(t, b.overused())
	ended := map[string]sdktrace.ReadOnlySpan{}
	require.Eventually(t, func() bool {
		for _, s := range spans.Ended() {
			ended[s.Name()] = s
		}
		return len(ended) == 3
	}, time.Minute, time.Millisecond)
	require.Equal(t, ended["extender/onSessionOpen"].SpanContext().SpanID(), ended["build"].Parent().SpanID())
	require.Contains(t, ended["extender/queueOverused"].Attributes(), attribute.String("apportion.scheduler", volcanoPath))
}

func TestMoreThanMayBeUnderWayIsLeftToVolcano(t *testing.T) {
	change, release := slow(policyOf(t, proportionConf))
	b := newBridge(t, proportionConf, change, func(o *extender.Options) { o.Requests, o.Wait = 1, 100*time.Millisecond })
	defer release()
	b.asked("onSessionOpen", cluster(2))
	var asking sync.WaitGroup
	for range 3 {
		asking.Go(func() { b.overused() })
	}
	asking.Wait()
	counts := b.counts("apportion_extender_abstentions_total")
	require.Equal(t, 3.0, counts["busy queueOverused "]+counts["building queueOverused "], counts)
	require.Positive(t, counts["busy queueOverused "], counts)
	// The beginning and the end of a session are noticed nevertheless.
	b.asked("onSessionClose", []byte("{}"))
	require.False(t, b.overused())
	require.Equal(t, 1.0, b.counts("apportion_extender_abstentions_total")["no_snapshot queueOverused "])
}

func TestRequestsAreTakenForAWhileAfterTheServerIsToldToEnd(t *testing.T) {
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 10)
		ctx, end := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() {
			served <- extender.NewServer(handler, extender.ServerOptions{DrainDelay: time.Minute}).Serve(ctx, listener)
		}()
		client := &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.DialContext(ctx) },
		}}
		post := func() error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://volcano"+volcanoPath+"/queueOverused", strings.NewReader(aboutQueue))
			require.NoError(t, err)
			response, err := client.Do(request)
			if err != nil {
				return err
			}
			return response.Body.Close()
		}
		end()
		time.Sleep(time.Minute - 1)
		require.NoError(t, post(), "within the delay")
		require.NoError(t, <-served)
		require.Error(t, post(), "after it")
	})
}

func TestTheServerEndsWhatIsUnderWay(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := extender.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-release
		w.WriteHeader(http.StatusOK)
	}), extender.ServerOptions{})
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	answered := make(chan int, 1)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	go func() {
		response, err := client.Post("http://"+listener.Addr().String(), "application/json", strings.NewReader("{}"))
		if err != nil {
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	<-begun
	end()
	close(release)
	require.Equal(t, http.StatusOK, <-answered)
	require.NoError(t, <-served)
}

func TestAnAnswerThatNobodyTakesIsGivenUp(t *testing.T) {
	given := make(chan error, 1)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := extender.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		err, part := error(nil), make([]byte, 1<<20)
		for err == nil {
			_, err = w.Write(part)
		}
		given <- err
	}), extender.ServerOptions{ReadTime: 500 * time.Millisecond, WriteTime: time.Millisecond, DrainTime: time.Millisecond})
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /volcano/reclaimable HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
	require.NoError(t, err)
	select {
	case err := <-given:
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	case <-time.After(time.Minute):
		require.Fail(t, "the answer still waits to be taken")
	}
	end()
	require.NoError(t, <-served)
}

// TestSlowQuestionsHoldNoPlace sends more questions than may be decided at a time, none of which arrives whole, and then another.
func TestSlowQuestionsHoldNoPlace(t *testing.T) {
	b := newBridge(t, proportionConf, func(o *extender.Options) { o.Requests = 1 })
	b.asked("onSessionOpen", cluster(1))
	require.False(t, b.overused())
	var asking sync.WaitGroup
	var slow []*io.PipeWriter
	for _, verb := range []string{"queueOverused", "predicate", "jobEnqueueable", "reclaimable", "preemptable", "reclaimable", "preemptable", "allocate"} {
		body, send := io.Pipe()
		asking.Go(func() {
			b.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, volcanoPath+"/"+verb, body))
		})
		_, err := send.Write([]byte(`{"que`))
		require.NoError(t, err)
		slow = append(slow, send)
	}
	before := b.counts("apportion_extender_abstentions_total")["busy queueOverused "]
	require.False(t, b.overused())
	require.InDelta(t, before, b.counts("apportion_extender_abstentions_total")["busy queueOverused "], 0)
	for _, send := range slow {
		require.NoError(t, send.Close())
	}
	asking.Wait()
}
