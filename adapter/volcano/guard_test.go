package volcano

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

func TestAPodSaysWhatSessionsRead(t *testing.T) {
	for name, c := range map[string]struct{ metadata, spec, status, want string }{
		"a node that is kept for it": {labelled, "", "phase: Pending, nominatedNodeName: n", `{"nominatedNode": "n"}`},
		"not once it is on a node":   {labelled, "nodeName: n", "phase: Running, nominatedNodeName: n", ``},
		"it evicts nobody":           {labelled, "preemptionPolicy: Never", "phase: Pending", `{"neverPreempts": true}`},
		"it may evict":               {labelled, "preemptionPolicy: PreemptLowerPriority", "phase: Pending", ``},
		"every revocable node":       {labelled[:len(inGroup)-1] + `, volcano.sh/revocable-zone: "*"}, labels: {app: a}`, "", "", `{"revocableZone": "*"}`},
		"no zone by name": {
			labelled[:len(inGroup)-1] + `, volcano.sh/revocable-zone: z, volcano.sh/preemptable: "true"}, labels: {app: a}`, "", "", ``,
		},
		"T is true, and so is the zone": {
			labelled[:len(inGroup)-1] + `, volcano.sh/preemptable: T}, labels: {app: a}`, "", "", `{"revocableZone": "*"}`,
		},
		"no labels":            {inGroup, "", "", `{"unlabelled": true}`},
		"no labels at the end": {inGroup, "", "phase: Succeeded", ``},
	} {
		t.Run(name, func(t *testing.T) {
			task, _ := readTask(t, c.metadata, c.spec, c.status)
			if c.want == "" {
				require.Nil(t, task.Detail)
				return
			}
			requireMessage(t, c.want, task.Detail)
		})
	}
}

func TestAClassThatNeverPreemptsSaysSoOfItsPods(t *testing.T) {
	s := read(t, aQueue+aPodGroup+`
---
{kind: PriorityClass, metadata: {name: meek}, value: 5, preemptionPolicy: Never}
---
{kind: Pod, metadata: {name: p, namespace: ns, `+labelled+`}, spec: {priorityClassName: meek}}
---
{kind: Pod, metadata: {name: q, namespace: ns, `+labelled+`}, spec: {priorityClassName: meek, preemptionPolicy: PreemptLowerPriority}}
`).Snapshot
	tasks := s.Jobs[0].Groups[0].Tasks
	require.True(t, tasks[0].GetDetail().GetNeverPreempts())
	require.False(t, tasks[1].GetDetail().GetNeverPreempts())
}

func TestLimitsStandForRequestsThatAreNotStated(t *testing.T) {
	s := read(t, aQueue+aPodGroup+`
---
{kind: Pod, metadata: {name: p, namespace: ns, `+labelled+`}, spec: {containers: [
  {resources: {limits: {cpu: 2, memory: 1Ki}}}, {resources: {limits: {cpu: 2}, requests: {cpu: 1, nvidia.com/gpu: 1}}}]}}
`).Snapshot
	requireMessage(t, `{"dimensions": [0, 1, 2, 3], "amounts": [3000, 1024, 1000, 1]}`, s.Jobs[0].Groups[0].Request)
	requireMessage(t, `{"memory": 1}`, s.Jobs[0].Groups[0].Unstated)
}

func TestContainersThatNameNothingAreCounted(t *testing.T) {
	pod := func(name, fields string) string {
		return fmt.Sprintf("---\n{kind: Pod, metadata: {name: %s, namespace: ns, %s}, %s}\n", name, labelled, fields)
	}
	s := read(t, aQueue+aPodGroup+"\n"+
		pod("a", `spec: {containers: [{}, {resources: {requests: {cpu: 0}}}]}`)+
		pod("b", `spec: {containers: [{}, {resources: {requests: {cpu: 0}}}]}`)+
		pod("c", `spec: {containers: [{resources: {requests: {cpu: 1, memory: 1}}}]}`)+
		pod("d", `spec: {containers: [{}], initContainers: [{restartPolicy: Always}, {}], resources: {requests: {cpu: 1}}}`)+
		pod("e", `spec: {containers: [{}]}, status: {phase: Failed}`)).Snapshot
	group := s.Jobs[0].Groups[0]
	requireMessage(t, `{"cpu": 1, "memory": 2}`, group.Unstated)
	require.Nil(t, group.Tasks[0].GetDetail().GetUnstated())
	requireMessage(t, `{}`, group.Tasks[2].GetDetail().GetUnstated())
	requireMessage(t, `{"memory": 2}`, group.Tasks[3].GetDetail().GetUnstated())
	require.Nil(t, group.Tasks[4].GetDetail().GetUnstated())
}

func TestAPodGroupSaysWhatPluginsRead(t *testing.T) {
	for annotations, want := range map[string]string{
		`volcano.sh/preemptable: "True"`:                                         `{"preemptable": true}`,
		`volcano.sh/preemptable: maybe`:                                          `{"preemptable": false}`,
		`sla-waiting-time: 1h`:                                                   `{"waitingLimit": "3600000000000"}`,
		`sla-waiting-time: 1h, volcano.sh/sla-waiting-time: 1m`:                  `{"waitingLimit": "60000000000"}`,
		`sla-waiting-time: 1h, volcano.sh/sla-waiting-time: 1d`:                  `{"waitingLimit": "3600000000000"}`,
		`volcano.sh/jdb-min-available: "2"`:                                      `{"disruptionMinAvailable": "2"}`,
		`volcano.sh/jdb-max-unavailable: 50%`:                                    `{"disruptionMaxUnavailable": "50%"}`,
		`volcano.sh/jdb-max-unavailable: 50%, volcano.sh/jdb-min-available: "2"`: `{"disruptionMinAvailable": "2"}`,
		`sla-waiting-time: 0s`:                                                   ``,
	} {
		cluster := read(t, aQueue+"\n---\n{kind: PodGroup, metadata: {name: j, namespace: ns, annotations: {"+annotations+"}}, spec: {queue: q}}\n")
		detail := cluster.Snapshot.Jobs[0].Detail
		if want == "" {
			require.Nil(t, detail)
			require.Len(t, cluster.Warnings, 1)
			continue
		}
		requireMessage(t, want, detail)
	}
}

// guarded are pods of two namespaces, with budgets and quotas.
const guarded = aQueue + `
---
{kind: PodGroup, metadata: {name: j, namespace: a}, spec: {queue: q, minResources: {cpu: 1, requests.cpu: 1500m, count/pods: 2, pods: 2, limits.memory: 1Ki}}}
---
{kind: PodGroup, metadata: {name: j, namespace: b}, spec: {queue: q, minResources: {count/pods: 2}}}
---
{kind: Pod, metadata: {name: p, namespace: a, annotations: {scheduling.k8s.io/group-name: j}, labels: {app: x}}}
---
{kind: Pod, metadata: {name: gone, namespace: a, annotations: {scheduling.k8s.io/group-name: j}, labels: {app: x}}}
---
{kind: Pod, metadata: {name: p, namespace: b, annotations: {scheduling.k8s.io/group-name: j}, labels: {app: x}}}
---
{kind: Pod, metadata: {name: ended, namespace: b, annotations: {scheduling.k8s.io/group-name: j}, labels: {app: x}}, status: {phase: Succeeded}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: x, namespace: a}, spec: {selector: {matchLabels: {app: x}}},
  status: {disruptionsAllowed: 1, disruptedPods: {gone: "2026-01-02T03:04:05Z"}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: all, namespace: a}, spec: {selector: {}}, status: {disruptionsAllowed: 1}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: some, namespace: a},
  spec: {selector: {matchExpressions: [{key: app, operator: Exists}]}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: y, namespace: b}, spec: {selector: {matchLabels: {app: y}}}}
---
{kind: ResourceQuota, metadata: {name: r, namespace: a}, spec: {hard: {cpu: 9}}, status: {hard: {cpu: 4, limits.memory: 2Ki, count/pods: 3}, used: {cpu: 500m}}}
---
{kind: ResourceQuota, metadata: {name: new, namespace: a}, spec: {hard: {requests.cpu: 9}}}
---
{kind: ResourceQuota, metadata: {name: other, namespace: c}, spec: {hard: {cpu: 9}}}
`

func TestBudgetsAndQuotasAreThoseOfTheJobs(t *testing.T) {
	cluster := read(t, guarded)
	require.Empty(t, cluster.Warnings)
	s := cluster.Snapshot
	requireMessage(t, `{"disruptionBudgets": [
		{"namespace": "a", "name": "x", "disruptionsAllowed": 1}, {"namespace": "a", "name": "some"}
	], "quotas": [
		{"namespace": "a", "name": "r", "hardAmounts": [
			{"name": "count/pods", "amount": 3}, {"name": "cpu", "amount": 4000}, {"name": "limits.memory", "amount": 2048}
		], "usedAmounts": [{"name": "cpu", "amount": 500}]},
		{"namespace": "a", "name": "new", "hardAmounts": [{"name": "requests.cpu", "amount": 9000}]}
	]}`, &apportionv1.Snapshot{DisruptionBudgets: s.DisruptionBudgets, Quotas: s.Quotas})
	requireMessage(t, `{"quotaRequests": [
		{"name": "count/pods", "amount": 2}, {"name": "cpu", "amount": 1000}, {"name": "limits.memory", "amount": 1024},
		{"name": "pods", "amount": 2}, {"name": "requests.cpu", "amount": 1500}
	]}`, s.Jobs[0].Detail)
	require.Nil(t, s.Jobs[1].Detail)
	m, err := decode.Compile(s)
	require.NoError(t, err)
	names := func(key string) (list []string) {
		task, known := m.Task(key)
		require.True(t, known, key)
		for _, at := range m.BudgetsOf(task) {
			list = append(list, m.DisruptionBudgets[at].Name)
		}
		return list
	}
	require.ElementsMatch(t, []string{"x", "some"}, names("a/p"))
	require.ElementsMatch(t, []string{"some"}, names("a/gone"), "its eviction was granted")
	require.Empty(t, names("b/p"))
	require.Empty(t, names("b/ended"))
}

func TestTasksPreferNodesByAffinityAndTaints(t *testing.T) {
	s := onRacks(t, `tolerations: [{key: dedicated, operator: Exists}], affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
		{weight: 10, preference: {matchExpressions: [{key: zone, operator: In, values: ["2"]}]}},
		{weight: 3, preference: {matchExpressions: [{key: gpu, operator: Exists}]}}]}}`)
	m, err := decode.Compile(s)
	require.NoError(t, err)
	set := &m.NodeSets[m.NodeSetOf(0)]
	var got [][2]int
	for n := range model.NodeID(len(m.Nodes)) {
		untolerated, affinity := set.Preference(n)
		got = append(got, [2]int{int(untolerated), int(affinity)})
	}
	require.Equal(t, [][2]int{{0, 3}, {0, 13}, {1, 0}, {0, 10}}, got)
	require.Len(t, set.Nodes, len(m.Nodes))
}

func TestAFollowedClusterSaysTheSame(t *testing.T) {
	text := guarded + "---\n{kind: Pod, metadata: {name: n, namespace: a, " + inGroup + "}, spec: {preemptionPolicy: Never, containers: [{}]}}\n"
	read, err := ReadManifests([]objects.Source{{Name: "f", Data: []byte(text)}}, LeaveOutFaulty())
	require.NoError(t, err)
	followed := NewObjects()
	documents := yaml.NewDecoder(strings.NewReader(text))
	for {
		var object map[string]any
		if errors.Is(documents.Decode(&object), io.EOF) {
			break
		}
		kind := kinds.Resource(fmt.Sprint(object["kind"])).Newest()
		object["apiVersion"] = kind.Version
		data, err := json.Marshal(object)
		require.NoError(t, err)
		put, err := followed.Read(kind, data)
		require.NoError(t, err)
		followed.Put(put)
	}
	said := func(s *apportionv1.Snapshot) (list []string) {
		for _, b := range s.GetDisruptionBudgets() {
			list = append(list, b.String())
		}
		for _, q := range s.GetQuotas() {
			list = append(list, q.String())
		}
		for _, j := range s.GetJobs() {
			list = append(list, j.GetNamespace()+j.GetDetail().String())
			for _, g := range j.GetGroups() {
				list = append(list, g.GetUnstated().String())
				for _, task := range g.GetTasks() {
					list = append(list, j.GetNamespace()+task.GetName()+task.GetDetail().String())
				}
			}
		}
		return list
	}
	for range 2 {
		again, err := followed.Cluster()
		require.NoError(t, err)
		require.ElementsMatch(t, said(read.Snapshot), said(again.Snapshot))
	}
}
