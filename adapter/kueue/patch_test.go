package kueue_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

type object = map[string]any

// TestThePatchesOfEachRemedyMakeIt asks for the remedies of the workload of each dump, makes the changes of their objects, and reads the
// objects again: the workload goes on then, or evicts what the remedy says.
func TestThePatchesOfEachRemedyMakeIt(t *testing.T) {
	policy, _ := client.Preset("kueue")
	files, err := filepath.Glob("testdata/pending/*.yaml")
	require.NoError(t, err)
	tried := map[string]int{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		first, _, _ := strings.Cut(string(data), "\n")
		job, _, _ := strings.Cut(strings.TrimPrefix(first, "# "), ": ")
		read := func(data []byte) *apportionv1.Snapshot {
			cluster, err := kueue.Read([]objects.Source{{Name: file, Data: data}}, now)
			require.NoError(t, err)
			return cluster.Snapshot
		}
		snapshot := read(data)
		if len(snapshot.GetLeftOuts()) > 0 {
			continue
		}
		found, err := client.InProcess().Remedies(t.Context(), client.Input{Snapshot: snapshot, Policy: policy}, client.RemediesQuestion{Job: job})
		require.NoError(t, err)
		for _, r := range found.Answer.GetRemedies() {
			kind := r.GetMeans().String() + " " + text.EditsOf(r).String()
			t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml")+" "+kind, func(t *testing.T) {
				patches := kueue.Patches(lookup.Of(snapshot), found.Answer.GetJob(), r)
				changed, whole := patched(t, data, patches)
				if !whole {
					t.Skip("a part of the change is not made by a command")
				}
				tried[kind]++
				answer, err := client.InProcess().Explain(t.Context(), client.Input{Snapshot: read(changed), Policy: policy},
					client.ExplainQuestion{Jobs: []string{job}})
				require.NoError(t, err)
				now := answer.Answer.GetJobs()[0].GetKueue()
				require.Equal(t, r.GetKueue().GetMode(), now.GetMode())
				require.Equal(t, r.GetKueue().GetPodSets(), now.GetPodSets())
				require.Equal(t, r.GetKueue().GetVictims(), now.GetVictims())
			})
		}
	}
	require.Greater(t, len(tried), 6, "%v", tried)
}

// patched makes patches in a dump. It reports whether there is a change for each.
func patched(t *testing.T, data []byte, patches []objects.Patch) (changed []byte, whole bool) {
	t.Helper()
	var objects []object
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var o object
		if decoder.Decode(&o) != nil {
			break
		}
		objects = append(objects, o)
	}
	for _, p := range patches {
		switch {
		case p.YAML != "":
			var created object
			require.NoError(t, yaml.Unmarshal([]byte(p.YAML), &created))
			objects = append(objects, created)
		case len(p.Kubectl) == 0 || p.Kubectl[1] != "patch":
			return nil, false
		default:
			apply(t, objects, p.Kubectl)
		}
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	for _, o := range objects {
		require.NoError(t, encoder.Encode(o))
	}
	return out.Bytes(), true
}

// apply carries out `kubectl patch`.
func apply(t *testing.T, objects []object, command []string) {
	t.Helper()
	kind, _, _ := strings.Cut(command[2], ".")
	kind = map[string]string{"clusterqueues": "ClusterQueue", "workloads": "Workload", "cohorts": "Cohort"}[kind]
	for _, o := range objects {
		metadata, ok := o["metadata"].(object)
		require.True(t, ok)
		if o["kind"] != kind || metadata["name"] != command[3] {
			continue
		}
		patch := []byte(strings.TrimPrefix(command[len(command)-1], "--patch="))
		if command[len(command)-2] == "--type=merge" {
			var part map[string]object
			require.NoError(t, json.Unmarshal(patch, &part))
			spec, ok := o["spec"].(object)
			require.True(t, ok)
			maps.Copy(spec, part["spec"])
			return
		}
		var operations []struct {
			Op    string `json:"op"`
			Path  string `json:"path"`
			Value string `json:"value"`
		}
		require.NoError(t, json.Unmarshal(patch, &operations))
		for _, op := range operations {
			var at any = o
			steps := strings.Split(strings.TrimPrefix(op.Path, "/"), "/")
			for _, step := range steps[:len(steps)-1] {
				if list, ok := at.([]any); ok {
					i, err := strconv.Atoi(step)
					require.NoError(t, err)
					at = list[i]
					continue
				}
				inner, ok := at.(object)
				require.True(t, ok)
				at = inner[step]
			}
			inner, ok := at.(object)
			require.True(t, ok)
			if last := steps[len(steps)-1]; op.Op == "test" {
				require.Equal(t, op.Value, inner[last])
			} else {
				inner[last] = op.Value
			}
		}
		return
	}
	require.Fail(t, "no such object", "%v", command)
}
