package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// dumped reads the objects of a dump of a cluster by kind.
func dumped(t *testing.T, path string) map[string][]json.RawMessage {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(path, "*.yaml"))
	require.NoError(t, err)
	if len(files) == 0 {
		files = []string{path}
	}
	kinds := map[string][]json.RawMessage{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for part := range strings.SplitSeq(string(data), "\n---") {
			raw, err := yaml.ToJSON([]byte(part))
			require.NoError(t, err)
			var of struct {
				Kind  string            `json:"kind"`
				Items []json.RawMessage `json:"items"`
			}
			require.NoError(t, json.Unmarshal(raw, &of))
			if of.Items == nil && of.Kind != "" {
				of.Items = []json.RawMessage{raw}
			}
			for _, item := range of.Items {
				require.NoError(t, json.Unmarshal(item, &of))
				kinds[of.Kind] = append(kinds[of.Kind], item)
			}
		}
	}
	return kinds
}

// dumpWithout writes all objects but those of a kind as one list, as kubectl does, and returns its path.
func dumpWithout(t *testing.T, kinds map[string][]json.RawMessage, kind string) string {
	t.Helper()
	list := struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}{Kind: "List"}
	for other, items := range kinds {
		if other != kind {
			list.Items = append(list.Items, items...)
		}
	}
	data, err := json.Marshal(list)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "dump.json")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// TestWhatWasNotReadIsNotZero removes each kind of objects in turn from dumps of clusters. Every answer stays, or says what is missing.
func TestWhatWasNotReadIsNotZero(t *testing.T) {
	examples := filepath.Join("..", "..", "examples")
	ask := func(args []string, file string) (code int, said string) {
		var out, errOut bytes.Buffer
		code = run(t.Context(), append(slices.Clone(args), "-f", file), strings.NewReader(""), &out, &errOut)
		// The paths of the files differ.
		return code, strings.ReplaceAll(out.String()+errOut.String(), file, "FILE")
	}
	asked, stayed := 0, 0
	for dump, questions := range map[string][][]string{
		filepath.Join(examples, "clusters", "research"): {
			{"shares"},
			{"shares", "--tree"},
			{"pending"},
			{"explain", "language/pretrain-7b"},
			{"explain", "robotics/grasp-train", "--remedies"},
			{"plan", "language/pretrain-7b"},
			{"queue", "language"},
			{"forecast", "language/pretrain-7b"},
			{"get", "jobs"},
			{"get", "nodes"},
			{"get", "queues"},
			{"decide", "enqueue", "language/pretrain-7b"},
			{"decide", "reclaim", "robotics/grasp-train-worker-0"},
			{"decide", "allocatable", "language/pretrain-7b-worker-0"},
			{"decide", "nodes", "robotics/grasp-eval-eval-0"},
			{"whatif", "--set", "queue/vision.weight=5"},
			{"whatif", "--job", filepath.Join(examples, "jobs", "track.yaml")},
			{"diff", "proportion", "capacity"},
			{"audit"},
		},
		filepath.Join(examples, "clusters", "backfill"): {
			{"shares"}, {"pending"}, {"get", "jobs"}, {"get", "nodes"}, {"audit"},
		},
		filepath.Join(examples, "clusters", "maintenance"): {{"shares"}, {"pending"}, {"get", "nodes"}, {"audit"}},
		filepath.Join(examples, "kueue", "cluster.yaml"):   {{"shares"}, {"pending"}, {"get", "jobs"}, {"audit"}},
	} {
		kinds := dumped(t, dump)
		whole := dumpWithout(t, kinds, "")
		for kind := range kinds {
			part := dumpWithout(t, kinds, kind)
			for _, question := range questions {
				code, before := ask(question, whole)
				got, after := ask(question, part)
				if asked++; code == got && before == after {
					stayed++
					continue
				}
				said := strings.Contains(after, "o "+kind+" was read") ||
					kind != "PriorityClass" && strings.Contains(after, "o "+kind+" is in the input")
				require.True(t, said, "%s without %s: %v says\n%s", dump, kind, question, after)
			}
		}
	}
	t.Logf("%d answers: %d stay, the others say what is missing", asked, stayed)
}

// TestAnEmptyListWasRead gives a list without pods: there are none, which is not the same as that they were not read.
func TestAnEmptyListWasRead(t *testing.T) {
	kinds := dumped(t, filepath.Join("..", "..", "examples", "clusters", "research"))
	part := dumpWithout(t, kinds, "Pod")
	for name, list := range map[string]string{
		"JSON": `{"apiVersion": "v1", "kind": "PodList", "items": []}`, "YAML": "apiVersion: v1\nkind: PodList\nitems: []\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pods.yaml")
			require.NoError(t, os.WriteFile(file, []byte(list), 0o600))
			var out, errOut bytes.Buffer
			require.Zero(t, run(t.Context(), []string{"shares", "-f", part, "-f", file}, strings.NewReader(""), &out, &errOut), errOut.String())
			require.Contains(t, out.String(), "vision")
			require.NotContains(t, errOut.String(), "was read")
		})
	}
}

// TestWithoutNodesNothingIsSaidThatNodesDecide: a queue with tasks on nodes was said to have none, and a job that waits for a node to wait
// for no place.
func TestWithoutNodesNothingIsSaidThatNodesDecide(t *testing.T) {
	file := dumpWithout(t, dumped(t, filepath.Join("..", "..", "examples", "clusters", "research")), "Node")
	for question, want := range map[string]string{
		"queue vision":                  "the answer is not known, because no Node was read",
		"forecast robotics/grasp-train": "robotics/grasp-train is not judged: there are no nodes to judge by.",
	} {
		var out, errOut bytes.Buffer
		run(t.Context(), append(strings.Fields(question), "-f", file), strings.NewReader(""), &out, &errOut)
		said := out.String() + errOut.String()
		require.Contains(t, said, want, question)
		require.NotContains(t, said, "has a task on a node", question)
		require.NotContains(t, said, "waits for no place", question)
	}
}
