package volcano

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// read reads one YAML text that must be in order.
func read(t *testing.T, manifests string, opts ...Option) *Cluster {
	t.Helper()
	cluster, err := ReadManifests([]objects.Source{{Name: "cluster.yaml", Data: []byte(manifests)}}, opts...)
	require.NoError(t, err)
	return cluster
}

// requireMessage compares a message with its JSON form.
func requireMessage[M proto.Message](t *testing.T, want string, got M) {
	t.Helper()
	expected := got.ProtoReflect().New().Interface()
	require.NoError(t, protojson.Unmarshal([]byte(want), expected))
	require.True(t, proto.Equal(expected, got), "want %s\n got %s", protojson.Format(expected), protojson.Format(got))
}

const (
	// aQueue and aPodGroup let a test show nothing but its pods.
	aQueue = `
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q}, spec: {weight: 1}, status: {state: Open}}
`
	aPodGroup = `
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: j, namespace: ns}, spec: {queue: q}}
`
)

func TestQueueWithEverything(t *testing.T) {
	cluster := read(t, `
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: eng
  creationTimestamp: "2026-01-02T03:04:05Z"
  annotations:
    volcano.sh/hierarchy: root/eng
    volcano.sh/hierarchy-weights: 1/8
spec:
  weight: 7
  priority: -3
  parent: root
  reclaimable: false
  type: x
  dequeueStrategy: fifo
  extendClusters: [{name: far, weight: 1}]
  capability: {cpu: 1500m, memory: 1500m, pods: 3, nvidia.com/gpu: 500m, count/jobs: 4}
  guarantee: {resource: {memory: 7E}}
  deserved: {cpu: 0, ephemeral-storage: 1}
  affinity:
    nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [a, b]}
    nodeGroupAntiAffinity: {}
status: {state: Closing}
`)
	requireMessage(t, `{
		"dimensions": ["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "pods"],
		"queues": [{
			"name": "eng", "parent": "root", "weight": 7, "priority": -3, "state": "QUEUE_STATE_CLOSING", "reclaimable": false,
			"capability": {"dimensions": [0, 1, 3, 4], "amounts": [1500, 2, 500, 3]},
			"guarantee": {"dimensions": [1], "amounts": [7e18]},
			"deserved": {"dimensions": [0, 2], "amounts": [0, 1000]},
			"nodeGroupAffinity": {"affinity": {"requiredGroups": ["a", "b"]}, "antiAffinity": {}},
			"fairShareHierarchy": {"path": "root/eng", "weights": "1/8"},
			"createTime": "1767323045000000000"
		}]
	}`, cluster.Snapshot)
	require.Empty(t, cluster.Warnings, "what quotas alone count is no fault")
}

func TestQueueThatSaysNothing(t *testing.T) {
	for name, test := range map[string]struct{ manifest, state string }{
		"absent": {`{kind: Queue, metadata: {name: q}}`, "OPEN"},
		"null": {
			`{kind: Queue, metadata: {name: q}, spec: {weight: null, capability: null, affinity: null, guarantee: {}}, status: null}`, "OPEN",
		},
		"an unknown state": {`{kind: Queue, metadata: {name: q}, status: {state: Ajar}}`, "UNKNOWN"},
	} {
		t.Run(name, func(t *testing.T) {
			requireMessage(t, `{"name": "q", "weight": 1, "state": "QUEUE_STATE_`+test.state+`"}`, read(t, test.manifest).Snapshot.Queues[0])
		})
	}
}

func TestWhatIsPresentAndEmptyStaysPresent(t *testing.T) {
	s := read(t, aQueue+`
---
{kind: Queue, metadata: {name: r}, spec: {capability: {}, deserved: {count/x: 1}, guarantee: {resource: {}}, affinity: {}}}
---
{kind: PodGroup, metadata: {name: j}, spec: {queue: q, minResources: {}}}
---
{kind: PodGroup, metadata: {name: k}, spec: {queue: q}}
`).Snapshot
	requireMessage(t, `{
		"name": "r", "weight": 1, "state": "QUEUE_STATE_OPEN",
		"capability": {}, "deserved": {}, "guarantee": {}, "nodeGroupAffinity": {}
	}`, s.Queues[1])
	require.NotNil(t, s.Jobs[0].MinResources)
	require.Nil(t, s.Jobs[1].MinResources)
	require.Empty(t, s.Dimensions)
}

func TestJobsOfUnknownQueuesAreDroppedButTheirPodsStillUseTheirNodes(t *testing.T) {
	cluster := read(t, aQueue+aPodGroup+`
---
{kind: PodGroup, metadata: {name: lost, namespace: ns}, spec: {queue: gone}}
---
{kind: PodGroup, metadata: {name: default, namespace: ns}}
---
{kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 8}}}
---
{kind: Pod, metadata: {name: in, namespace: ns, annotations: {scheduling.k8s.io/group-name: j}},
 spec: {nodeName: n, containers: [{resources: {requests: {cpu: 1}}}]}, status: {phase: Running}}
---
{kind: Pod, metadata: {name: of-lost, namespace: ns, annotations: {scheduling.k8s.io/group-name: lost}},
 spec: {nodeName: n, containers: [{resources: {requests: {cpu: 2}}}]}, status: {phase: Running}}
---
{kind: Pod, metadata: {name: elsewhere, namespace: other, annotations: {scheduling.k8s.io/group-name: j}},
 spec: {nodeName: n, containers: [{resources: {requests: {memory: 5}}}]}, status: {phase: Pending}}
---
{kind: Pod, metadata: {name: labelled-only, namespace: ns, labels: {scheduling.k8s.io/group-name: j}},
 spec: {nodeName: n}, status: {phase: Unknown}}
---
{kind: Pod, metadata: {name: done, namespace: ns}, spec: {nodeName: n}, status: {phase: Succeeded}}
---
{kind: Pod, metadata: {name: nowhere, namespace: ns}, spec: {nodeName: ghost}, status: {phase: Running}}
`)
	s := cluster.Snapshot
	require.Len(t, s.Jobs, 1)
	require.Len(t, s.Jobs[0].Groups[0].Tasks, 1)
	requireMessage(t, `{
		"name": "n", "allocatable": {"dimensions": [0], "amounts": [8000]},
		"usedByOthers": {"dimensions": [0, 1, 2], "amounts": [2000, 5, 3]}
	}`, s.Nodes[0])
	require.Equal(t, []string{
		`cluster.yaml:9: PodGroup ns/lost is left out with its pods: there is no queue "gone"`,
		`cluster.yaml:11: PodGroup ns/default is left out with its pods: there is no queue "default"`,
		`cluster.yaml:21: 1 pod is left out because its PodGroup is not in the input; the first is other/elsewhere`,
		"cluster.yaml:29: 1 pod is on a node that is not in the input; the first is ns/nowhere on node ghost",
	}, texts(cluster.Warnings))
}

// texts are warnings as people see them.
func texts(warned []*apportionv1.Warning) []string {
	var list []string
	for _, warning := range warned {
		list = append(list, warning.Path+": "+warning.Message)
	}
	return list
}

func TestJobPriorityIsThatOfItsClassOrTheLastGlobalDefault(t *testing.T) {
	s := read(t, aQueue+`
---
{kind: PodGroup, metadata: {name: classed}, spec: {queue: q, priorityClassName: high}}
---
{kind: PodGroup, metadata: {name: unknown}, spec: {queue: q, priorityClassName: nosuch}}
---
{kind: PodGroup, metadata: {name: plain}, spec: {queue: q}, status: {phase: Inqueue}}
---
{kind: PriorityClass, metadata: {name: high}, value: 200}
---
{kind: PriorityClass, metadata: {name: first}, value: 5, globalDefault: true}
---
{kind: PriorityClass, metadata: {name: second}, value: 7, globalDefault: true}
`).Snapshot
	var priorities []int32
	for _, job := range s.Jobs {
		priorities = append(priorities, job.Priority)
	}
	require.Equal(t, []int32{200, 7, 7}, priorities)
}

func TestTasksOfARoleShareTheCommonestRequest(t *testing.T) {
	pod := func(name, role, cpu string) string {
		return `
---
{kind: Pod, metadata: {name: ` + name + `, namespace: ns, labels: {volcano.sh/task-spec: "` + role + `"},
  annotations: {scheduling.k8s.io/group-name: j}}, spec: {containers: [{resources: {requests: {cpu: ` + cpu + `}}}]}}
`
	}
	s := read(t, aQueue+`
---
{kind: PodGroup, metadata: {name: j, namespace: ns}, spec: {queue: q, minMember: 2, minTaskMember: {extra: 1, worker: 0}}}
`+pod("a", "worker", "1")+pod("b", "worker", "2")+pod("c", "", "4")+pod("d", "worker", "2")+pod("e", "", "3")).Snapshot
	requireMessage(t, `{
		"name": "j", "namespace": "ns", "queue": "q", "phase": "JOB_PHASE_PENDING", "minAvailable": 2,
		"groups": [
			{"role": "extra", "minAvailable": 1},
			{
				"role": "worker", "minAvailable": 0, "request": {"dimensions": [0, 1], "amounts": [2000, 1]},
				"tasks": [
					{"name": "a", "status": "TASK_STATUS_PENDING", "detail": {"request": {"dimensions": [0, 1], "amounts": [1000, 1]}}},
					{"name": "b", "status": "TASK_STATUS_PENDING"},
					{"name": "d", "status": "TASK_STATUS_PENDING"}
				],
				"unstated": {"memory": 1}
			},
			{
				"request": {"dimensions": [0, 1], "amounts": [4000, 1]},
				"tasks": [
					{"name": "c", "status": "TASK_STATUS_PENDING"},
					{"name": "e", "status": "TASK_STATUS_PENDING", "detail": {"request": {"dimensions": [0, 1], "amounts": [3000, 1]}}}
				],
				"unstated": {"memory": 1}
			}
		]
	}`, s.Jobs[0])
	require.Equal(t, []string{"cpu", "pods"}, s.Dimensions)
}

func TestNodesOfferOversubscribedResourcesToo(t *testing.T) {
	cluster := read(t, `
{kind: Node, metadata: {name: n, labels: {volcano.sh/nodegroup-name: ""}, annotations: {
  volcano.sh/oversubscription-cpu: "2000", volcano.sh/oversubscription-memory: "2Gi"}},
  spec: {unschedulable: true}, status: {allocatable: {memory: 1Ki, nvidia.com/gpu: 0}}}
---
{kind: Node, metadata: {name: bare}}
`)
	requireMessage(t, `{"dimensions": ["cpu", "memory", "nvidia.com/gpu"], "nodes": [
		{"name": "n", "group": "", "allocatable": {"dimensions": [0, 1, 2], "amounts": [2000, 1024, 0]},
			"unschedulable": {"cause": "UNSCHEDULABLE_CAUSE_CORDONED"}},
		{"name": "bare", "allocatable": {}}
	]}`, cluster.Snapshot)
	require.Equal(t, []string{
		`cluster.yaml:3: metadata.annotations.volcano.sh/oversubscription-memory: not a number: "2Gi"`,
	}, texts(cluster.Warnings))
}

func TestOptionsSetTheClockAndTheLabel(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 10, 0, 5, time.UTC)
	s := read(t, aQueue, WithAsOf(now), WithClusterLabel("prod")).Snapshot
	require.Equal(t, now.UnixNano(), s.AsOf)
	require.Equal(t, "prod", s.Cluster)
	require.Zero(t, read(t, aQueue).Snapshot.AsOf)
}

func TestKindsThatAreNotReadAreNamedOnce(t *testing.T) {
	cluster := read(t, `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: a}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {weight: -1}}
- {apiVersion: v1, kind: Service, metadata: {name: b}}
- {apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: a}}
- {apiVersion: metrics.k8s.io/v1beta1, kind: Node, metadata: {name: a}}
- {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: a}}
`)
	require.Len(t, cluster.Snapshot.Queues, 1)
	require.Equal(t, []string{
		"cluster.yaml:5: objects of kind v1 Service are not read",
		"cluster.yaml:6: objects of kind apps/v1 Deployment are not read",
		"cluster.yaml:8: objects of kind scheduling.x-k8s.io/v1alpha1 PodGroup are not read",
		"cluster.yaml:9: objects of kind metrics.k8s.io/v1beta1 Node are not read",
	}, texts(cluster.Warnings))
}

func TestAmountsThatOverflowAreReadAsVolcanoReadsThem(t *testing.T) {
	cluster := read(t, `{kind: Queue, metadata: {name: q}, spec: {capability: {cpu: 10P, memory: 7E, nvidia.com/gpu: 1P}}}`)
	requireMessage(t, `{"dimensions": [0, 1, 2], "amounts": [0, 7e18, 1e18]}`, cluster.Snapshot.Queues[0].Capability)
	require.Equal(t, []string{
		`cluster.yaml:1: spec.capability.cpu: exceeds Volcano's range; it reads "10P" as 0`,
	}, texts(cluster.Warnings))
	require.Equal(t, []string{`f.yaml:1: spec.capability.cpu: exceeds Volcano's range: "8Ei"`},
		problemsOf(t, "f.yaml", `{kind: Queue, metadata: {name: q}, spec: {capability: {cpu: 8Ei}}}`))
}
