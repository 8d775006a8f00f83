package volcano

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
)

// seeds are texts that reach most of the readers.
var seeds = []string{
	"apiVersion: v1\nitems:\n- kind: Queue\n  metadata:\n    name: q\n  spec:\n    weight: 1\n    capability: {cpu: 1}\nkind: List\n",
	"items:\n- kind: Pod\n  metadata: {name: p, annotations: {scheduling.k8s.io/group-name: j}}\n  spec:\n    containers:\n" +
		"    - resources:\n        requests: {cpu: 1, memory: 1500m}\n    volumes:\n    - name: x\n",
	"kind: PodGroup\nmetadata: {name: j}\nspec: {minTaskMember: {a: 1}, minResources: {pods: 3}}\n---\nkind: Queue\nmetadata: {name: default}\n",
	`{"items": [{"kind": "Node", "metadata": {"name": "n\u0061"}, "status": {"allocatable": {"cpu": "7E", "x/y": 0}}}]}`,
	`[{"kind": "PriorityClass", "metadata": {"name": "p"}, "value": 3, "globalDefault": true}] {} 1`,
	"a: &a [*a]\nb: {<<: *a, c: !!int x}\n", "--- {kind: Pod}\n--- |\n x\n", "%YAML 1.1\n---\n\"a\": 'b\n  c'\n? d\n: e\n", "items:\n - - a\n -\tb\n",
	// Numbers without digits.
	"kind: Queue\nmetadata: {name: q}\nspec: {weight: !!int }\n---\n!!int  }a",
}

// FuzzReadManifests: whatever the bytes are, the answer is a snapshot that can be written, or an *Error that names something.
func FuzzReadManifests(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cluster, err := ReadManifests([]objects.Source{{Name: "f", Data: data}})
		if err != nil {
			requireProblems(t, err)
			return
		}
		if _, err := proto.Marshal(cluster.Snapshot); err != nil {
			t.Fatal(err)
		}
	})
}

func requireProblems(t *testing.T, err error) {
	t.Helper()
	all, ok := errors.AsType[*objects.Error](err)
	if !ok || len(all.Problems) == 0 || all.Total < len(all.Problems) || err.Error() == "" {
		t.Fatalf("no problems in %#v", err)
	}
}
