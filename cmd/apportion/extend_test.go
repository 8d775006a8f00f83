package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/cli"
)

// recordedRequest is a request that stock Volcano sent.
type recordedRequest struct {
	Verb    string `json:"verb"`
	Request struct {
		Body json.RawMessage `json:"body"`
	} `json:"request"`
}

// recordedRequests is a session of stock Volcano's, from its push to its close.
func recordedRequests(t *testing.T) []recordedRequest {
	t.Helper()
	packed, err := os.Open(filepath.Join("..", "..", "adapter", "extender", "testdata", "proportion-1024.json.gz"))
	require.NoError(t, err)
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	require.NoError(t, err)
	var recording struct {
		Exchanges []recordedRequest `json:"exchanges"`
	}
	require.NoError(t, json.NewDecoder(plain).Decode(&recording))
	return recording.Exchanges
}

// posted is the status and body of the answer to a request with basic authorization in its URL, as Volcano sends it.
func posted(t *testing.T, url string, body []byte) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, string(answer)
}

func TestServeAnswersVolcano(t *testing.T) {
	dir := t.TempDir()
	conf, users := filepath.Join(dir, "volcano-scheduler.conf"), filepath.Join(dir, "users")
	require.NoError(t, os.WriteFile(conf, []byte("tiers:\n- plugins:\n  - name: proportion\nactions: enqueue, allocate, backfill, preempt, reclaim\n"), 0o600))
	// The password is "word".
	require.NoError(t, os.WriteFile(users, []byte("volcano:98c1eb4ee93476743763878fcb96a25fbc9a175074d64004779ecb5242f645e6\n"), 0o600))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := &lockedBuffer{}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{
			"serve", "--listen", "127.0.0.1:0", "--drain-delay", "0s", "--policies", "house=" + conf,
			"--extender-listen", "127.0.0.1:0", "--extender-schedulers", "/volcano=house,/beside=house", "--extender-shadow", "/beside", "--extender-users", users,
		}, strings.NewReader(""), io.Discard, log)
	}()
	at := "volcano:word@" + log.find(t, `msg="answering Volcano" address=(\S+)`)
	push, question := recordedRequests(t)[0].Request.Body, []byte(`{"queue":{"Name":"q1"}}`)
	for path, answer := range map[string]string{"/volcano": `{"overused":true}`, "/beside": `{"overused":false}`} {
		status, body := posted(t, "http://"+at+path+"/onSessionOpen", push)
		require.Equal(t, http.StatusOK, status, body)
		require.Empty(t, body)
		status, body = posted(t, "http://"+at+path+"/queueOverused", question)
		require.Equal(t, http.StatusOK, status)
		require.JSONEq(t, answer, body, path)
	}
	log.find(t, `(decision=reject scheduler=/beside verb=queueOverused)`)
	status, _ := posted(t, "http://"+strings.TrimPrefix(at, "volcano:word@")+"/volcano/queueOverused", question)
	require.Equal(t, http.StatusUnauthorized, status)

	stop()
	require.Equal(t, cli.ExitYes, <-ended)
}

func TestWhatVolcanoWasAnsweredIsLoggedAndDecidedAgain(t *testing.T) {
	dir := t.TempDir()
	conf, users := filepath.Join(dir, "volcano-scheduler.conf"), filepath.Join(dir, "users")
	require.NoError(t, os.WriteFile(conf, []byte("tiers:\n- plugins:\n  - name: gang\n  - name: proportion\nactions: enqueue, allocate, backfill, preempt, reclaim\n"), 0o600))
	require.NoError(t, os.WriteFile(users, []byte("volcano:98c1eb4ee93476743763878fcb96a25fbc9a175074d64004779ecb5242f645e6\n"), 0o600))
	decisions, store := filepath.Join(dir, "decisions.jsonl"), filepath.Join(dir, "kept")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := &lockedBuffer{}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{
			"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--drain-delay", "0s", "--policies", "house=" + conf,
			"--extender-listen", "127.0.0.1:0", "--extender-schedulers", "/volcano=house", "--extender-users", users, "--metrics-queues", "50",
			"--decision-log-sink", "file", "--decision-log-file", decisions, "--decision-log-store", store,
		}, strings.NewReader(""), io.Discard, log)
	}()
	at := log.find(t, `msg="answering Volcano" address=(\S+)`)
	var requests []recordedRequest
	for _, r := range recordedRequests(t) {
		requests = append(requests, r)
		if r.Verb == "jobEnqueueable" { // Volcano 1.16 reports every admitted job.
			r.Verb = "jobEnqueued"
			requests = append(requests, r)
		}
	}
	for _, r := range requests {
		status, body := posted(t, "http://volcano:word@"+at+"/volcano/"+r.Verb, r.Request.Body)
		require.Equal(t, http.StatusOK, status, body)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"http://"+log.find(t, `msg="serving metrics" address=(\S+)`)+"/metrics", http.NoBody)
	require.NoError(t, err)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	require.NoError(t, err)
	metrics, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Contains(t, string(metrics), `apportion_queue_deserved{cluster="/volcano",identity="volcano",plugin="proportion",policy="house",queue="q1",resource="cpu"}`)
	stop()
	require.Equal(t, cli.ExitYes, <-ended, log)

	written, err := os.ReadFile(decisions)
	require.NoError(t, err)
	verbs := map[string]int{}
	for line := range bytes.Lines(written) {
		var entry struct {
			Method    string            `json:"method"`
			Scheduler string            `json:"scheduler"`
			Identity  string            `json:"identity"`
			Session   string            `json:"session"`
			Sent      json.RawMessage   `json:"sent"`
			Answers   []json.RawMessage `json:"answers"`
		}
		require.NoError(t, json.Unmarshal(line, &entry))
		verbs[entry.Method]++
		require.Equal(t, "/volcano", entry.Scheduler)
		require.NotEmpty(t, entry.Session)
		if entry.Method != "onSessionClose" {
			require.Equal(t, "volcano", entry.Identity, "%s", line)
		}
		if entry.Method != "onSessionOpen" && entry.Method != "onSessionClose" {
			require.NotEmpty(t, entry.Sent, "%s", line)
			if entry.Method == "queueOverused" || entry.Method == "jobReady" || entry.Method == "jobEnqueueable" || entry.Method == "reclaimable" {
				require.NotEmpty(t, entry.Answers, "%s", line)
			}
		}
	}
	sent := map[string]int{}
	for _, r := range requests {
		sent[r.Verb]++
	}
	require.Equal(t, sent, verbs, "every request is an entry")

	var out bytes.Buffer
	require.Equal(t, cli.ExitYes, run(t.Context(), []string{"replay", decisions, "--store", store}, nil, &out, io.Discard), out.String())
	require.Contains(t, out.String(), "0 otherwise")
	require.NotContains(t, out.String(), "not decided again")
	// The last one stands in an answer, after what was sent.
	spoilt, overused := bytes.Clone(written), []byte(`"overused":true`)
	copy(spoilt[bytes.LastIndex(spoilt, overused):], `"overuset":true`)
	spoilt = bytes.Replace(spoilt, []byte(`"overuset":true`), []byte(`"overused":false`), 1)
	require.NoError(t, os.WriteFile(decisions, spoilt, 0o600))
	require.Equal(t, cli.ExitNo, run(t.Context(), []string{"replay", decisions, "--store", store}, nil, &out, io.Discard), out.String())
}

func TestVolcanoIsHeldToTheServersLimitsAndAnsweredWhileItDrains(t *testing.T) {
	log := &lockedBuffer{}
	// The drain lasts longer than any test: a second signal ends it.
	server := exec.CommandContext(t.Context(), "apportion", "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--drain-delay", "1h", "--policies", "house=preset:proportion",
		"--extender-listen", "127.0.0.1:0", "--extender-schedulers", "/volcano=house", "--limit-nodes", "1")
	server.Stderr = log
	require.NoError(t, server.Start())
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	at := "http://" + log.find(t, `msg="answering Volcano" address=(\S+)`) + "/volcano/"
	status, body := posted(t, at+"onSessionOpen", []byte(`{"Nodes":{"a":{"Name":"a"}}}`))
	require.Equal(t, http.StatusOK, status, body)
	status, body = posted(t, at+"onSessionOpen", []byte(`{"Nodes":{"a":{"Name":"a"},"b":{"Name":"b"}}}`))
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	require.Contains(t, body, "2 nodes, at most 1")

	ready := func() int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			"http://"+log.find(t, `msg="serving metrics" address=(\S+)`)+"/readyz", http.NoBody)
		require.NoError(t, err)
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	require.Equal(t, http.StatusOK, ready())
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool { return ready() == http.StatusServiceUnavailable }, time.Minute, time.Millisecond)
	status, body = posted(t, at+"queueOverused", []byte(`{"queue":{"Name":"q"}}`))
	require.Equal(t, http.StatusOK, status, "it says that it ends, and answers still")
	require.JSONEq(t, `{"overused":false}`, body)
	var err error
	require.Eventually(t, func() bool {
		_ = server.Process.Signal(syscall.SIGTERM)
		select {
		case err = <-ended:
			return true
		default:
			return false
		}
	}, time.Minute, 10*time.Millisecond)
	require.ErrorContains(t, err, "terminated")
}

func TestServeRefusesToAnswerVolcanoHalfConfigured(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "volcano-scheduler.conf")
	require.NoError(t, os.WriteFile(conf, []byte("tiers:\n- plugins:\n  - name: proportion\nactions: enqueue, allocate, backfill, preempt, reclaim\n"), 0o600))
	for says, flags := range map[string][]string{
		"extender.schedulers: requires extender.listen":           {"--extender-schedulers", "/a=house"},
		"extender.schedulers: at least one scheduler is required": {"--extender-listen", "127.0.0.1:0"},
		"flag --extender-schedulers: NAME=VALUE is expected":      {"--extender-listen", "127.0.0.1:0", "--extender-schedulers", "/a"},
		`no policy "home" is configured`:                          {"--extender-listen", "127.0.0.1:0", "--extender-schedulers", "/a=home"},
		`"a" does not begin with /`:                               {"--extender-listen", "127.0.0.1:0", "--extender-schedulers", "a=house"},
		`extender.schedulers has no path "/b"`:                    {"--extender-listen", "127.0.0.1:0", "--extender-schedulers", "/a=house", "--extender-shadow", "/b"},
		"nowhere: no such file":                                   {"--extender-listen", "127.0.0.1:0", "--extender-schedulers", "/a=house", "--extender-users", "nowhere"},
		"extender.listen: host:port or unix:PATH is expected":     {"--extender-listen", "nowhere:x", "--extender-schedulers", "/a=house"},
		"extender.tls: requires tls.certificate":                  {"--extender-listen", "127.0.0.1:0", "--extender-schedulers", "/a=house", "--extender-tls"},
		"0.0.0.0:0 can be reached from other machines":            {"--extender-listen", "0.0.0.0:0", "--extender-schedulers", "/a=house"},
	} {
		var problems bytes.Buffer
		code := run(t.Context(), append([]string{"serve", "--listen", "127.0.0.1:0", "--policies", "house=" + conf}, flags...), nil, io.Discard, &problems)
		require.Equal(t, cli.ExitUsage, code, problems.String())
		require.Contains(t, problems.String(), says)
	}
}
