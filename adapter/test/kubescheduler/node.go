package kubescheduler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const gpu corev1.ResourceName = "nvidia.com/gpu"

// node makes a node with labels, taints and room.
func (g *generator) node(i int) {
	name := fmt.Sprintf("node-%02d", i)
	n := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{rankLabel: fmt.Sprint(g.IntN(6))}},
	}
	if g.chance(95) {
		n.Labels[corev1.LabelHostname] = name
	}
	if g.chance(90) {
		n.Labels[corev1.LabelTopologyZone] = one(g, zones...)
	}
	if g.chance(75) {
		n.Labels[diskLabel] = one(g, disks...)
	}
	for _, taint := range []corev1.Taint{
		{Key: "dedicated", Value: one(g, "ml", "web"), Effect: corev1.TaintEffectNoSchedule},
		{Key: "repair", Effect: corev1.TaintEffectNoExecute},
		{Key: "old", Value: "true", Effect: corev1.TaintEffectPreferNoSchedule},
	} {
		if g.chance(10) {
			n.Spec.Taints = append(n.Spec.Taints, taint)
		}
	}
	if g.chance(8) {
		n.Spec.Unschedulable = true
		if g.chance(70) { // The node's controller adds the taint some time later.
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	a := amounts{cpu: 1000 * one(g, 4, 8, 16), memory: one(g, 16, 32, 64), gpu: one(g, 0, 0, 2, 4), pods: 110}
	if g.chance(15) {
		a.pods = 1 + g.IntN(4)
	}
	n.Status.Allocatable = quantities(a)
	n.Status.Allocatable[corev1.ResourcePods] = *resource.NewQuantity(int64(a.pods), resource.DecimalSI)
	n.Status.Allocatable[corev1.ResourceEphemeralStorage] = resource.MustParse(one(g, "10Gi", "100Gi"))
	n.Status.Capacity = n.Status.Allocatable
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	g.Nodes, g.free = append(g.Nodes, n), append(g.free, a)
}

// quantities returns the amounts that are not zero, without pods.
func quantities(a amounts) corev1.ResourceList {
	list := corev1.ResourceList{}
	if a.cpu > 0 {
		list[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(a.cpu), resource.DecimalSI)
	}
	if a.memory > 0 {
		list[corev1.ResourceMemory] = *resource.NewQuantity(int64(a.memory)<<30, resource.BinarySI)
	}
	if a.gpu > 0 {
		list[gpu] = *resource.NewQuantity(int64(a.gpu), resource.DecimalSI)
	}
	return list
}

// request sets what a container asks for.
func request(c *corev1.Container, a amounts) {
	if c.Resources.Requests = quantities(a); a.gpu > 0 {
		c.Resources.Limits = corev1.ResourceList{gpu: c.Resources.Requests[gpu]}
	}
}

// requests sets what a waiting pod asks for: mostly little, sometimes more than nodes have left, or have at all.
func (g *generator) requests(p *corev1.Pod) {
	request(&p.Spec.Containers[0], amounts{
		cpu: one(g, 0, 100, 500, 500, 1000, 1000, 2000, 6000), memory: one(g, 0, 1, 1, 1, 2, 2, 4, 20),
	})
	if g.chance(12) {
		request(&p.Spec.Containers[0], amounts{cpu: 500, gpu: 1 + g.IntN(3)})
	}
	always := corev1.ContainerRestartPolicyAlways
	switch g.IntN(40) {
	case 0: // The largest init container counts.
		p.Spec.InitContainers = []corev1.Container{container("prepare")}
		request(&p.Spec.InitContainers[0], amounts{cpu: one(g, 1000, 4000, 9000), memory: 1})
	case 1: // A sidecar counts beside the containers, and beside the init containers after it.
		p.Spec.InitContainers = []corev1.Container{container("sidecar"), container("prepare")}
		p.Spec.InitContainers[0].RestartPolicy = &always
		request(&p.Spec.InitContainers[0], amounts{cpu: 1500, memory: 2})
		request(&p.Spec.InitContainers[1], amounts{cpu: one(g, 1000, 4000), memory: 1})
	case 2:
		p.Spec.Containers = append(p.Spec.Containers, container("other"))
		request(&p.Spec.Containers[1], amounts{cpu: 1000, memory: 1})
	case 3: // Requests at the level of the pod replace the sum.
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: quantities(amounts{cpu: 13000, memory: 20})}
		if g.chance(70) {
			p.Spec.Resources.Requests = quantities(amounts{cpu: 4000, memory: 6})
			request(&p.Spec.Containers[0], amounts{cpu: 100, memory: 1})
		}
	case 4:
		c := &p.Spec.Containers[0]
		c.Resources.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse("20Gi")
	}
}

// tolerations lets a waiting pod use nodes with taints.
func (g *generator) tolerations(p *corev1.Pod) {
	all := []corev1.Toleration{
		{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "ml", Effect: corev1.TaintEffectNoSchedule},
		{Key: "dedicated", Operator: corev1.TolerationOpExists},
		{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "web", Effect: corev1.TaintEffectNoExecute},
		{Key: "repair", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		{Key: "repair", Operator: corev1.TolerationOpEqual},
		{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	}
	p.Spec.Tolerations = some(g, all...)
	if g.chance(5) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
}
