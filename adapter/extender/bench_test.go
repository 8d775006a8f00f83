package extender_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/extender"
	"github.com/apportion/apportion/adapter/extender/extendertest"
)

// benchConf is the configuration of the benchmarks.
const benchConf = "actions: allocate\ntiers: [{plugins: [{name: priority}, {name: gang}, {name: conformance}]}, {plugins: [{name: drf}, {name: proportion}, {name: binpack}]}]"

// listen serves a bridge on loopback and returns the URL of its scheduler and a client with Volcano's default timeout.
func listen(tb testing.TB, h http.Handler) (string, *http.Client) {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	served := make(chan error, 1)
	go func() { served <- extender.NewServer(h, extender.ServerOptions{}).Serve(tb.Context(), listener) }()
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	tb.Cleanup(func() {
		client.CloseIdleConnections()
		require.NoError(tb, <-served)
	})
	return "http://" + listener.Addr().String() + volcanoPath, client
}

func send(tb testing.TB, client *http.Client, url string, body []byte) {
	tb.Helper()
	response, err := client.Post(url, "application/json", bytes.NewReader(body))
	require.NoError(tb, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(tb, err)
	require.NoError(tb, response.Body.Close())
	require.Equal(tb, http.StatusOK, response.StatusCode)
}

// BenchmarkPush measures what a scheduler waits for a push: connecting, sending, and the answer. The metric ready-ms is the time until the
// first question is answered.
func BenchmarkPush(b *testing.B) {
	for _, shape := range []extendertest.Shape{{Pods: 1000, Lean: true}, {Pods: 1000}, {Pods: 10_000, Lean: true}, {Pods: 10_000}} {
		name := fmt.Sprintf("pods=%d/real=%t", shape.Pods, !shape.Lean)
		b.Run(name, func(b *testing.B) {
			body, question := extendertest.Push(shape), extendertest.Job(shape)
			bridge := newBridge(b, benchConf)
			url, client := listen(b, bridge)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			worst, ready := time.Duration(0), time.Duration(0)
			for b.Loop() {
				begun := time.Now()
				send(b, client, url+"/onSessionOpen", body)
				worst = max(worst, time.Since(begun))
				send(b, client, url+"/jobReady", question)
				ready += time.Since(begun)
			}
			b.ReportMetric(float64(worst.Milliseconds()), "worst-ms")
			b.ReportMetric(float64(ready.Milliseconds())/float64(b.N), "ready-ms")
			bridge.requireNoAbstention()
		})
	}
}

// BenchmarkQuestion measures what a scheduler waits for an answer.
func BenchmarkQuestion(b *testing.B) {
	shape := extendertest.Shape{Pods: 10_000}
	bridge := newBridge(b, benchConf)
	url, client := listen(b, bridge)
	send(b, client, url+"/onSessionOpen", extendertest.Push(shape))
	for _, q := range []struct {
		verb string
		body []byte
	}{
		{"queueOverused", []byte(`{"queue":{"UID":"queue-0001","Name":"queue-0001"}}`)},
		{"jobReady", extendertest.Job(shape)},
		{"predicate", extendertest.Predicate(shape)},
		{"prioritize", extendertest.Prioritize(shape, 1000)},
		{"reclaimable", extendertest.Victims(shape, 10)},
		{"allocate", extendertest.Event(shape, 2)},
	} {
		b.Run(q.verb, func(b *testing.B) {
			b.SetBytes(int64(len(q.body)))
			for b.Loop() {
				send(b, client, url+"/"+q.verb, q.body)
			}
		})
	}
	bridge.requireNoAbstention()
}

// BenchmarkMemory reports what a push of 10,000 pods costs the service in memory: what it keeps, and the sum of what it allocates.
func BenchmarkMemory(b *testing.B) {
	shape := extendertest.Shape{Pods: 10_000}
	body := extendertest.Push(shape)
	for b.Loop() {
		bridge := newBridge(b, benchConf)
		before := memory()
		bridge.post("onSessionOpen", body)
		bridge.post("queueOverused", []byte(`{"queue":{"Name":"queue-0001"}}`))
		after := memory()
		b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/1e6, "kept-MB")
		b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/1e6, "allocated-MB")
		runtime.KeepAlive(bridge)
		runtime.KeepAlive(body)
	}
}

func memory() (m runtime.MemStats) {
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}
