package extender_test

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// decodedVictim is a victim as Go's decoder on Volcano's side makes it of an answer: a nil pointer among these ends the scheduler.
type decodedVictim struct {
	UID        string    `json:"UID"`
	Resreq     *struct{} `json:"Resreq"`
	InitResreq *struct{} `json:"InitResreq"`
	NumaInfo   *struct{} `json:"NumaInfo"`
	Pod        *struct{} `json:"Pod"`
}

// requireHarmless requires of an answer to a question about victims that Volcano survives it and evicts only tasks that it offered.
func requireHarmless(t require.TestingT, offered []json.RawMessage, answer []byte) {
	require.LessOrEqual(t, len(answer), 10<<20)
	var r struct {
		Status  int               `json:"status"`
		Victims []json.RawMessage `json:"victims"`
	}
	require.NoError(t, json.Unmarshal(answer, &r), "%s", answer)
	if r.Status == 0 {
		require.Empty(t, r.Victims)
	}
	seen := map[string]bool{}
	for _, victim := range r.Victims {
		var v *decodedVictim
		require.NoError(t, json.Unmarshal(victim, &v), "%s", victim)
		require.NotNil(t, v)
		require.NotNil(t, v.Resreq, "%s", victim)
		require.NotNil(t, v.InitResreq, "%s", victim)
		require.NotNil(t, v.NumaInfo, "%s", victim)
		require.NotNil(t, v.Pod, "%s", victim)
		require.False(t, seen[v.UID], "evicted twice: %s", v.UID)
		seen[v.UID] = true
		found := false
		for _, o := range offered {
			found = found || string(o) == string(victim)
		}
		require.True(t, found, "not offered, or not as it came: %s", victim)
	}
}

// offers are the evictees in the recorded questions about victims.
func offers(tb testing.TB, r *recording) (claimant json.RawMessage, evictees []json.RawMessage) {
	tb.Helper()
	for i := range r.Exchanges {
		if verb := r.Exchanges[i].Verb; verb != "reclaimable" && verb != "preemptable" {
			continue
		}
		var q struct {
			Evictor  json.RawMessage   `json:"evictor"`
			Evictees []json.RawMessage `json:"evictees"`
		}
		require.NoError(tb, json.Unmarshal(r.Exchanges[i].sent(tb), &q))
		claimant = q.Evictor
		evictees = append(evictees, q.Evictees...)
	}
	return claimant, evictees
}

// spoiled returns a faulty task.
func spoiled(t *rapid.T, task json.RawMessage) json.RawMessage {
	text := string(task)
	for range rapid.IntRange(1, 2).Draw(t, "faults") {
		member := rapid.SampledFrom([]string{"Resreq", "InitResreq", "NumaInfo", "Pod", "UID", "Status", "Job"}).Draw(t, "member")
		switch rapid.IntRange(0, 4).Draw(t, "fault") {
		case 0: // under another name
			text = strings.Replace(text, `"`+member+`":`, `"X`+member+`":`, 1)
		case 1: // null afterwards, which counts for Go's decoder
			text = strings.TrimSuffix(text, "}") + `,"` + strings.ToLower(member) + `":null}`
		case 2: // of another type
			text = strings.TrimSuffix(text, "}") + `,"` + member + `":7}`
		case 3: // nothing but a uid
			var v decodedVictim
			if json.Unmarshal([]byte(text), &v) == nil {
				text = `{"UID":"` + v.UID + `"}`
			}
		case 4:
			text = rapid.SampledFrom([]string{"null", "{}", "[]", `"uid"`, "1"}).Draw(t, "instead")
		}
	}
	return json.RawMessage(text)
}

func TestNoAnswerAboutVictimsHarmsVolcano(t *testing.T) {
	r := readRecording(t, "mixed-tiers-1025.json.gz")
	claimant, evictees := offers(t, r)
	for name, conf := range map[string]string{
		"native": r.NativeConf, "no opinion": "actions: allocate\ntiers: [{plugins: [{name: binpack}]}]", "priority": "actions: allocate\ntiers: [{plugins: [{name: priority}, {name: drf}]}]",
		"everybody": "actions: allocate\ntiers: [{plugins: [{name: conformance}]}]",
	} {
		b := newBridge(t, conf)
		b.asked("onSessionOpen", r.Exchanges[0].sent(t))
		rapid.Check(t, func(t *rapid.T) {
			offered := rapid.SliceOfN(rapid.SampledFrom(evictees), 0, 6).Draw(t, "offered")
			for i := range offered {
				if rapid.IntRange(0, 2).Draw(t, "spoil") == 0 {
					offered[i] = spoiled(t, offered[i])
				}
			}
			body := `{"evictor":` + string(claimant) + `,"evictees":[`
			for i, o := range offered {
				if i > 0 {
					body += ","
				}
				body += string(o)
			}
			answer := b.post(rapid.SampledFrom([]string{"reclaimable", "preemptable"}).Draw(t, "verb"), []byte(body+"]}"))
			if answer.Code == http.StatusOK {
				requireHarmless(t, offered, answer.Body.Bytes())
			}
		})
		require.Zero(t, b.counts("apportion_extender_panics_recovered_total")[""], name)
	}
}

// Volcano's preempt action asks about every node, and sends null for one without a candidate.
func TestAQuestionWithoutCandidatesIsNoAbstention(t *testing.T) {
	b := newBridge(t, "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: conformance}]}]")
	for _, verb := range []string{"preemptable", "reclaimable"} {
		for _, body := range []string{
			`{"evictor":{"UID":"t3"},"evictees":null}`, `{"evictor":{"UID":"t3"},"evictees":[]}`, `{"evictor":{"UID":"t3"}}`,
		} {
			require.JSONEq(t, `{"status":0,"victims":[]}`, b.post(verb, []byte(body)).Body.String())
		}
	}
	b.requireNoAbstention()
	require.Empty(t, b.counts("apportion_extender_decisions_total"))
	require.Equal(t, map[string]float64{"ok preemptable ": 3, "ok reclaimable ": 3}, b.counts("apportion_extender_requests_total"))
	b.post("preemptable", []byte(`{"evictor":{"UID":"t3"},"evictees":[null]}`))
	require.Equal(t, map[string]float64{"no_snapshot preemptable ": 1}, b.counts("apportion_extender_abstentions_total"))
}

func TestManyVictimsAreCutToWhatVolcanoReads(t *testing.T) {
	r := readRecording(t, "mixed-tiers-1025.json.gz")
	_, evictees := offers(t, r)
	b := newBridge(t, "actions: allocate\ntiers: [{plugins: [{name: conformance}]}]")
	var push map[string]map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(r.Exchanges[0].sent(t), &push))
	b.asked("onSessionOpen", r.Exchanges[0].sent(t))
	// Three known tasks of 4 MiB each, of which two fit.
	known := map[string]json.RawMessage{}
	for _, e := range evictees {
		var v decodedVictim
		require.NoError(t, json.Unmarshal(e, &v))
		known[v.UID] = e
	}
	require.GreaterOrEqual(t, len(known), 3)
	var offered []json.RawMessage
	for _, e := range known {
		offered = append(offered, json.RawMessage(strings.TrimSuffix(string(e), "}")+`,"Padding":"`+strings.Repeat("x", 4<<20)+`"}`))
	}
	claimant, _ := offers(t, r)
	body, err := json.Marshal(map[string]any{"evictor": claimant, "evictees": offered[:3]})
	require.NoError(t, err)
	answer := b.post("reclaimable", body)
	requireHarmless(t, offered, answer.Body.Bytes())
	var got reply
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &got))
	require.Len(t, got.Victims, 2)
	require.Equal(t, map[string]float64{"": 1}, b.counts("apportion_extender_victims_cut_total"))
}

// requireWellFormed requires that Volcano's decoder reads any answer with status 200, and that the answer is one that the verb may give.
func requireWellFormed(t require.TestingT, verb string, body []byte) {
	switch verb {
	case "onSessionOpen", "onSessionClose":
		require.Empty(t, body)
	case "predicate":
		var a struct {
			Status string `json:"status"`
			Code   int    `json:"code"`
		}
		require.NoError(t, json.Unmarshal(body, &a))
		require.Equal(t, a.Status == "", a.Code == 0)
		require.Contains(t, []int{0, 3}, a.Code)
	case "prioritize":
		var a struct {
			NodeScore    map[string]float64 `json:"nodeScore"`
			ErrorMessage string             `json:"errorMessage"`
		}
		require.NoError(t, json.Unmarshal(body, &a))
		require.NotNil(t, a.NodeScore)
		require.Empty(t, a.ErrorMessage)
		for _, score := range a.NodeScore {
			require.False(t, math.IsNaN(score) || math.IsInf(score, 0))
		}
	case "queueOverused":
		require.NoError(t, json.Unmarshal(body, &struct {
			Overused *bool `json:"overused"`
		}{}))
	case "jobEnqueueable":
		var a struct {
			Status *int `json:"status"`
		}
		require.NoError(t, json.Unmarshal(body, &a))
		require.Contains(t, []int{-1, 0, 1}, *a.Status)
	case "jobReady":
		var a struct {
			Status *bool `json:"status"`
		}
		require.NoError(t, json.Unmarshal(body, &a))
		require.NotNil(t, a.Status)
	case "allocate", "deallocate":
		require.JSONEq(t, `{"errorMessage":""}`, string(body))
	case "jobEnqueued":
		require.JSONEq(t, `{}`, string(body))
	}
}

var verbs = []string{
	"onSessionOpen", "onSessionClose", "predicate", "prioritize", "preemptable", "reclaimable", "queueOverused", "jobEnqueueable", "jobReady", "allocate",
	"deallocate", "jobEnqueued",
}

// FuzzBodies sends any body to any verb, then asks on: nothing may panic, hang, or be answered with what Volcano cannot take.
func FuzzBodies(f *testing.F) {
	r := readRecording(f, "mixed-tiers-1025.json.gz")
	for i := range r.Exchanges {
		for v, verb := range verbs {
			// Large seeds take the fuzzer's time for making them smaller.
			if verb == r.Exchanges[i].Verb && r.Exchanges[i].Request.BodyBytes < 4<<10 {
				f.Add(uint8(v), r.Exchanges[i].sent(f))
			}
		}
	}
	f.Add(uint8(0), []byte(`{"Jobs":{"a":{"UID":"a","Queue":"q","Tasks":{"t":{"UID":"t","Status":32,"NodeName":"n","Resreq":{"MilliCPU":1e308}}}}},`+
		`"Nodes":{"n":{"Name":"n","Allocatable":{"MilliCPU":1e308,"ScalarResources":{"x/y":-1}},"Tasks":{"x":{"UID":"u"}}}},"Queues":{"q":{"Name":"q"}}}`))
	whole := r.Exchanges[0].sent(f)
	b := newBridge(f, "actions: allocate\ntiers: [{plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: cdp}]}, "+
		"{plugins: [{name: drf}, {name: capacity, enableHierarchy: true}, {name: nodegroup}, {name: binpack}, {name: overcommit}]}]")
	f.Fuzz(func(t *testing.T, v uint8, body []byte) {
		b.t = t
		verb := verbs[int(v)%len(verbs)]
		if verb != "onSessionOpen" {
			b.post("onSessionOpen", whole)
		}
		answer := b.post(verb, body)
		if answer.Code == http.StatusOK {
			requireWellFormed(t, verb, answer.Body.Bytes())
			if verb == "preemptable" || verb == "reclaimable" {
				var q struct {
					Evictees []json.RawMessage `json:"evictees"`
				}
				if json.Unmarshal(body, &q) == nil {
					requireHarmless(t, q.Evictees, answer.Body.Bytes())
				}
			}
		}
		require.Equal(t, http.StatusOK, b.post("queueOverused", []byte(`{"queue":{"Name":"q1"}}`)).Code)
		require.Zero(t, b.counts("apportion_extender_panics_recovered_total")[""])
	})
}
