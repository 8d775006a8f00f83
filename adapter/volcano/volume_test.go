package volcano_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

const volumeCluster = `
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: default}}
---
{apiVersion: v1, kind: Node, metadata: {name: a1, labels: {topology.kubernetes.io/zone: a, kubernetes.io/hostname: a1}}}
---
{apiVersion: v1, kind: Node, metadata: {name: a2, labels: {topology.kubernetes.io/zone: a, kubernetes.io/hostname: a2}}}
---
{apiVersion: v1, kind: Node, metadata: {name: b1, labels: {topology.kubernetes.io/zone: b, kubernetes.io/hostname: b1}}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g, namespace: team}, spec: {queue: default, minMember: 1}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: late}, provisioner: disk.example.com, volumeBindingMode: WaitForFirstConsumer}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: zonal}, provisioner: disk.example.com, volumeBindingMode: WaitForFirstConsumer,
  allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [b]}]}]}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: local}, provisioner: kubernetes.io/no-provisioner, volumeBindingMode: WaitForFirstConsumer}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: atonce}, provisioner: disk.example.com}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: other.example.com}, spec: {storageCapacity: true}}
---
{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: a1}, spec: {drivers: [{name: disk.example.com, nodeID: a1}]}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: other, namespace: team}, spec: {storageClassName: late}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: small}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: local,
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [a1]}]}]}}}, status: {phase: Available}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: large}, spec: {capacity: {storage: 9Gi}, accessModes: [ReadWriteOnce], storageClassName: local,
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [b1]}]}]}}}, status: {phase: Available}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: zoned, labels: {topology.kubernetes.io/zone: a__c}}, spec: {storageClassName: late}, status: {phase: Bound}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: old}, spec: {gcePersistentDisk: {pdName: x}, storageClassName: late}, status: {phase: Bound}}
---
`

func waitingWith(volumes string) string {
	return `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team, annotations: {scheduling.k8s.io/group-name: g}},
  spec: {schedulerName: volcano, containers: [{name: c}], volumes: [` + volumes + `]}}
---
`
}

const uses = `{name: v, persistentVolumeClaim: {claimName: data}}`

func claim(metadata, spec, status string) string {
	return `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: team` + metadata + `}, spec: {` + spec +
		`, resources: {requests: {storage: 5Gi}}, accessModes: [ReadWriteOnce]}, status: {phase: ` + status + `}}
---
`
}

// tracking is a driver that reports its free capacity, free one report, and attaching how many volumes a node attaches.
const tracking = `{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: disk.example.com}, spec: {storageCapacity: true}}
---
`

func free(name, zone, amounts string) string {
	return `{apiVersion: storage.k8s.io/v1, kind: CSIStorageCapacity, metadata: {name: ` + name + `, namespace: kube-system}, storageClassName: late,
  nodeTopology: {matchLabels: {topology.kubernetes.io/zone: ` + zone + `}}, ` + amounts + `}
---
`
}

func attaching(node string, volumes int) string {
	return fmt.Sprintf(`{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: %s}, spec: {drivers: [{name: disk.example.com, allocatable: {count: %d}}]}}
---
`, node, volumes)
}

func TestNodesAreThoseThatReachTheVolumesOfAPod(t *testing.T) {
	const complete = `, annotations: {pv.kubernetes.io/bind-completed: "yes"}`
	once := strings.Replace(claim(complete, "volumeName: zoned", "Bound"), "ReadWriteOnce]", "ReadWriteOncePod]", 1)
	running := `{apiVersion: v1, kind: Pod, metadata: {name: user, namespace: team, annotations: {scheduling.k8s.io/group-name: g}},
  spec: {schedulerName: volcano, nodeName: a1, containers: [{name: c}], volumes: [` + uses + `]}, status: {phase: Running}}
---
`
	all := []string{"a1", "a2", "b1"}
	stories := map[string]struct {
		objects  string
		nodes    []string
		rule     string
		unjudged bool
	}{
		"a claim that does not exist": {waitingWith(uses), nil, `the claim "data" does not exist`, false},
		"an ephemeral volume whose claim is still to be made": {
			waitingWith(`{name: v, ephemeral: {}}`), nil, `the claim "p-v" of its ephemeral volume does not exist yet`, false,
		},
		"a claim that has lost its volume": {
			waitingWith(uses) + claim(complete, "volumeName: gone", "Lost"), nil, `the claim "data" has lost its volume "gone"`, false,
		},
		"a claim whose volume does not exist": {
			waitingWith(uses) + claim(complete, "volumeName: gone", "Bound"), nil, `the volume "gone" of the claim "data" does not exist`, false,
		},
		"a claim that is being deleted": {
			waitingWith(uses) + claim(complete+`, deletionTimestamp: "2030-01-01T00:00:00Z"`, "volumeName: zoned", "Bound"), nil,
			`the claim "data" is being deleted`, false,
		},
		"a claim of a class that binds at once": {
			waitingWith(uses) + claim("", "storageClassName: atonce", "Pending"), nil,
			`the claim "data" is not bound to a volume yet, and its class does not wait for a pod`, false,
		},
		"a claim of a class that does not exist": {
			waitingWith(uses) + claim("", "storageClassName: misspelt", "Pending"), nil,
			`the claim "data" is not bound to a volume yet, and its storage class "misspelt" does not exist`, false,
		},
		"a claim without a class": {
			waitingWith(uses) + claim("", "storageClassName: ''", "Pending"), nil,
			`the claim "data" is not bound to a volume yet, and it names no storage class`, false,
		},
		"a claim that names its volume and is not bound yet": {
			waitingWith(uses) + claim("", "volumeName: zoned", "Pending"), nil, `the claim "data" is not bound to its volume "zoned" yet`, false,
		},
		"a volume in zones": {
			waitingWith(uses) + claim(complete, "volumeName: zoned", "Bound"),
			[]string{"a1", "a2"},
			`label of its volume topology.kubernetes.io/zone=a__c`, false,
		},
		"a volume that the scheduler translates": {waitingWith(uses) + claim(complete, "volumeName: old", "Bound"), all, "", true},
		"a class that provides volumes everywhere": {
			waitingWith(uses) + claim("", "storageClassName: late", "Pending"), all, "", false,
		},
		"a class that provides volumes in a zone": {
			waitingWith(uses) + claim("", "storageClassName: zonal", "Pending"), []string{"b1"}, "a volume of storage class zonal", false,
		},
		"a node that the scheduler has selected": {
			waitingWith(uses) + claim(`, annotations: {volume.kubernetes.io/selected-node: a2}`, "storageClassName: late", "Pending"),
			[]string{"a2"},
			"a volume of storage class late", false,
		},
		"a class of volumes that exist, of which one is large enough": {
			waitingWith(uses) + claim("", "storageClassName: local", "Pending"), []string{"b1"}, "a volume of storage class local", false,
		},
		"two waiting pods for the volumes of a class": {
			waitingWith(uses) + claim("", "storageClassName: local", "Pending") + strings.Replace(waitingWith(uses), "name: p,", "name: q,", 1),
			[]string{"b1"},
			"a volume of storage class local", true,
		},
		"a driver whose capacity the scheduler looks at": {
			waitingWith(uses) + claim("", "storageClassName: late", "Pending") +
				`{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: disk.example.com}, spec: {storageCapacity: true}}`,
			all, "", true,
		},
		"a driver that has room for the claim in one zone": {
			waitingWith(uses) + claim("", "storageClassName: late", "Pending") + tracking + free("one", "b", "capacity: 5Gi") +
				free("two", "a", "capacity: 9Gi, maximumVolumeSize: 4Gi") + free("three", "a", "maximumVolumeSize: 4Gi"),
			[]string{"b1"},
			"a volume of storage class late", false,
		},
		"a driver that says nothing of how much room it has": {
			waitingWith(uses) + claim("", "storageClassName: late", "Pending") + tracking + free("one", "a", ""), nil,
			"a volume of storage class late", false,
		},
		"nodes that attach enough volumes": {
			running + waitingWith(uses) + claim("", "storageClassName: late", "Pending") + attaching("a2", 1), all, "", false,
		},
		"a node that may lack a place for the volume": {
			waitingWith(uses) + claim("", "storageClassName: late", "Pending") +
				attaching("a2", 0), all, "", true,
		},
		"a claim for one pod only, which another one uses": {
			running + waitingWith(uses) + once, nil, `the claim "data" is for one pod only, and pod "user" uses it`, false,
		},
		"a claim for one pod only, which none uses": {
			waitingWith(uses) + once, []string{"a1", "a2"}, `label of its volume topology.kubernetes.io/zone=a__c`, false,
		},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			cluster, err := volcano.ReadManifests([]objects.Source{{Name: "cluster.yaml", Data: []byte(volumeCluster + story.objects)}})
			require.NoError(t, err)
			require.Empty(t, cluster.Warnings)
			nodes, rule, unjudged := placementOf(t, cluster.Snapshot, "p")
			require.Equal(t, story.nodes, nodes)
			require.Equal(t, story.rule, rule)
			require.Equal(t, story.unjudged, unjudged)
		})
	}
}

func TestVolumesAreNotJudgedByObjectsThatWereNotRead(t *testing.T) {
	for name, story := range map[string]struct{ without, class string }{
		"claims": {"PersistentVolumeClaim", "local"}, "volumes": {"PersistentVolume,", "local"}, "classes": {"StorageClass", "local"},
		"drivers": {"CSIDriver", "late"}, "what nodes attach": {"CSINode", "late"},
	} {
		t.Run(name, func(t *testing.T) {
			written := volumeCluster + waitingWith(uses) + claim("", "storageClassName: "+story.class, "Pending")
			var kept []string
			for document := range strings.SplitSeq(written, "---\n") {
				if !strings.Contains(document, "kind: "+story.without) {
					kept = append(kept, document)
				}
			}
			cluster, err := volcano.ReadManifests([]objects.Source{{Name: "cluster.yaml", Data: []byte(strings.Join(kept, "---\n"))}})
			require.NoError(t, err)
			_, _, unjudged := placementOf(t, cluster.Snapshot, "p")
			require.True(t, unjudged)
		})
	}
}

func TestNoNodeIsExcludedForVolumesThatWereNotRead(t *testing.T) {
	written := volumeCluster + waitingWith(uses) + claim("", "storageClassName: local", "Pending")
	var kept []string
	for document := range strings.SplitSeq(written, "---\n") {
		if !strings.Contains(document, "kind: PersistentVolume,") {
			kept = append(kept, document)
		}
	}
	cluster, err := volcano.ReadManifests([]objects.Source{{Name: "cluster.yaml", Data: []byte(strings.Join(kept, "---\n"))}})
	require.NoError(t, err)
	nodes, _, unjudged := placementOf(t, cluster.Snapshot, "p")
	require.Len(t, nodes, len(cluster.Snapshot.GetNodes()))
	require.True(t, unjudged)
}

// placementOf returns the nodes of a task, the rule that excludes the others, and whether its volumes are not judged.
func placementOf(t *testing.T, s *apportionv1.Snapshot, task string) (nodes []string, rule string, unjudged bool) {
	t.Helper()
	for _, g := range s.GetJobs()[0].GetGroups() {
		for _, k := range g.GetTasks() {
			if k.GetName() != task {
				continue
			}
			for _, c := range append(g.GetUnjudgedConstraints(), k.GetDetail().GetUnjudgedConstraints()...) {
				unjudged = unjudged || c == apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_VOLUMES
			}
			set := g.GetNodeSet()
			if own := k.GetDetail().GetNodeSet(); own != "" {
				set = own
			}
			for _, n := range s.GetNodeSets() {
				if n.GetName() == set {
					for _, at := range n.GetNodes() {
						nodes = append(nodes, s.GetNodes()[at].GetName())
					}
					return nodes, set, unjudged
				}
			}
			for _, n := range s.GetNodes() {
				nodes = append(nodes, n.GetName())
			}
			return nodes, "", unjudged
		}
	}
	require.Fail(t, "no such task")
	return nil, "", false
}
