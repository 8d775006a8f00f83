package extender_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/extender"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// recording is one file of testdata: what stock Volcano sent, and what its own plugins answer to the same.
type recording struct {
	NativeConf string            `json:"nativeConf"`
	Conf       string            `json:"conf"`
	Manifests  []json.RawMessage `json:"manifests"`
	Exchanges  []exchange        `json:"exchanges"`
}

type exchange struct {
	Verb string `json:"verb"`
	Call struct {
		Function string          `json:"function"`
		Own      json.RawMessage `json:"volcanoOwnPlugins"`
	} `json:"call"`
	Request struct {
		Method    string            `json:"method"`
		Path      string            `json:"path"`
		Headers   map[string]string `json:"headers"`
		BodyBytes int               `json:"bodyBytes"`
		Body      json.RawMessage   `json:"body"`
	} `json:"request"`
}

func readRecording(tb testing.TB, name string) *recording {
	tb.Helper()
	packed, err := os.Open(filepath.Join("testdata", name))
	require.NoError(tb, err)
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	require.NoError(tb, err)
	var r recording
	require.NoError(tb, json.NewDecoder(plain).Decode(&r))
	return &r
}

// sent is the body as Volcano sent it; the recording is indented.
func (e *exchange) sent(tb testing.TB) []byte {
	tb.Helper()
	var out bytes.Buffer
	require.NoError(tb, json.Compact(&out, e.Request.Body))
	return bytes.ReplaceAll(bytes.ReplaceAll(bytes.ReplaceAll(out.Bytes(), []byte("<"), []byte(`\u003c`)), []byte(">"), []byte(`\u003e`)),
		[]byte("&"), []byte(`\u0026`))
}

func policyOf(tb testing.TB, conf string) *apportionv1.Policy {
	tb.Helper()
	policy, _, err := schedulerconf.Read(objects.Source{Name: "conf", Data: []byte(conf)})
	require.NoError(tb, err)
	return policy
}

// asOf is the time of the recordings, for the pods that have a cooldown.
var asOf = time.Date(2026, time.January, 2, 3, 10, 0, 0, time.UTC)

// volcanoPath is the path of the only scheduler of most tests.
const volcanoPath = "/volcano"

// bridge is a handler for one scheduler.
type bridge struct {
	*extender.Handler

	t        testing.TB
	registry *prometheus.Registry
}

func newBridge(tb testing.TB, conf string, change ...func(*extender.Options)) *bridge {
	tb.Helper()
	policy := policyOf(tb, conf)
	b := &bridge{t: tb, registry: prometheus.NewRegistry()}
	options := extender.Options{
		Schedulers: map[string]extender.Scheduler{volcanoPath: {Policy: "native"}},
		Policy: func(name string) *apportionv1.Policy {
			if name != "native" {
				return nil
			}
			return policy
		},
		Wait: time.Minute, Registerer: b.registry, Now: func() time.Time { return asOf },
	}
	if t, is := tb.(*testing.T); is {
		options.Observer = &observing{t: t}
	}
	for _, c := range change {
		c(&options)
	}
	var err error
	b.Handler, err = extender.New(options)
	require.NoError(tb, err)
	return b
}

// post sends a request to a verb and returns what came back.
func (b *bridge) post(verb string, body []byte) *httptest.ResponseRecorder {
	b.t.Helper()
	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequestWithContext(b.t.Context(), http.MethodPost, volcanoPath+"/"+verb, bytes.NewReader(body)))
	return w
}

// asked sends a question and decodes the answer.
func (b *bridge) asked(verb string, body []byte) reply {
	b.t.Helper()
	w := b.post(verb, body)
	require.Equal(b.t, http.StatusOK, w.Code, w.Body.String())
	var r reply
	if verb != "onSessionOpen" && verb != "onSessionClose" {
		require.NoError(b.t, json.Unmarshal(w.Body.Bytes(), &r), w.Body.String())
	}
	return r
}

// reply is every answer at once.
type reply struct {
	Status       json.RawMessage    `json:"status"`
	Code         int                `json:"code"`
	Overused     bool               `json:"overused"`
	NodeScore    map[string]float64 `json:"nodeScore"`
	ErrorMessage string             `json:"errorMessage"`
	Victims      []json.RawMessage  `json:"victims"`
}

// named is a task as the recording refers to it.
func named(tb testing.TB, victim json.RawMessage) string {
	tb.Helper()
	var task struct {
		Namespace string `json:"Namespace"`
		Name      string `json:"Name"`
	}
	require.NoError(tb, json.Unmarshal(victim, &task))
	return task.Namespace + "/" + task.Name
}

// session is Volcano's decision after an answer if the extender is the only plugin. The recording calls it the session's result.
func (r reply) session(tb testing.TB, verb string) any {
	tb.Helper()
	switch verb {
	case "queueOverused":
		return r.Overused
	case "jobReady":
		return string(r.Status) == "true"
	case "jobEnqueueable":
		return string(r.Status) != "-1"
	case "preemptable", "reclaimable":
		if string(r.Status) == "0" || len(r.Victims) == 0 {
			return nil
		}
		names := make([]any, len(r.Victims))
		for i, v := range r.Victims {
			names[i] = named(tb, v)
		}
		return names
	}
	return nil
}

func TestRecordedQuestionsAreAnsweredAsVolcanosOwnPluginsAnswerThem(t *testing.T) {
	for file, questions := range map[string]int{
		"proportion-1024.json.gz": 18, "capacity-hierarchical-1013.json.gz": 14, "mixed-tiers-1025.json.gz": 21, "mixed-tiers-1025-beside.json.gz": 6,
	} {
		t.Run(file, func(t *testing.T) {
			r := readRecording(t, file)
			b := newBridge(t, r.NativeConf)
			compared := 0
			for i := range r.Exchanges {
				e := &r.Exchanges[i]
				answer := b.asked(e.Verb, e.sent(t))
				if e.Call.Own == nil {
					continue
				}
				compared++
				var want any
				require.NoError(t, json.Unmarshal(e.Call.Own, &want))
				require.Equal(t, want, answer.session(t, e.Verb), "exchange %d, %s", i, e.Verb)
			}
			require.Equal(t, questions, compared)
			b.requireNoAbstention()
		})
	}
}

// requireNoAbstention requires that every question was answered.
func (b *bridge) requireNoAbstention() {
	b.t.Helper()
	require.Empty(b.t, b.counts("apportion_extender_abstentions_total"))
}

// counts returns the counters of a name by their labels but the scheduler.
func (b *bridge) counts(name string) map[string]float64 {
	b.t.Helper()
	families, err := b.registry.Gather()
	require.NoError(b.t, err)
	counts := make(map[string]float64)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			key := ""
			for _, l := range m.GetLabel() {
				if l.GetName() != "scheduler" {
					key += l.GetValue() + " "
				}
			}
			counts[key] += m.GetCounter().GetValue()
		}
	}
	return counts
}

func TestARecordedCycleRunsThroughWithoutAFault(t *testing.T) {
	r := readRecording(t, "cycle-proportion-1024.json.gz")
	b := newBridge(t, "actions: allocate\ntiers: [{plugins: [{name: gang}]}, {plugins: [{name: proportion}, {name: binpack}]}]")
	for i := range r.Exchanges {
		e := &r.Exchanges[i]
		b.asked(e.Verb, e.sent(t))
	}
	b.requireNoAbstention()
	require.Equal(t, map[string]float64{"applied allocate ": 3}, b.counts("apportion_extender_events_total"))
}
