package volcano

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
)

func TestEveryFormOfKubectlsOutputIsRead(t *testing.T) {
	for name, data := range map[string]string{
		"a document":                    "kind: Queue\nmetadata:\n  name: q\n",
		"after comments":                "# a queue\n\n--- # the first\nkind: Queue\nmetadata: {name: q}\n",
		"with a byte order mark":        "\ufeffkind: Queue\nmetadata: {name: q}\n",
		"with carriage returns":         "kind: Queue\r\nmetadata:\r\n  name: q\r\n---\r\n",
		"with a directive":              "%YAML 1.1\n---\nkind: Queue\nmetadata: {name: q}\n...\n",
		"a list":                        "apiVersion: v1\nitems:\n- kind: Queue\n  metadata:\n    name: q\nkind: List\n",
		"a list with blanks":            "items:\n\n# here\n-   kind: Queue\n\n    metadata:\n# there\n      name: q\n\nkind: List\n",
		"an indented list":              "kind: List\nitems:\n  - kind: Queue\n    metadata:\n      name: q\n",
		"a list in flow style":          "kind: List\nitems: [{kind: Queue, metadata: {name: q}}]\n",
		"a list below its key":          "kind: List\nitems:\n  [{kind: Queue, metadata: {name: q}}]\n",
		"a list with anchors":           "kind: List\nitems:\n- kind: Queue\n  metadata: &m\n    name: q\n- kind: Node\n  metadata: *m\n",
		"merged maps":                   "kind: Queue\nmetadata: {<<: [{name: q, uid: u}, {name: r}], uid: v}\n",
		"dashes on their own":           "items:\n-\n  kind: Queue\n  metadata:\n    name: q\n",
		"an array":                      "- kind: Queue\n  metadata: {name: q}\n",
		"JSON":                          `{"kind": "Queue", "metadata": {"name": "q"}}`,
		"JSON with escapes":             "{\"k\\u0069nd\": \"Queue\", \"x\": [\"}\\\"\", {}], \"metadata\": {\"name\": \"\\u0071\"}}",
		"a JSON list":                   `{"apiVersion": "v1", "items": [{"kind": "Queue", "metadata": {"name": "q"}}], "kind": "List"}`,
		"a JSON array":                  `[{"kind": "Queue", "metadata": {"name": "q"}}]`,
		"JSON one after another":        "{\"kind\": \"Node\", \"metadata\": {\"name\": \"a\"}}\n{\"kind\": \"Queue\", \"metadata\": {\"name\": \"q\"}}\n",
		"JSON among YAML":               "kind: Node\nmetadata: {name: a}\n---\n{\"kind\": \"Queue\", \"metadata\": {\"name\": \"q\"}}\n---\nkind: Node\nmetadata: {name: b}\n",
		"YAML that begins as JSON does": "{kind: Queue, metadata: {name: q}}\n",
		"a text with markers in it":     "kind: Queue\nmetadata:\n  name: q\n  annotations:\n    x: |\n      items:\n      --- no marker\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, data).Snapshot
			require.Len(t, s.Queues, 1)
			require.Equal(t, "q", s.Queues[0].Name)
		})
	}
}

func TestNothingIsReadOfNothing(t *testing.T) {
	for _, data := range []string{"", "\n", "---\n---\n", "# nothing\n", "items: []\n", `{"items": []}`, "[]", "~\n"} {
		cluster := read(t, data)
		require.Empty(t, cluster.Snapshot.Queues, data)
		require.Empty(t, cluster.Warnings, data)
	}
}

// Fields that are not read are emptied before parsing; a text must not be mistaken for it.
func TestTextsThatLookLikeKeysStayWhole(t *testing.T) {
	cluster := read(t, `items:
- kind: Pod
  metadata:
    annotations:
      note: |
        spec:
          nodeName: a
      "quoted": {status: x,
        nodeName: y}
      scheduling.k8s.io/group-name: >-
        j
    labels: {"volcano.sh/task-spec": "two
        volumes: words"}
    name: p
    namespace: ns
  spec:
    volumes:
    - name: kube
      items:
      - key: nodeName
    containers:
    - args:
      - |
        - resources:
      - 'spec:'
      env:
      - name: A
        value: "x
          resources: y"
      name: c
      resources:
        limits: {cpu: 9}
        requests:
          cpu: 2
    ? nodeName
    : n
  status:
    phase: Running
- kind: Node
  metadata: {name: n}
- kind: Queue
  metadata: {name: q}
- kind: PodGroup
  metadata: {name: j, namespace: ns}
  spec:
    queue: q
`)
	requireMessage(t, `{
		"role": "two volumes: words", "request": {"dimensions": [0, 1], "amounts": [2000, 1]}, "unstated": {"memory": 1},
		"tasks": [{"name": "p", "status": "TASK_STATUS_RUNNING", "node": 0}]
	}`, cluster.Snapshot.Jobs[0].Groups[0])
}

// Some parsers, and the one used here, bear a text that goes on further left than its key.
func TestAnItemThatOnlyParsesWholeIsReadWhole(t *testing.T) {
	cluster := read(t, "items:\n- kind: Queue\n  metadata:\n    uid: u\n    other: \"a\n  b\"\n    name: q\n")
	require.Equal(t, "q", cluster.Snapshot.Queues[0].Name)
}

func TestWhatWouldGrowWithoutBoundIsRefused(t *testing.T) {
	bomb := "kind: Queue\nmetadata: {name: q}\nspec:\n  capability: {x: &a [1,1,1,1,1,1,1,1,1,1], b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a], " +
		"c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b], d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c], e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d], " +
		"f: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]}\n"
	for name, data := range map[string]string{
		"aliases of aliases":                      bomb,
		"an alias of itself":                      "kind: Queue\nmetadata: {name: q}\nspec: {capability: {a: &a [*a]}}\n",
		"lists nested in lists":                   "kind: Queue\nmetadata: {name: q}\nspec:\n  capability: {a: " + strings.Repeat("[", 500) + strings.Repeat("]", 500) + "}\n",
		"very deep YAML":                          "kind: Queue\nspec: " + strings.Repeat("[", 20000) + "\n",
		"very deep JSON":                          `{"kind": "Queue", "spec": ` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}",
		"a quantity of a thousand million digits": "kind: Queue\nmetadata: {name: q}\nspec: {capability: {cpu: 1e999999999}}\n",
		"an alias of nothing":                     "kind: Queue\nmetadata: *nowhere\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadManifests([]objects.Source{{Name: "f.yaml", Data: []byte(data)}})
			var all *objects.Error
			require.ErrorAs(t, err, &all)
		})
	}
}
