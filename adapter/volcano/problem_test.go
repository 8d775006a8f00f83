package volcano

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
)

// problemsOf are the problems of one file, as people see them.
func problemsOf(t *testing.T, name, data string) []string {
	t.Helper()
	_, err := ReadManifests([]objects.Source{{Name: name, Data: []byte(data)}})
	var all *objects.Error
	require.ErrorAs(t, err, &all)
	require.Len(t, all.Problems, all.Total)
	return strings.Split(err.Error(), "\n")
}

func TestProblemsAreNamedWithFileLineAndKey(t *testing.T) {
	for name, c := range map[string]struct {
		manifest string
		want     []string
	}{
		"all problems of an object at once": {
			manifest: `apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: q
  creationTimestamp: yesterday
spec:
  weight: -1
  capability:
    cpu: abc
    memory: -1Gi
    pods: [1]
  reclaimable: 3
`,
			want: []string{
				`f.yaml:5: metadata.creationTimestamp: not a time like 2006-01-02T15:04:05Z: "yesterday"`,
				`f.yaml:7: spec.weight: negative: -1`,
				`f.yaml:12: spec.reclaimable: neither true nor false: "3"`,
				`f.yaml:9: spec.capability.cpu: not a quantity: "abc"`,
				`f.yaml:10: spec.capability.memory: negative: "-1Gi"`,
				`f.yaml:11: spec.capability.pods: not a quantity`,
			},
		},
		"wrong types": {
			manifest: `
- {kind: Queue, metadata: {name: a}, spec: [], status: {state: 3}}
- {kind: PodGroup, metadata: {name: 3}}
- {kind: PodGroup, metadata: {name: a}, spec: {minMember: 1.5, minResources: 3, queue: {}}}
- {kind: Pod, metadata: {name: a}, spec: {containers: {}, priority: "1", schedulingGates: x}}
- {kind: Node, metadata: {name: a, annotations: {volcano.sh/oversubscription-cpu: "-1"}}, status: {allocatable: []}}
- {kind: Node, metadata: {name: b, annotations: {volcano.sh/oversubscription-cpu: "1e999"}}}
- {kind: PriorityClass, metadata: {name: a}, value: 3000000000}
- just text
- {metadata: {name: x}}
`,
			want: []string{
				`f.yaml:2: spec: not an object`,
				`f.yaml:2: status.state: not a text`,
				`f.yaml:3: metadata.name: not a text`,
				`f.yaml:3: PodGroup without metadata.name`,
				`f.yaml:4: spec.queue: not a text`,
				`f.yaml:4: spec.minMember: not a whole number between -2147483648 and 2147483647: "1.5"`,
				`f.yaml:4: spec.minResources: not an object`,
				`f.yaml:5: spec.containers: not a list`,
				`f.yaml:5: spec.priority: not a whole number between -2147483648 and 2147483647: "1"`,
				`f.yaml:5: spec.schedulingGates: not a list`,
				`f.yaml:6: status.allocatable: not an object`,
				`f.yaml:6: metadata.annotations.volcano.sh/oversubscription-cpu: neither 0 nor a positive finite number: "-1"`,
				`f.yaml:7: metadata.annotations.volcano.sh/oversubscription-cpu: neither 0 nor a positive finite number: "1e999"`,
				`f.yaml:8: value: not a whole number between -2147483648 and 2147483647: "3000000000"`,
				`f.yaml:9: not an object of Kubernetes`,
				`f.yaml:10: not an object of Kubernetes: no kind`,
			},
		},
		"twice the same name": {
			manifest: `
{kind: Queue, metadata: {name: q}}
---
{kind: Pod, metadata: {name: q, namespace: a}}
---
{kind: Queue, metadata: {name: q}}
---
{kind: Pod, metadata: {name: q, namespace: b}}
---
{kind: Pod, metadata: {name: q, namespace: a}}
`,
			want: []string{`f.yaml:6: Queue q is already at f.yaml:2`, `f.yaml:10: Pod a/q is already at f.yaml:4`},
		},
		"within a list as kubectl prints it": {
			manifest: `apiVersion: v1
items:
- apiVersion: v1
  kind: Pod
  metadata:
    name: p
  spec:
    volumes:
    - name: x
    containers:
    - image: y
      resources:
        requests:
          cpu: lots
- apiVersion: v1
  kind: Node
  metadata: {}
kind: List
`,
			want: []string{
				`f.yaml:14: spec.containers[0].resources.requests.cpu: not a quantity: "lots"`,
				`f.yaml:15: Node without metadata.name`,
			},
		},
		"broken YAML in the second document": {
			manifest: "kind: Queue\nmetadata: {name: q}\n---\nkind: Queue\n  metadata: x\n",
			want:     []string{"f.yaml:5: not YAML: mapping values are not allowed in this context"},
		},
		"broken YAML in an item of a list": {
			manifest: "items:\n- kind: Queue\n  metadata: {name: q}\n- kind: Queue\n  metadata: {name: \"r}\nkind: List\n",
			want:     []string{"f.yaml:5: not YAML: found unexpected end of stream"},
		},
		"compressed": {manifest: "\x1f\x8b\x08\x00", want: []string{"f.yaml:1: compressed by gzip: unpack it first, as gunzip does"}},
		"a key that is given twice": {
			manifest: "kind: Queue\nmetadata: {name: q}\nspec:\n  weight: 1\n  weight: 2\n",
			want:     []string{`f.yaml:5: "weight" is given twice; objects in one file are separated by ---`},
		},
		"two lists in one document": {
			manifest: "items:\n- kind: Queue\n  metadata: {name: q}\nkind: List\nitems:\n- kind: Queue\n  metadata: {name: r}\nkind: List\n",
			want:     []string{`f.yaml:5: "items" is given twice; objects in one file are separated by ---`},
		},
		"two lists in flow style in one document": {
			manifest: "items: [{kind: Queue, metadata: {name: q}}]\nitems: []\n",
			want:     []string{`f.yaml:2: "items" is given twice; objects in one file are separated by ---`},
		},
		"JSON cut off": {
			manifest: "{\n\"kind\": \"Queue\",\n\"metadata\": {\"name\":\n",
			want:     []string{"f.yaml:4: not JSON: unexpected EOF"},
		},
		"JSON broken in the second document": {
			manifest: "{\"kind\": \"Queue\", \"metadata\": {\"name\": \"q\"}}\n{\n\"kind\" = 1}\n",
			want:     []string{"f.yaml:3: not JSON: invalid character '=' after object key"},
		},
		"a problem in JSON": {
			manifest: "{\n\"kind\": \"Queue\",\n\"metadata\": {\"name\": \"q\"},\n\"spec\": {\n\"weight\":\n\"1\"}}\n",
			want:     []string{`f.yaml:6: spec.weight: not a whole number between -2147483648 and 2147483647: "1"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, problemsOf(t, "f.yaml", c.manifest))
		})
	}
}

func TestTheFirst50ProblemsAreListedAndAllAreCounted(t *testing.T) {
	var manifest strings.Builder
	for i := range 70 {
		fmt.Fprintf(&manifest, "---\n{kind: Queue, metadata: {name: q%d}, spec: {weight: -1}}\n", i)
	}
	_, err := ReadManifests([]objects.Source{{Name: "f.yaml", Data: []byte(manifest.String())}})
	var all *objects.Error
	require.ErrorAs(t, err, &all)
	require.Len(t, all.Problems, 50)
	require.Equal(t, 70, all.Total)
	require.True(t, strings.HasSuffix(err.Error(), "\n70 problems in all"))
}

func TestObjectsAreNamedByPosition(t *testing.T) {
	_, err := FromObjects([]json.RawMessage{
		json.RawMessage(`{"kind": "Queue", "metadata": {"name": "q"}}`),
		json.RawMessage("{\n\"kind\": \"Queue\", \"metadata\": {\"name\": \"q\"}}"),
		json.RawMessage(`{`),
	})
	require.EqualError(t, err, "objects[1]:1: Queue q is already at objects[0]:1\nobjects[2]:1: not JSON")
}

func TestTheSameObjectInTwoFilesNamesBoth(t *testing.T) {
	queue := []byte("{kind: Queue, metadata: {name: q}}\n")
	_, err := ReadManifests([]objects.Source{{Name: "a.yaml", Data: queue}, {Name: "b.yaml", Data: queue}})
	require.EqualError(t, err, "b.yaml:1: Queue q is already at a.yaml:1")
}

func TestFarTooManyWarningsAreCountedInTheLast(t *testing.T) {
	var manifest strings.Builder
	for i := range 130 {
		fmt.Fprintf(&manifest, "---\n{kind: PodGroup, metadata: {name: j%d}}\n", i)
	}
	warned := read(t, manifest.String()).Warnings
	require.Len(t, warned, 101)
	require.Equal(t, "30 more warnings", warned[100].Message)
}
