package kubescheduler

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha1 "k8s.io/api/scheduling/v1alpha1"
)

// The labels of the project scheduler-plugins that make a gang: the first two name it, minimumLabel has the number of pods that start
// together where no PodGroup says it.
const (
	groupLabel    = "scheduling.x-k8s.io/pod-group"
	oldGroupLabel = "pod-group.scheduling.sigs.k8s.io/name"
	minimumLabel  = "pod-group.scheduling.sigs.k8s.io/min-available"
)

// gangOf returns the name and the id of the gang of a pod, and the id of what defines its minimum; "" for none.
func gangOf(p *corev1.Pod) (name, id, definition string) {
	if ref := p.Spec.WorkloadRef; ref != nil {
		name = ref.Name + "/" + ref.PodGroup
		if ref.PodGroupReplicaKey != "" {
			name += "/" + ref.PodGroupReplicaKey
		}
		definition = workloadID(p.Namespace, ref.Name, ref.PodGroup)
		return name, definition + "/" + ref.PodGroupReplicaKey, definition
	}
	for _, label := range []string{groupLabel, oldGroupLabel} {
		if name := p.Labels[label]; name != "" {
			return name, groupID(p.Namespace, name), groupID(p.Namespace, name)
		}
	}
	return "", "", ""
}

func workloadID(namespace, workload, group string) string {
	return "workload/" + namespace + "/" + workload + "/" + group
}

func groupID(namespace, name string) string { return "group/" + namespace + "/" + name }

// minimumOf returns the minimum that the label of a pod has.
func minimumOf(p *corev1.Pod) (int, bool) {
	least, err := strconv.Atoi(p.Labels[minimumLabel])
	return least, err == nil && least > 0
}

// minimumsOf returns the minimum of each group of a Workload: 1 for a group that is no gang.
func minimumsOf(w *schedulingv1alpha1.Workload) map[string]int {
	least := map[string]int{}
	for i := range w.Spec.PodGroups {
		group := &w.Spec.PodGroups[i]
		least[group.Name] = 1
		if gang := group.Policy.Gang; gang != nil {
			least[group.Name] = int(gang.MinCount)
		}
	}
	return least
}
