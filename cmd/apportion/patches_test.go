package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/cli"
	"github.com/apportion/apportion/cmd/apportion/internal/question"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// merged is a JSON merge patch (RFC 7386) of a part of an object. Of containers the first is patched.
func merged(into, patch any) any {
	if list, ok := into.([]any); ok {
		if parts, many := patch.([]any); many && len(list) == 1 && len(parts) == 1 {
			return []any{merged(list[0], parts[0])}
		}
	}
	fields, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := into.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for key, value := range fields {
		if value == nil {
			delete(object, key)
			continue
		}
		object[key] = merged(object[key], value)
	}
	return object
}

func decodedYAML(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var decoded map[string]any
	require.NoError(t, yaml.Unmarshal(text, &decoded))
	return decoded
}

func named(object map[string]any) (kind, name string) {
	metadata, _ := object["metadata"].(map[string]any)
	kind, _ = object["kind"].(string)
	name, _ = metadata["name"].(string)
	return kind, name
}

// apply makes a change of objects as kubectl does, or as a controller does that creates the pods of a template again.
func apply(t *testing.T, objects []any, patch objects.Patch) {
	t.Helper()
	part := decodedYAML(t, []byte(patch.YAML))
	kind, name := named(part)
	pods := kind == ""
	var operations []map[string]any
	if at := slices.Index(patch.Kubectl, "--type=json"); at >= 0 {
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(patch.Kubectl[at+1], "--patch=")), &operations))
	} else if patch.Kubectl != nil {
		var sent map[string]any
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(patch.Kubectl[len(patch.Kubectl)-1], "--patch=")), &sent))
		require.Equal(t, name, patch.Kubectl[3])
		for key := range sent {
			require.Contains(t, part, key)
		}
	}
	for i := range objects {
		object, _ := objects[i].(map[string]any)
		itsKind, itsName := named(object)
		spec, _ := object["spec"].(map[string]any)
		switch {
		case operations != nil && itsKind == "Pod" && slices.Contains(patch.Kubectl[3:], itsName):
			for _, operation := range operations {
				require.Equal(t, "add", operation["op"])
				if operation["path"] == "/spec/tolerations" {
					spec["tolerations"] = operation["value"]
					continue
				}
				require.Equal(t, "/spec/tolerations/-", operation["path"])
				tolerations, _ := spec["tolerations"].([]any)
				require.NotEmpty(t, tolerations, "without tolerations there is no place to add one behind")
				spec["tolerations"] = append(tolerations, operation["value"])
			}
		case operations == nil && pods && itsKind == "Pod" && spec["nodeName"] == nil, !pods && kind == itsKind && name == itsName:
			objects[i] = merged(object, part)
			if cordoned, set := spec["unschedulable"].(bool); set && !cordoned {
				delete(spec, "taints") // Kubernetes removes the taint of a cordon.
			}
		}
	}
}

// TestPatchesMakeEachRemedyOfACauseTrue makes the changes of objects that belong to each remedy of testdata/pending, reads the objects again
// and asks: the job then has a place.
func TestPatchesMakeEachRemedyOfACauseTrue(t *testing.T) {
	made := map[string]int{}
	for name, c := range causes(t) {
		if c.headers["check"] == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			flags := flagsOf(c)
			read := func() *question.Loaded {
				in, err := flags.Load(t.Context(), cli.Streams{In: strings.NewReader(""), Err: io.Discard})
				require.NoError(t, err)
				return in
			}
			in := read()
			data, err := os.ReadFile(flags.Files[0])
			require.NoError(t, err)
			decider := client.InProcess()
			question := client.RemediesQuestion{Job: jobOf(in, c.headers["job"])}
			found, err := decider.Remedies(t.Context(), in.Input, question)
			require.NoError(t, err)
			for _, remedy := range found.Answer.GetRemedies() {
				patches := volcano.Patches(in.Lookup, in.Lookup.Names(found.Basis), in.Cluster, found.Answer.GetJob(), remedy)
				kind := kindOf(remedy)
				if len(patches) == 0 {
					require.Contains(t, []string{"NODES_LIKE", "END", "EVICTION", "WAIT"}, kind)
					continue
				}
				if kind == "COMBINED" && strings.Contains(remedy.GetText(), "Add ") {
					continue
				}
				dump := decodedYAML(t, data)
				items, _ := dump["items"].([]any)
				require.NotEmpty(t, items)
				for _, patch := range patches {
					apply(t, items, patch)
				}
				var out bytes.Buffer
				require.NoError(t, yaml.NewEncoder(&out).Encode(dump))
				flags.Files = []string{filepath.Join(t.TempDir(), "dump.yaml")}
				require.NoError(t, os.WriteFile(flags.Files[0], out.Bytes(), 0o600))
				after, err := decider.Remedies(t.Context(), read().Input, question)
				require.NoError(t, err)
				require.Equal(t, apportionv1.RemedyOutcome_REMEDY_OUTCOME_RUNS_NOW, after.Answer.GetOutcome(), "%s: %+v", remedy.GetText(), patches)
				made[kind]++
			}
		})
	}
	t.Log(made)
	for _, kind := range []string{"MINIMUM", "REQUEST", "QUEUE", "OPEN", "CAPABILITY", "WEIGHT", "UNCORDON", "ALLOWED_NODE"} {
		require.Positive(t, made[kind], kind)
	}
}
