package volcano

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// racks are four nodes: two with H100s, of which one is tainted; one cordoned; one not ready.
const racks = aQueue + aPodGroup + `
---
{kind: Node, metadata: {name: a, labels: {gpu: h100, zone: "1"}}}
---
{kind: Node, metadata: {name: b, labels: {gpu: h100, zone: "2"}}, spec: {taints: [{key: dedicated, value: vision, effect: NoSchedule}]}}
---
{kind: Node, metadata: {name: c, labels: {zone: "1"}}, spec: {unschedulable: true, taints: [
  {key: node.kubernetes.io/unschedulable, effect: NoSchedule}, {key: soft, effect: PreferNoSchedule}]}}
---
{kind: Node, metadata: {name: d, labels: {zone: "2"}}, spec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoExecute}]},
  status: {conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown, message: Kubelet stopped posting node status.}]}}
`

func onRacks(t *testing.T, pods ...string) *apportionv1.Snapshot {
	t.Helper()
	text := racks
	for i, spec := range pods {
		text += fmt.Sprintf("---\n{kind: Pod, metadata: {name: p%d, namespace: ns, %s}, spec: {%s}}\n", i, labelled, spec)
	}
	return read(t, text).Snapshot
}

func TestNodesThatTakeNoTasksSayWhy(t *testing.T) {
	nodes := onRacks(t).Nodes
	require.Nil(t, nodes[0].Unschedulable)
	require.Nil(t, nodes[1].Unschedulable)
	requireMessage(t, `{"cause": "UNSCHEDULABLE_CAUSE_CORDONED"}`, nodes[2].Unschedulable)
	requireMessage(t, `{"cause": "UNSCHEDULABLE_CAUSE_NOT_READY",
		"detail": "NodeStatusUnknown: Kubelet stopped posting node status."}`, nodes[3].Unschedulable)
}

func TestAPodThatToleratesACordonUsesCordonedNodes(t *testing.T) {
	const own, every = `tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists}]`, `tolerations: [{operator: Exists}]`
	s := onRacks(t, own, every, `tolerations: [{key: dedicated, operator: Exists}]`)
	m, err := decode.Compile(s)
	require.NoError(t, err)
	open, err := engine.Open(m, engine.Policy{}, nil)
	require.NoError(t, err)
	for task, nodes := range [][]string{{"a", "c"}, {"a", "b", "c"}, {"a", "b"}} {
		for _, n := range open.View().NodeOrder {
			name := open.View().Nodes[n].Name
			require.Equal(t, slices.Contains(nodes, name), open.Nodes().Fits(model.TaskID(task), n, nil), "task %d on node %s", task, name)
		}
	}
	require.Equal(t, "no toleration of taint dedicated=vision:NoSchedule; cordoned nodes are tolerated", s.NodeSets[0].Name)
	require.Equal(t, "cordoned nodes are tolerated", s.NodeSets[1].Name)

	both := read(t, `{kind: Node, metadata: {name: n}, spec: {unschedulable: true}, status: {conditions: [{type: Ready, status: "False"}]}}`)
	require.Equal(t, apportionv1.UnschedulableCause_UNSCHEDULABLE_CAUSE_NOT_READY, both.Snapshot.Nodes[0].GetUnschedulable().GetCause(),
		"a node that is cordoned and not ready runs nothing once it is uncordoned")
}

func TestAPodMayUseTheNodesThatItsSelectorAffinityAndTolerationsLeave(t *testing.T) {
	const tolerant = `tolerations: [{key: dedicated, operator: Exists}]`
	for name, c := range map[string]struct {
		spec, rule string
		nodes      []uint32
	}{
		"a taint that is not tolerated": {rule: "no toleration of taint dedicated=vision:NoSchedule", nodes: []uint32{0, 2, 3}},
		"a taint that is tolerated":     {spec: `tolerations: [{key: dedicated, operator: Exists}, {key: soft, operator: Exists}]`},
		"a taint that would rather have no pods": {
			spec: tolerant, rule: "all nodes, some of them preferred", nodes: []uint32{0, 1, 2, 3},
		},
		"a node selector": {
			spec: tolerant + `, nodeSelector: {gpu: h100}`, rule: "node selector gpu=h100", nodes: []uint32{0, 1},
		},
		"a node selector that matches no node": {
			spec: tolerant + `, nodeSelector: {gpu: b200, zone: "1"}`, rule: "node selector gpu=b200,zone=1",
		},
		"a required affinity": {
			spec: tolerant + `, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
				{matchExpressions: [{key: zone, operator: In, values: ["2", "3"]}, {key: gpu, operator: Exists}]},
				{matchFields: [{key: metadata.name, operator: In, values: [c]}]}]}}}`,
			rule: "node affinity zone In [2, 3] and gpu Exists or metadata.name In [c]", nodes: []uint32{1, 2},
		},
		"a required affinity with an empty term": {
			spec: tolerant + `, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}]}}}`,
			rule: "node affinity of an empty term, which matches no node",
		},
		"a preferred affinity restricts nothing": {
			rule: "all nodes, some of them preferred", nodes: []uint32{0, 1, 2, 3},
			spec: tolerant + `, affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
				{weight: 1, preference: {matchExpressions: [{key: zone, operator: In, values: ["2"]}]}}]}}`,
		},
		"a selector and a taint": {
			spec: `nodeSelector: {gpu: h100}`, rule: "node selector gpu=h100; no toleration of taint dedicated=vision:NoSchedule",
			nodes: []uint32{0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := onRacks(t, c.spec)
			group := s.Jobs[0].Groups[0]
			require.Nil(t, group.Tasks[0].Detail)
			require.Equal(t, c.rule, group.NodeSet)
			if c.rule == "" {
				require.Empty(t, s.NodeSets)
				return
			}
			require.Len(t, s.NodeSets, 1)
			require.Equal(t, c.rule, s.NodeSets[0].Name)
			require.Equal(t, c.nodes, s.NodeSets[0].Nodes)
		})
	}
}

func TestEqualSetsAreNamedOnceAndATaskNamesItsOwn(t *testing.T) {
	const h100, zone = `nodeSelector: {gpu: h100}`, `nodeSelector: {zone: "1"}`
	s := onRacks(t, h100, zone, h100)
	require.Len(t, s.NodeSets, 2)
	group := s.Jobs[0].Groups[0]
	require.Equal(t, s.NodeSets[0].Name, group.NodeSet)
	require.Nil(t, group.Tasks[0].Detail)
	require.Equal(t, s.NodeSets[1].Name, group.Tasks[1].Detail.NodeSet)

	t.Run("a task that may use every node leaves the group without a set", func(t *testing.T) {
		group := onRacks(t, h100, h100, `tolerations: [{key: dedicated, operator: Exists}, {key: soft, operator: Exists}]`).Jobs[0].Groups[0]
		require.Empty(t, group.NodeSet)
		require.NotEmpty(t, group.Tasks[0].Detail.NodeSet)
		require.Nil(t, group.Tasks[2].Detail)
	})
}

func TestOfEachExcludedNodeTheFirstReasonIsNamedThatKubernetesFinds(t *testing.T) {
	set := onRacks(t, `nodeSelector: {gpu: h100, zone: "1"}`).NodeSets[0]
	require.Equal(t, []uint32{0}, set.GetNodes())
	require.Len(t, set.GetExclusions(), 2)
	most, other := set.GetExclusions()[0], set.GetExclusions()[1]
	require.Equal(t, "node selector gpu=h100,zone=1", most.GetRule())
	require.Empty(t, most.GetNodes(), "all other nodes")
	require.Equal(t, "taint dedicated", other.GetRule(), "although the node has another zone, too")
	require.Equal(t, []uint32{1}, other.GetNodes())
}

func TestConstraintsThatAreNotJudgedAreNamed(t *testing.T) {
	for spec, want := range map[string][]apportionConstraint{
		`volumes: [{name: v, persistentVolumeClaim: {claimName: x}}]`:                                                                                    {constraintVolumes},
		`volumes: [{name: v, emptyDir: {}}]`:                                                                                                             nil,
		`containers: [{ports: [{hostPort: 80}]}]`:                                                                                                        nil,
		`containers: [{ports: [{containerPort: 80}]}]`:                                                                                                   nil,
		`affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}]}}`:                                           nil,
		`affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {}}]}}`:                                               {constraintPodAffinity},
		`affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, namespaceSelector: {matchLabels: {a: b}}}]}}`: {constraintPodAffinity},
		`topologySpreadConstraints: [{whenUnsatisfiable: DoNotSchedule, topologyKey: zone, maxSkew: 1}]`:                                                 nil,
		`topologySpreadConstraints: [{whenUnsatisfiable: DoNotSchedule}, {whenUnsatisfiable: ScheduleAnyway}]`:                                           {constraintTopologySpread},
		`topologySpreadConstraints: [{whenUnsatisfiable: ScheduleAnyway}]`:                                                                               nil,
		`resourceClaims: [{name: gpu}]`:                                                                                                                  {constraintResourceClaims},
	} {
		t.Run(spec, func(t *testing.T) {
			require.Equal(t, want, onRacks(t, spec).Jobs[0].Groups[0].UnjudgedConstraints)
		})
	}
	t.Run("what only one task has stands at that task", func(t *testing.T) {
		group := onRacks(t, `resourceClaims: [{name: gpu}]`, ``).Jobs[0].Groups[0]
		require.Empty(t, group.UnjudgedConstraints)
		require.Equal(t, []apportionConstraint{constraintResourceClaims}, group.Tasks[0].Detail.UnjudgedConstraints)
	})
	t.Run("a hard network topology holds for every group", func(t *testing.T) {
		s := read(t, strings.Replace(racks, "spec: {queue: q}", "spec: {queue: q, minTaskMember: {worker: 1}, networkTopology: {mode: hard}}", 1)).Snapshot
		require.Equal(t, []apportionConstraint{constraintNetworkTopology}, s.Jobs[0].Groups[0].UnjudgedConstraints)
	})
}

func TestWhatTheSchedulerReportedIsQuoted(t *testing.T) {
	long := strings.Repeat("ä", 2000)
	s := read(t, aQueue+`
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: j, namespace: ns}, spec: {queue: q}, status: {conditions: [
  {type: Unschedulable, status: "True", reason: NotEnoughResources, message: 1/1 tasks in gang unschedulable}]}}
---
{kind: Pod, metadata: {name: p, namespace: ns, `+inGroup+`}, status: {phase: Pending, conditions: [
  {type: PodScheduled, status: "False", reason: Unschedulable, message: 0/4 nodes are available}]}}
---
{kind: Pod, metadata: {name: q, namespace: ns, `+inGroup+`}, status: {phase: Pending, conditions: [
  {type: PodScheduled, status: "False", message: `+long+`}]}}
---
{kind: Pod, metadata: {name: r, namespace: ns, `+labelled+`}, status: {phase: Running, conditions: [{type: PodScheduled, status: "True"}]}}
`).Snapshot
	require.Equal(t, "NotEnoughResources: 1/1 tasks in gang unschedulable", s.Jobs[0].Condition)
	tasks := s.Jobs[0].Groups[0].Tasks
	require.Equal(t, "Unschedulable: 0/4 nodes are available", tasks[0].Detail.Condition)
	require.LessOrEqual(t, len(tasks[1].Detail.Condition), 1000)
	require.True(t, strings.HasPrefix(long, strings.TrimSuffix(tasks[1].Detail.Condition, "…")))
	require.Nil(t, tasks[2].Detail)
}

func TestAnAffinityThatKubernetesDoesNotReadIsAProblem(t *testing.T) {
	for _, spec := range []string{
		`nodeSelector: [a]`, `tolerations: {a: b}`,
		`affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Near}]}]}}}`,
	} {
		_, err := ReadManifests([]objects.Source{{Name: "x", Data: []byte(racks + "---\n{kind: Pod, metadata: {name: p, namespace: ns, " + inGroup + "}, spec: {" + spec + "}}\n")}})
		require.Error(t, err, spec)
	}
}

// TestNodeSetsAreWhatKubernetesSays compares node sets of random pods on random nodes with Kubernetes' own code, pod by pod and node by node.
func TestNodeSetsAreWhatKubernetesSays(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		nodes, pods := randomNodes(random), randomPods(random)
		var objects []json.RawMessage
		for _, text := range []string{
			`{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"q"},"spec":{"weight":1},"status":{"state":"Open"}}`,
			`{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"j","namespace":"ns"},"spec":{"queue":"q"}}`,
		} {
			objects = append(objects, json.RawMessage(text))
		}
		for _, n := range nodes {
			objects = append(objects, encoded(t, n))
		}
		for _, p := range pods {
			objects = append(objects, encoded(t, p))
		}
		cluster, err := FromObjects(objects)
		require.NoError(t, err)
		s := cluster.Snapshot
		group := s.Jobs[0].Groups[0]
		for i, p := range pods {
			name := group.NodeSet
			if own := group.Tasks[i].GetDetail().GetNodeSet(); own != "" {
				name = own
			}
			for k, n := range nodes {
				match, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n)
				require.NoError(t, err)
				_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Logger{}, n.Spec.Taints, p.Spec.Tolerations, func(taint *corev1.Taint) bool {
					return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
				}, false)
				require.Equal(t, match && !untolerated, inSet(s, name, uint32(k)), "seed %d, pod %d, node %d: %s", seed, i, k, name)
			}
		}
	}
}

func inSet(s *apportionv1.Snapshot, name string, node uint32) bool {
	if name == "" {
		return true
	}
	for _, set := range s.NodeSets {
		for _, n := range set.Nodes {
			if set.Name == name && n == node {
				return true
			}
		}
	}
	return false
}

func encoded(t *testing.T, object any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(object)
	require.NoError(t, err)
	return data
}

func randomNodes(random *rand.Rand) []*corev1.Node {
	nodes := make([]*corev1.Node, 5)
	for i := range nodes {
		nodes[i] = &corev1.Node{
			TypeMeta:   metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{"zone": fmt.Sprint(random.IntN(3))}},
		}
		if random.IntN(2) == 0 {
			nodes[i].Labels["gpu"] = fmt.Sprint(random.IntN(4))
		}
		for range random.IntN(3) {
			nodes[i].Spec.Taints = append(nodes[i].Spec.Taints, corev1.Taint{
				Key: fmt.Sprint("t", random.IntN(2)), Value: fmt.Sprint(random.IntN(2)),
				Effect: []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule}[random.IntN(3)],
			})
		}
	}
	return nodes
}

func randomPods(random *rand.Rand) []*corev1.Pod {
	pods := make([]*corev1.Pod, 6)
	for i := range pods {
		p := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("p", i), Namespace: "ns", Annotations: map[string]string{groupNameAnnotation: "j"},
		}}
		if random.IntN(2) == 0 {
			p.Spec.NodeSelector = map[string]string{"zone": fmt.Sprint(random.IntN(3))}
		}
		if random.IntN(2) == 0 {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{
				Key: fmt.Sprint("t", random.IntN(2)), Operator: corev1.TolerationOpEqual, Value: fmt.Sprint(random.IntN(2)),
			}, corev1.Toleration{Key: fmt.Sprint("t", random.IntN(2)), Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
		}
		if random.IntN(2) == 0 {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: randomSelector(random)}}
		}
		pods[i] = p
	}
	return pods
}

func randomSelector(random *rand.Rand) *corev1.NodeSelector {
	selector := &corev1.NodeSelector{}
	for range 1 + random.IntN(2) {
		term := corev1.NodeSelectorTerm{}
		for range random.IntN(3) {
			r := corev1.NodeSelectorRequirement{Key: []string{"zone", "gpu"}[random.IntN(2)]}
			switch random.IntN(4) {
			case 0:
				r.Operator, r.Values = corev1.NodeSelectorOpIn, []string{"0", fmt.Sprint(random.IntN(3))}
			case 1:
				r.Operator, r.Values = corev1.NodeSelectorOpNotIn, []string{fmt.Sprint(random.IntN(3))}
			case 2:
				r.Operator = corev1.NodeSelectorOpExists
			default:
				r.Operator, r.Values = corev1.NodeSelectorOpGt, []string{"1"}
			}
			term.MatchExpressions = append(term.MatchExpressions, r)
		}
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, term)
	}
	return selector
}

func TestARemedyForConstraintsNamesThePodsAndRolesThatItChanges(t *testing.T) {
	const pod = "---\n{kind: Pod, metadata: {name: %s, namespace: ns, annotations: {scheduling.k8s.io/group-name: j, volcano.sh/task-spec: %s}}, spec: {%s}}\n"
	pods := ""
	for _, p := range [][3]string{
		{"master-0", "master", `nodeSelector: {gpu: h100, zone: "3"}`},
		{"w-0", "worker", ""},
		{"w-1", "worker", ""},
		{"w-2", "worker", ""},
		{"w-3", "worker", ""},
		{"w-4", "worker", ""},
	} {
		pods += fmt.Sprintf(pod, p[0], p[1], p[2])
	}
	cluster := read(t, racks+pods)
	var why []string
	for _, patch := range cluster.constraints(0, []uint32{0, 1, 3}) {
		why = append(why, patch.Why)
	}
	require.Equal(t, []string{
		"Pod master-0 of role master: the taint dedicated=vision:NoSchedule of b is not tolerated; " +
			"the node selector gpu=h100 and zone=3 leaves out a, b and d. Existing pods cannot be changed so: the template that makes them " +
			"needs this; or label the nodes, if they are what is asked for.",
		"Pods w-0, w-1, w-2, w-3 and 1 more of role worker: the taint dedicated=vision:NoSchedule of b is not tolerated. " +
			"The template that makes the pods needs these tolerations too, for pods that it makes later.",
	}, why)
}
