package reference

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// smallCase has a queue with one job of a running and a pending task, and a queue without jobs.
func smallCase(t *testing.T, conf string, script *Script) *Case {
	t.Helper()
	c := &Case{Schema: Schema, Profile: "small", Conf: conf, Script: *script, Expect: object{}}
	for _, text := range []string{
		`{"kind": "Queue", "apiVersion": "scheduling.volcano.sh/v1beta1", "metadata": {"name": "busy"}, "spec": {"weight": 1}, "status": {"state": "Open"}}`,
		`{"kind": "Queue", "apiVersion": "scheduling.volcano.sh/v1beta1", "metadata": {"name": "idle"}, "spec": {"weight": 1}, "status": {"state": "Open"}}`,
		`{"kind": "PodGroup", "apiVersion": "scheduling.volcano.sh/v1beta1", "metadata": {"name": "job", "namespace": "ns"}, "spec": {"queue": "busy"}, "status": {"phase": "Running"}}`,
		`{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "node"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}`,
		pod("runs", "node", "Running"),
		pod("waits", "", "Pending"),
	} {
		c.Manifests = append(c.Manifests, json.RawMessage(text))
	}
	return c
}

func pod(name, node, phase string) string {
	return `{"kind": "Pod", "apiVersion": "v1",
		"metadata": {"name": "` + name + `", "namespace": "ns", "uid": "uid-` + name + `", "annotations": {"scheduling.k8s.io/group-name": "job"}},
		"spec": {"nodeName": "` + node + `", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
		"status": {"phase": "` + phase + `"}}`
}

const capacityConf = "tiers:\n- plugins:\n  - name: capacity\nactions: enqueue, allocate, backfill, preempt, reclaim\n"

// kinds names the steps by their kind.
func kinds(steps []*apportionv1.Step) []string {
	names := make([]string, len(steps))
	for i, step := range steps {
		m := step.ProtoReflect()
		names[i] = string(m.WhichOneof(m.Descriptor().Oneofs().ByName("step")).Name())
	}
	return names
}

func TestQuestionsAreAskedInTheRecordedOrder(t *testing.T) {
	script := &Script{
		Reclaims:     []Eviction{{Task: "ns/waits", Candidates: []string{"ns/gone", "ns/runs"}}, {Task: "ns/gone", Candidates: []string{"ns/runs"}}},
		Preempts:     []Eviction{{Task: "ns/waits", Candidates: []string{"ns/runs"}}},
		VictimQueues: []VictimQueues{{PreemptorQueue: "busy", Queues: []string{"idle", "busy"}}},
		Simulate: []Simulation{
			{Task: "ns/waits", Steps: []Operation{{Op: "allocatable"}, {Op: "clone"}, {Op: "remove", Task: "ns/runs"}, {Op: "add", Task: "ns/runs"}}},
			{Task: "ns/gone"},
		},
		NodeTasks:    []string{"ns/gone", "ns/waits"},
		EnqueueOrder: []string{"ns/job", "ns/gone"},
		Events:       []Operation{{Op: "allocate", Task: "ns/waits"}, {Op: "deallocate", Task: "ns/gone"}},
	}
	s, err := smallCase(t, capacityConf, script).subject()
	require.NoError(t, err)
	p := s.plan(script)
	require.Equal(t, []string{
		"inspect", "shares",
		"allocatable", "preemptive", "preemptive", "jobs",
		"order", "order",
		"reclaim", "order", "reclaim", "preempt", "order",
		"order",
		"mark", "allocatable", "event", "event", "rollback", "allocatable",
		"nodes",
		"enqueue", "enqueue", "shares",
		"event", "shares", "event",
		"shares", "jobs", "order", "order",
	}, kinds(p.steps), "no task waits after the events, so no verdict is asked for one")
	running, waiting := s.tasks["ns/runs"], s.tasks["ns/waits"]
	reclaim := p.steps[8].GetReclaim()
	require.Equal(t, []uint32{waiting}, reclaim.Claimant.Indices)
	require.Equal(t, []uint32{running}, reclaim.Candidates.Indices, "unknown candidates are dropped")
	require.Empty(t, reclaim.Candidates.Names)
	require.Equal(t, []string{"ns/gone"}, p.steps[10].GetReclaim().Claimant.Names, "an unknown claimant is asked for by name")
	require.Equal(t, apportionv1.AccountingMode_ACCOUNTING_MODE_SIMULATION, p.steps[15].GetAllocatable().Mode)
	require.Equal(t, apportionv1.AccountingMode_ACCOUNTING_MODE_UNSPECIFIED, p.steps[2].GetAllocatable().Mode)
	require.Equal(t, []uint32{waiting}, p.steps[20].GetNodes().Tasks.Indices)
}

func TestAnswersAreBroughtIntoTheRecordedForm(t *testing.T) {
	script := &Script{
		Reclaims:     []Eviction{{Task: "ns/gone"}},
		Simulate:     []Simulation{{Task: "ns/waits", Steps: []Operation{{Op: "remove", Task: "ns/gone"}, {Op: "clone"}, {Op: "allocatable"}}}, {Task: "ns/gone"}},
		EnqueueOrder: []string{"ns/job", "ns/gone"},
		Events:       []Operation{{Op: "deallocate", Task: "ns/runs"}, {Op: "allocate", Task: "ns/gone"}},
	}
	c := smallCase(t, capacityConf, script)
	s, err := c.subject()
	require.NoError(t, err)
	v, err := c.evaluate(t.Context(), s, InProcess())
	require.NoError(t, err)
	form, ok := v.(object)
	require.True(t, ok)
	require.Equal(t, amounts{"cpu": 4000, "memory": 0, "pods": 9}, form["total"])
	require.Equal(t, []any{noTask}, form["reclaims"])
	require.Equal(t, []any{[]any{noTask, "ok", true}, noTask}, form["simulate"])
	require.Equal(t, []any{object{"job": "ns/job", "verdict": true}, object{"job": "ns/gone", "verdict": noJob}}, form["enqueue"])
	use := object{"share": 1.0, "allocated": amounts{"cpu": 0, "memory": 0, "pods": 0}}
	require.Equal(t, []any{object{"queues": object{"capacity": object{"busy": use}}}, noTask}, form["events"])
	require.Equal(t, object{"sorted": []any{"busy"}, "tieGroups": []any{[]any{"busy"}}, "pairs": []any{}}, form["queueOrder"])
	require.NotContains(t, form, "hierarchyReady")
	require.Contains(t, form, afterEvents)
}

func TestAnOrderIsNamedWithTheSmallerNameOnTheLeft(t *testing.T) {
	names := func(i uint32) string { return []string{"b", "a", "c"}[i] }
	order := &apportionv1.OrderAnswer{
		Items: []uint32{2, 0, 1}, Ties: []uint32{1, 2},
		Pairs: []*apportionv1.Pair{{Left: 0, Right: 1, Compare: 0, Less: true}, {Left: 0, Right: 2, Compare: 5}, {Left: 1, Right: 2, Compare: 7}},
	}
	require.Equal(t, object{
		"sorted": []any{"c", "b", "a"}, "tieGroups": []any{[]any{"c"}, []any{"b", "a"}},
		"pairs": []any{
			object{"l": "a", "r": "b", "cmp": 0.0, "less": false},
			object{"l": "a", "r": "c", "cmp": 1.0, "less": false},
			object{"l": "b", "r": "c", "cmp": 1.0, "less": false},
		},
	}, orderOf(order, names))
	order.Intransitive = true
	require.NotContains(t, orderOf(order, names), "sorted")
	order.Pairs = order.Pairs[:1]
	require.Equal(t, object{"intransitive": true, "pairs": []any{object{"l": "a", "r": "b", "cmp": 0.0, "less": false}}}, orderOf(order, names))
}
