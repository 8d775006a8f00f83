package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/admission"
	"github.com/apportion/apportion/service/servicetest"
	"github.com/apportion/apportion/service/web"
)

const serveInstead = "APPORTION_WEB_TEST_SERVE"

// TestMain serves instead if the process was started as a server.
func TestMain(m *testing.M) {
	if os.Getenv(serveInstead) == "" {
		os.Exit(m.Run())
	}
	if err := serveBounded(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Bounds of the server that runs as a process of its own.
const (
	boundedMessage, boundedMemory, boundedReceiving = 4 << 20, 512 << 20, 64 << 20
	// emptyServer is the memory of the process without calls: program, runtime, connections.
	emptyServer = 64 << 20
)

func serveBounded() error {
	server, err := service.New(service.Options{
		Policies: map[string]*apportionv1.Policy{"cluster": servicetest.Proportion()}, Limit: setting.Limit{MessageBytes: boundedMessage},
		Overload: admission.Options{Memory: boundedMemory, Receiving: boundedReceiving, Running: 2},
	})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(os.Stdout, listener.Addr()); err != nil {
		return err
	}
	h := &http.Server{Handler: web.NewHandler(server, web.Options{}), ReadHeaderTimeout: time.Minute}
	// It ends when its input does, which is with the test.
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = h.Close()
	}()
	if err := h.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// TestManyDocumentsAtATimeStayWithinWhatIsBooked measures the memory of a process of its own.
func TestManyDocumentsAtATimeStayWithinWhatIsBooked(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	const limit = boundedMemory + boundedReceiving + emptyServer
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), serveInstead+"=1", "GOMEMLIMIT="+strconv.Itoa(limit))
	in, err := command.StdinPipe()
	require.NoError(t, err)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = command.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	target := "http://" + strings.TrimSpace(line)
	before := peak(t, command.Process.Pid)

	document := many("jobs", boundedMessage)
	binary, err := proto.Marshal(&apportionv1.EvaluateSharesRequest{Input: servicetest.Named(
		&apportionv1.Snapshot{Jobs: make([]*apportionv1.Job, 1_000_000)}, "cluster")})
	require.NoError(t, err)
	var asking sync.WaitGroup
	answers := make(chan int, 100)
	rounds := 6
	if raced.On {
		rounds = 1
	}
	for range rounds {
		for _, c := range []struct {
			form    byte
			message []byte
		}{{formGet | formGzip | formPack, document}, {0, document}, {formGzip | formPack, document}, {formProto, binary}} {
			asking.Go(func() {
				r := requestOf(t.Context(), shares, c.form, c.message)
				r.RequestURI = ""
				whole, err := r.URL.Parse(target + r.URL.String())
				if err != nil {
					t.Error(err)
					return
				}
				r.URL = whole
				response, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				answers <- response.StatusCode
				_ = response.Body.Close()
			})
		}
	}
	asking.Wait()
	after := peak(t, command.Process.Pid)
	t.Logf("%d MiB before, %d MiB at most during %d calls, %d MiB may be booked", before>>20, after>>20, 4*rounds, limit>>20)
	if !raced.On {
		// The race detector takes several times the memory.
		require.Less(t, after, int64(limit+limit/10))
	}
	close(answers)
	for status := range answers {
		require.Contains(t, []int{http.StatusBadRequest, http.StatusTooManyRequests}, status, "answered, or told to come again")
	}
}

// peak returns the most memory that a process had.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.SplitSeq(string(status), "\n") {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(text)[0], 10, 64)
			require.NoError(t, err)
			return kib << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// TestADocumentThatTakesTooMuchIsRefusedBeforeItIsDecoded sends documents that are small and become large.
func TestADocumentThatTakesTooMuchIsRefusedBeforeItIsDecoded(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := servicetest.Start(t, service.Options{
		Policies: map[string]*apportionv1.Policy{"cluster": servicetest.Proportion()}, Registry: registry,
		Overload: admission.Options{Memory: 64 << 20},
	})
	handler := web.NewHandler(r.Server, web.Options{})
	document := many("jobs", 16<<20)
	for name, c := range map[string]struct {
		form    byte
		message []byte
		limit   string
		most    uint64
	}{
		"a GET that inflates":           {formGet | formGzip | formPack, document, "overload.memory", 64 << 20},
		"a POST that inflates":          {formGzip | formPack, document, "overload.memory", 64 << 20},
		"a POST that is large":          {0, document, "overload.memory", 64 << 20},
		"gRPC-Web that inflates":        {formGzip | formPack | formFramed, document, "overload.memory", 64 << 20},
		"a GET beyond all bounds":       {formGet | formGzip | formPack, append(document, document...), "message_bytes", 64 << 20},
		"a question that inflates":      {formGzip | formPack | formProto, make([]byte, 8<<20), "question_bytes", 64 << 20},
		"a GET of a question, inflated": {formGet | formGzip | formPack | formProto, make([]byte, 8<<20), "question_bytes", 64 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			request := requestOf(t.Context(), shares, c.form, c.message)
			answer := httptest.NewRecorder()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			handler.ServeHTTP(answer, request)
			runtime.ReadMemStats(&after)
			taken := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d bytes sent, %d MiB allocated in all", max(request.ContentLength, int64(len(request.URL.RawQuery))), taken>>20)
			require.Less(t, taken, c.most)
			if c.form&formFramed == 0 {
				require.Equal(t, http.StatusBadRequest, answer.Code, answer.Body.String())
				var told map[string]any
				require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &told))
				require.Equal(t, c.limit, requireError(t, told, "out_of_range", "LIMIT_EXCEEDED").GetMetadata()["limit"])
			}
		})
	}
	requireGivenBack(t, registry)
}

// TestAMessageThatDoesNotComeIsEndedOverHTTP sends a part of a message, over both versions of HTTP.
func TestAMessageThatDoesNotComeIsEndedOverHTTP(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := servicetest.Start(t, service.Options{Deadline: setting.Deadline{Message: 100 * time.Millisecond}, Registry: registry})
	for _, version := range []int{1, 2} {
		server := httptest.NewUnstartedServer(web.NewHandler(r.Server, web.Options{Settings: setting.HTTP{Calls: 1}}))
		server.EnableHTTP2 = version == 2
		server.StartTLS()
		t.Cleanup(server.Close)
		for range 3 {
			body, part := io.Pipe()
			go func() { _, _ = part.Write([]byte(`{"input":`)) }()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+shares, body)
			require.NoError(t, err)
			request.Header.Set("Content-Type", "application/json")
			response, err := server.Client().Do(request)
			require.NoError(t, err)
			require.Equal(t, version, response.ProtoMajor)
			require.Equal(t, http.StatusGatewayTimeout, response.StatusCode)
			var told map[string]any
			require.NoError(t, json.NewDecoder(response.Body).Decode(&told))
			require.Equal(t, "deadline.message", requireError(t, told, "deadline_exceeded", "LIMIT_EXCEEDED").GetMetadata()["limit"])
			require.NoError(t, response.Body.Close())
			require.NoError(t, part.Close())
		}
	}
	requireGivenBack(t, registry)
}

// TestAConnectionGoesOnAfterItsMessages makes calls beyond the time for a message on one connection.
func TestAConnectionGoesOnAfterItsMessages(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := start(t, service.Options{
		Deadline: setting.Deadline{Message: 50 * time.Millisecond}, Observers: []service.Observer{holding{entered, leave}},
	}, web.Options{})
	for range 2 {
		go func() {
			<-entered
			time.Sleep(100 * time.Millisecond)
			leave <- struct{}{}
		}()
		status, _, answer := s.post(t, shares, small)
		require.Equal(t, http.StatusOK, status, answer)
	}
}

// TestAnAnswerThatIsNotTakenIsBookedOverHTTP asks for a large answer, and does not read it.
func TestAnAnswerThatIsNotTakenIsBookedOverHTTP(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := start(t, service.Options{Registry: registry}, web.Options{})
	snapshot := &apportionv1.Snapshot{}
	for i := range 50_000 {
		snapshot.Queues = append(snapshot.Queues, &apportionv1.Queue{Name: strings.Repeat("queue-", 30) + strconv.Itoa(i)})
	}
	data, err := proto.Marshal(&apportionv1.EvaluateSharesRequest{Input: servicetest.Named(snapshot, "cluster")})
	require.NoError(t, err)
	booked := func() float64 {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "apportion_message_bytes" {
				return f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return 0
	}
	request := requestOf(t.Context(), shares, formProto, data)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.http.Listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, request.Write(conn))
	// Headers come with the first bytes of the answer.
	_, err = conn.Read(make([]byte, 1))
	require.NoError(t, err)
	// It is more than the buffers of a socket hold, so the server still sends it.
	require.Greater(t, booked(), float64(2*len(data)), "the answer names as many queues as the question")
	require.NoError(t, conn.Close())
	requireGivenBack(t, registry)

	small := start(t, service.Options{Overload: admission.Options{Receiving: 16 << 20}}, web.Options{})
	queues := make([]string, 50_000)
	for i := range queues {
		queues[i] = `{"name":"queue-` + strconv.Itoa(i) + `"}`
	}
	status, _, answer := small.post(t, shares, `{"input":{"policyName":"cluster","snapshot":{"queues":[`+strings.Join(queues, ",")+`]}}}`)
	require.NotEqual(t, http.StatusOK, status)
	require.Equal(t, "overload.receiving", requireError(t, answer, "out_of_range", "LIMIT_EXCEEDED").GetMetadata()["limit"])
}
