package history_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/history"
)

var begin = time.Date(2026, time.October, 5, 0, 0, 30, 0, time.UTC)

func question(url string) *history.Range {
	return &history.Range{
		URL: url, Query: "sum by (queue_name) (kai_queue_allocated_gpus)", Token: "secret", Begin: begin, End: begin.Add(20 * 24 * time.Hour),
		Step: time.Minute, Timeout: 5 * time.Second, Bytes: 4 << 20,
	}
}

var labels = history.Options{
	Metric: "nvidia.com/gpu", QueueLabel: "queue_name", OwnerLabel: "user", Now: begin.Add(30 * 24 * time.Hour).Unix(),
}

// steady answers a range query with two devices of queue vision at each step.
func steady(t *testing.T, asked *int) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		*asked++
		number := func(name string) int64 {
			n, err := strconv.ParseInt(r.FormValue(name), 10, 64)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return n
		}
		if r.URL.Path != "/prometheus/api/v1/query_range" || r.Header.Get("Authorization") != "Bearer secret" || r.Method != http.MethodPost {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		from, to, step := number("start"), number("end"), number("step")
		if from%step != 0 || (to-from)/step >= 11_000 {
			t.Errorf("Prometheus refuses a range from %d to %d by %d", from, to, step)
		}
		var values []string
		for at := from; at <= to; at += step {
			values = append(values, fmt.Sprintf(`[%d,"2"]`, at))
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"queue_name":"vision"},"values":[%s]}]}}`,
			strings.Join(values, ","))
	}
}

func TestARangeQueryIsAskedInPartsAndCountsEachStepOnce(t *testing.T) {
	asked := 0
	server := httptest.NewServer(steady(t, &asked))
	defer server.Close()
	l, err := ledger.New(ledger.Options{Epoch: time.Hour, Retain: 1000})
	require.NoError(t, err)
	for range 2 {
		report, err := history.ReadRange(t.Context(), question(server.URL+"/prometheus/"), labels, l)
		require.NoError(t, err)
		require.Equal(t, 20*24*60, report.Rows)
		require.Empty(t, report.Bad)
	}
	require.Equal(t, 6, asked, "three parts, twice")
	first, last, some := l.Span()
	require.True(t, some)
	used := l.Spent(first, last+1)[ledger.Line{Queue: "vision"}]
	require.Equal(t, []int64{2 * 20 * 24 * 3600}, used)
}

func TestARangeQueryThatIsNotAnsweredIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		change func(*history.Range)
		want   string
	}{
		"too many bytes": {
			func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"`+strings.Repeat("x", 100)) },
			func(q *history.Range) { q.Bytes = 50 }, "the answer has more than 50 bytes",
		},
		"an answer that is cut": {
			func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"success"`) }, nil, "is no JSON",
		},
		"a fault of the query": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `{"status":"error","error":"parse error: unexpected"}`)
			}, nil, "from 2026-10-05T00:00:00Z on: the server answers 400 Bad Request parse error: unexpected",
		},
		"a server that does not answer in time": {
			func(_ http.ResponseWriter, r *http.Request) {
				_ = r.ParseForm()
				<-r.Context().Done()
			}, func(q *history.Range) { q.Timeout = 20 * time.Millisecond }, "deadline exceeded",
		},
		"no URL":         {nil, func(q *history.Range) { q.URL = "prometheus:9090" }, `"prometheus:9090" is no URL`},
		"no query":       {nil, func(q *history.Range) { q.Query = "" }, "there is no query"},
		"half a second":  {nil, func(q *history.Range) { q.Step = time.Second / 2 }, "a step of 500ms is not whole seconds"},
		"no time at all": {nil, func(q *history.Range) { q.End = q.Begin }, "there are 0 steps"},
		"too long":       {nil, func(q *history.Range) { q.End, q.Step = q.Begin.AddDate(1, 0, 0), time.Second }, "31536000 steps"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.answer(w, r) }))
			defer server.Close()
			q := question(server.URL)
			if c.change != nil {
				c.change(q)
			}
			l, err := ledger.New(ledger.Options{})
			require.NoError(t, err)
			_, err = history.ReadRange(t.Context(), q, labels, l)
			require.ErrorContains(t, err, c.want)
		})
	}
}
