package extender_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/extender"
	"github.com/apportion/apportion/adapter/extender/extendertest"
	"github.com/apportion/apportion/internal/test/raced"
)

// recordedCase is the part of a case of testdata/reference that an extender is asked about.
type recordedCase struct {
	Seed      int               `json:"seed"`
	Name      string            `json:"name"`
	Conf      string            `json:"conf"`
	Manifests []json.RawMessage `json:"manifests"`
	Script    struct {
		Reclaims []evicting  `json:"reclaims"`
		Preempts []evicting  `json:"preempts"`
		Events   []operation `json:"events"`
	} `json:"script"`
	Expect struct {
		HierarchyReady *bool       `json:"hierarchyReady"`
		Verdicts       verdicts    `json:"verdicts"`
		Reclaims       []any       `json:"reclaims"`
		Preempts       []any       `json:"preempts"`
		Enqueue        []admission `json:"enqueue"`
		// Nodes holds the answers of single plugins, by task and node.
		Nodes       map[string]map[string]map[string]any `json:"nodes"`
		AfterEvents struct {
			Verdicts verdicts `json:"verdicts"`
		} `json:"afterEvents"`
	} `json:"expect"`
	Unstable []string `json:"unstable"`
}

type evicting struct {
	Task       string   `json:"task"`
	Candidates []string `json:"candidates"`
}

type operation struct {
	Op   string `json:"op"`
	Task string `json:"task"`
}

type verdicts struct {
	Overused map[string]any `json:"overused"`
	Jobs     map[string]struct {
		Ready any `json:"ready"`
	} `json:"jobs"`
}

type admission struct {
	Job     string `json:"job"`
	Verdict any    `json:"verdict"`
}

// holds reports whether an answer holds us: Volcano neither crashed there nor answered now this, now that.
func (c *recordedCase) holds(pointer string, answer any) bool {
	if text, ok := answer.(string); ok && (strings.HasPrefix(text, "panic:") || strings.HasPrefix(text, "fatal:")) {
		return false
	}
	for _, u := range c.Unstable {
		if pointer == u || strings.HasPrefix(pointer, u+"/") {
			return false
		}
	}
	return true
}

// asking asks one bridge about one case.
type asking struct {
	*bridge
	*recordedCase

	cluster  *extendertest.Cluster
	compared int
}

func (a *asking) body(of map[string]any) []byte {
	a.t.Helper()
	body, err := json.Marshal(of)
	require.NoError(a.t, err)
	return body
}

func (a *asking) compare(pointer string, want, got any) {
	a.t.Helper()
	if !a.holds(pointer, want) {
		return
	}
	if list, ok := want.([]any); ok && len(list) == 0 {
		want = nil
	}
	a.compared++
	require.Equal(a.t, want, got, "seed %d %s: %s", a.Seed, a.Name, pointer)
}

func escaped(name string) string { return strings.ReplaceAll(name, "/", "~1") }

func (a *asking) verdicts(at string, v verdicts) {
	a.t.Helper()
	for queue, want := range v.Overused {
		if a.cluster.Queues[queue] != nil {
			a.compare(at+"/overused/"+queue, want, a.asked("queueOverused", a.body(extendertest.Object{"queue": a.cluster.Queues[queue]})).session(a.t, "queueOverused"))
		}
	}
	for job, want := range v.Jobs {
		a.compare(at+"/jobs/"+escaped(job)+"/ready", want.Ready,
			a.asked("jobReady", a.body(extendertest.Object{"job": a.cluster.Jobs[job]})).session(a.t, "jobReady"))
	}
}

func (a *asking) victims(at, verb, task string, candidates []string, recorded any) {
	a.t.Helper()
	chosen, ok := recorded.(map[string]any)
	if !ok || a.cluster.Tasks[task] == nil {
		return // no such task in the session
	}
	offered := []extendertest.Object{}
	for _, name := range candidates {
		if t := a.cluster.Tasks[name]; t != nil {
			offered = append(offered, t)
		}
	}
	answer := a.asked(verb, a.body(extendertest.Object{"evictor": a.cluster.Tasks[task], "evictees": offered}))
	a.compare(at, chosen["victims"], answer.session(a.t, verb))
}

func (a *asking) events() {
	a.t.Helper()
	for _, e := range a.Script.Events {
		task := a.cluster.Tasks[e.Task]
		if task == nil {
			continue
		}
		task["Status"] = 2
		if e.Op == "deallocate" {
			task["Status"] = 64
		}
		require.Empty(a.t, a.asked(e.Op, a.body(extendertest.Object{"task": task})).ErrorMessage)
	}
}

// nodes asks where tasks fit and how well, if the recording has this for a plugin of the policy.
func (a *asking) nodes() {
	a.t.Helper()
	for task, nodes := range a.Expect.Nodes {
		if a.cluster.Tasks[task] == nil {
			continue
		}
		for node, said := range nodes {
			at := fmt.Sprintf("/nodes/%s/%s/", escaped(task), node)
			question := extendertest.Object{"task": a.cluster.Tasks[task], "node": a.cluster.Nodes[node]}
			if fit, ok := said["nodegroup.predicate"]; ok && !strings.Contains(a.Conf, "enablePredicate: false") {
				answer := a.asked("predicate", a.body(question))
				a.compare(at+"nodegroup.predicate", fit == "ok", string(answer.Status) == `""`)
			}
			binpack, packs := said["binpack.score"]
			group, groups := said["nodegroup.score"]
			if packs == groups || strings.Contains(a.Conf, "enableNodeOrder: false") {
				continue
			}
			question = extendertest.Object{"task": a.cluster.Tasks[task], "nodes": []any{a.cluster.Nodes[node]}}
			score, pointer := binpack, at+"binpack.score"
			if groups {
				score, pointer = group, at+"nodegroup.score"
			}
			if want, ok := score.(float64); ok && a.holds(pointer, score) {
				a.compared++
				require.InDelta(a.t, want, a.asked("prioritize", a.body(question)).NodeScore[node], 1e-9*max(1, math.Abs(want)), "seed %d: %s", a.Seed, pointer)
			}
		}
	}
}

// TestPushedCasesAreAnsweredAsRecorded asks over HTTP, in Volcano's form, what the recorded cases asked Volcano itself.
func TestPushedCasesAreAnsweredAsRecorded(t *testing.T) {
	raced.Skip(t)
	files, err := filepath.Glob("../../testdata/reference/*.jsonl.gz")
	require.NoError(t, err)
	compared := 0
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			packed, err := os.Open(file)
			require.NoError(t, err)
			defer packed.Close()
			plain, err := gzip.NewReader(packed)
			require.NoError(t, err)
			lines := bufio.NewReader(plain)
			for i := 0; ; i++ {
				line, err := lines.ReadBytes('\n')
				if len(line) > 0 && i%extender.Stride() == 0 {
					var c recordedCase
					require.NoError(t, json.Unmarshal(line, &c))
					compared += askCase(t, &c)
				}
				if err == io.EOF {
					return
				}
				require.NoError(t, err)
			}
		})
	}
	require.Greater(t, compared, 20_000/extender.Stride()/2)
}

func askCase(t *testing.T, c *recordedCase) int {
	t.Helper()
	if c.Expect.HierarchyReady != nil && !*c.Expect.HierarchyReady || c.Expect.Verdicts.Jobs == nil {
		return 0 // half built by Volcano, or crashed at once
	}
	cluster, err := extendertest.Read(c.Manifests, asOf)
	require.NoError(t, err)
	// What nodeorder says was not recorded.
	conf := strings.ReplaceAll(c.Conf, "name: nodeorder", "name: nodeorder\n    enableNodeOrder: false")
	a := &asking{bridge: newBridge(t, conf), recordedCase: c, cluster: cluster}
	push, err := cluster.Push()
	require.NoError(t, err)
	a.asked("onSessionOpen", push)
	a.verdicts("/verdicts", c.Expect.Verdicts)
	for i, r := range c.Expect.Reclaims {
		a.victims(fmt.Sprintf("/reclaims/%d/victims", i), "reclaimable", c.Script.Reclaims[i].Task, c.Script.Reclaims[i].Candidates, r)
	}
	for i, p := range c.Expect.Preempts {
		a.victims(fmt.Sprintf("/preempts/%d/victims", i), "preemptable", c.Script.Preempts[i].Task, c.Script.Preempts[i].Candidates, p)
	}
	a.nodes()
	for i, e := range c.Expect.Enqueue {
		if cluster.Jobs[e.Job] == nil {
			continue
		}
		answer := a.asked("jobEnqueueable", a.body(extendertest.Object{"job": cluster.Jobs[e.Job]}))
		a.compare(fmt.Sprintf("/enqueue/%d/verdict", i), e.Verdict, answer.session(t, "jobEnqueueable"))
	}
	a.events()
	a.verdicts("/afterEvents/verdicts", c.Expect.AfterEvents.Verdicts)
	return a.compared
}
