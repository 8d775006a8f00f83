package kubescheduler

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// shape is what the nodes of a pod depend on, as far as it is given to Apportion: selector, required affinity to nodes, tolerations.
type shape struct {
	Selector    map[string]string    `json:"s,omitempty"`
	Affinity    *corev1.NodeSelector `json:"a,omitempty"`
	Tolerations []corev1.Toleration  `json:"t,omitempty"`
}

func shapeOf(p *corev1.Pod) string {
	s := shape{Selector: p.Spec.NodeSelector, Tolerations: p.Spec.Tolerations}
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		s.Affinity = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	encoded, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	return string(encoded)
}

// fits returns which nodes a shape may use.
func (s *shape) fits() func(*corev1.Node) bool {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: s.Selector, Tolerations: s.Tolerations}}
	if s.Affinity != nil {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: s.Affinity}}
	}
	required := nodeaffinity.GetRequiredNodeAffinity(p)
	return func(n *corev1.Node) bool {
		matches, err := required.Match(n)
		if err != nil || !matches {
			return false
		}
		_, tainted := schedulinghelper.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, s.Tolerations, keepsOut, false)
		return !tainted
	}
}

// toleratesCordon reports whether pods of the shape also use cordoned nodes, as the filter NodeUnschedulable of Kubernetes' scheduler
// judges.
func (s *shape) toleratesCordon() bool {
	cordoned := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	return schedulinghelper.TolerationsTolerateTaint(klog.Background(), s.Tolerations, &cordoned, false)
}

func keepsOut(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// unjudged lists the constraints of a pod that its plan does not consider; the scheduler's own plugins do.
func unjudged(p *corev1.Pod) (list []apportionv1.PlacementConstraint) {
	a := p.Spec.Affinity
	if a != nil && (a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0) {
		list = append(list, apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_POD_AFFINITY)
	}
	if slices.ContainsFunc(p.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.DoNotSchedule
	}) {
		list = append(list, apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_TOPOLOGY_SPREAD)
	}
	if slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil }) {
		list = append(list, apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_VOLUMES)
	}
	if len(p.Spec.ResourceClaims) > 0 {
		list = append(list, apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_RESOURCE_CLAIMS)
	}
	return list
}

// nodeSets keeps the node sets of a mirror. A set is named by a shape, or by a job that leaves nodes out.
type nodeSets struct {
	mirror *client.Mirror
	// whole are the shapes that may use all nodes.
	whole map[string]bool
	known map[string]bool
	// less are the sets of jobs that leave nodes out.
	less map[string]map[string]bool
}

func newNodeSets(mirror *client.Mirror) *nodeSets {
	return &nodeSets{mirror: mirror, whole: map[string]bool{}, known: map[string]bool{}, less: map[string]map[string]bool{}}
}

// again computes all sets after nodes have changed.
func (s *nodeSets) again(nodes map[string]*node) error {
	s.whole = map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.known)) {
		if _, err := s.set(nodes, name, "", nil); err != nil {
			return err
		}
	}
	return nil
}

// set returns the name of the node set of a shape, less the nodes that a job was refused; "" for all nodes.
func (s *nodeSets) set(nodes map[string]*node, of, job string, refused map[string]time.Time) (string, error) {
	if len(refused) == 0 {
		if s.whole[of] {
			return "", nil
		}
		if s.known[of] && job != "" {
			return of, nil
		}
	}
	var parsed shape
	if err := json.Unmarshal([]byte(of), &parsed); err != nil {
		return "", err
	}
	tolerates := parsed.toleratesCordon()
	fits, names, all := parsed.fits(), []string{}, !tolerates
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name]
		if n.object == nil {
			continue
		}
		if _, out := refused[name]; !out && fits(n.object) {
			names = append(names, name)
		} else {
			all = false
		}
	}
	if all && !s.known[of] {
		s.whole[of] = true
		return "", nil
	}
	set := client.NodeSet{Name: of, Nodes: names, Rule: of, ToleratesCordon: tolerates}
	if len(refused) > 0 {
		set.Name, set.Rule = "less "+job+" "+of, "nodes that the scheduler did not just refuse"
		if s.less[job] == nil {
			s.less[job] = map[string]bool{}
		}
		s.less[job][set.Name] = true
	} else {
		s.known[of] = true
	}
	return set.Name, s.mirror.SetNodeSet(set)
}

// drop removes the sets of a job that leave nodes out, unless it still uses them.
func (s *nodeSets) drop(job string, used bool) error {
	if used {
		return nil
	}
	for name := range s.less[job] {
		if err := s.mirror.RemoveNodeSet(name); err != nil {
			return err
		}
	}
	delete(s.less, job)
	return nil
}

func sameNode(a, b *corev1.Node) bool {
	return !shapeChanged(a, b) && a.Spec.Unschedulable == b.Spec.Unschedulable &&
		equality.Semantic.DeepEqual(a.Status.Allocatable, b.Status.Allocatable)
}

func shapeChanged(a, b *corev1.Node) bool {
	return !maps.Equal(a.Labels, b.Labels) || !equality.Semantic.DeepEqual(a.Spec.Taints, b.Spec.Taints)
}
