package volcano_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/test/kubescheduler"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/test/raced"
)

// reasonOf are the reasons of Kubernetes' scheduler that are judged here.
var reasonOf = map[policy.Code]string{
	policy.HostPortTaken:           "node(s) didn't have free ports for the requested pod ports",
	policy.PodAffinity:             "node(s) didn't match pod affinity rules",
	policy.PodAntiAffinity:         "node(s) didn't match pod anti-affinity rules",
	policy.PodAntiAffinityOfOthers: "node(s) didn't satisfy existing pods anti-affinity rules",
	policy.TopologySpread:          "node(s) didn't match pod topology spread constraints",
	policy.TopologyLabelMissing:    "node(s) didn't match pod topology spread constraints (missing required label)",
}

// TestNodesAreThoseThatKubernetesSchedulerFindsFeasible compares, for each waiting pod of clusters that Kubernetes' own scheduler judged, the
// nodes that take it. Where the snapshot names a constraint that it does not express, there may be more.
func TestNodesAreThoseThatKubernetesSchedulerFindsFeasible(t *testing.T) {
	raced.Skip(t)
	clusters, err := kubescheduler.Read("testdata/kubescheduler.jsonl.gz")
	require.NoError(t, err)
	pods, judged, withVolumes, refused := 0, 0, 0, map[policy.Code]int{}
	for _, c := range clusters {
		cluster, err := volcano.ReadManifests([]objects.Source{{Name: "cluster.json", Data: c.Objects}, withoutDrivers})
		require.NoError(t, err, c.Seed)
		m, err := decode.Compile(cluster.Snapshot)
		require.NoError(t, err, c.Seed)
		s, err := engine.Open(m, engine.Policy{}, nil)
		require.NoError(t, err)
		byName := waitingTasks(cluster.Snapshot)
		claiming := podsWithClaims(t, c.Objects)
		for _, pod := range c.Pods {
			pods++
			w, found := byName[pod.Namespace+"/"+pod.Name]
			require.True(t, found, "%d %s", c.Seed, pod.Name)
			feasible, reasons := feasibleFor(s, w.task, refused)
			if len(w.unjudged) > 0 {
				for _, n := range pod.Feasible {
					require.Contains(t, feasible, n, "%d %s/%s", c.Seed, pod.Namespace, pod.Name)
				}
				continue
			}
			judged++
			earlier := 0
			if claiming[pod.Namespace+"/"+pod.Name] {
				withVolumes++
				// Kubernetes' scheduler looks at ports before it looks at volumes, which are part of the node sets here.
				earlier = len(cluster.Snapshot.GetNodes())
			}
			require.Equal(t, pod.Feasible, feasible, "%d %s/%s %v", c.Seed, pod.Namespace, pod.Name, pod.Reasons)
			for code, words := range reasonOf {
				more := pod.Reasons[words] - reasons[code]
				most := 0
				if code == policy.HostPortTaken {
					most = earlier
				}
				require.True(t, 0 <= more && more <= most, "%d %s/%s %s %v", c.Seed, pod.Namespace, pod.Name, words, pod.Reasons)
			}
		}
	}
	t.Logf("%d clusters, %d waiting pods, %d of them without an unjudged constraint, %d of these with volumes; refusals %v",
		len(clusters), pods, judged, withVolumes, refused)
	require.Greater(t, withVolumes, 700)
	require.Greater(t, judged, pods-pods/100)
	for code, words := range reasonOf {
		require.Positive(t, refused[code], words)
	}
}

// withoutDrivers says what the clusters had: no driver that reports free capacity, and no node with a limit of volumes.
var withoutDrivers = objects.Source{Name: "drivers.yaml", Data: []byte(`
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: disk.example.com}}
---
{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: n}, spec: {drivers: [{name: disk.example.com, nodeID: n}]}}
`)}

// podsWithClaims finds the pods that use claims, by namespace and name.
func podsWithClaims(t *testing.T, objects []byte) map[string]bool {
	t.Helper()
	var list corev1.PodList
	require.NoError(t, json.Unmarshal(objects, &list))
	out := map[string]bool{}
	for i := range list.Items {
		p := &list.Items[i]
		out[p.Namespace+"/"+p.Name] = slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil
		})
	}
	return out
}

type waitingTask struct {
	task     model.TaskID
	unjudged []apportionv1.PlacementConstraint
}

// waitingTasks finds the waiting tasks of a snapshot by namespace and name.
func waitingTasks(s *apportionv1.Snapshot) map[string]waitingTask {
	out, n := map[string]waitingTask{}, model.TaskID(0)
	for _, j := range s.GetJobs() {
		for _, g := range j.GetGroups() {
			for _, task := range g.GetTasks() {
				if task.Node == nil {
					out[j.GetNamespace()+"/"+task.GetName()] = waitingTask{n, slices.Concat(g.GetUnjudgedConstraints(), task.GetDetail().GetUnjudgedConstraints())}
				}
				n++
			}
		}
	}
	return out
}

// feasibleFor lists the nodes that take a task, and counts why others do not.
func feasibleFor(s *engine.Session, t model.TaskID, all map[policy.Code]int) (list []string, reasons map[policy.Code]int) {
	reasons, list = map[policy.Code]int{}, []string{}
	for _, n := range s.View().NodeOrder {
		var why policy.Reasons
		fits := s.Nodes().Fits(t, n, &why)
		room := s.Nodes().HasRoom(t, n, nil)
		switch {
		case fits && room:
			list = append(list, s.View().Nodes[n].Name)
		case !fits && (room || why.List[0].Code == policy.HostPortTaken):
			// Kubernetes' scheduler looks at ports before it looks at room, and at the other rules after.
			reasons[why.List[0].Code]++
			all[why.List[0].Code]++
		}
	}
	slices.SortFunc(list, strings.Compare)
	return list, maps.Clone(reasons)
}
