package kueue

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// podSpec has the fields of a pod that are read. Quantities are texts: Kubernetes' own type computes 1e999999999 while it is decoded.
type podSpec struct {
	InitContainers []container               `json:"initContainers"`
	Containers     []container               `json:"containers"`
	Resources      *requirements             `json:"resources"`
	Overhead       map[string]quantity       `json:"overhead"`
	NodeSelector   map[string]string         `json:"nodeSelector"`
	Tolerations    []corev1.Toleration       `json:"tolerations"`
	Affinity       *corev1.Affinity          `json:"affinity"`
	ResourceClaims []corev1.PodResourceClaim `json:"resourceClaims"`
}

type container struct {
	RestartPolicy *corev1.ContainerRestartPolicy `json:"restartPolicy"`
	Resources     requirements                   `json:"resources"`
}

type requirements struct {
	Requests map[string]quantity `json:"requests"`
	Limits   map[string]quantity `json:"limits"`
}

// podSpec returns what is read of a pod in the types of Kubernetes. path ends with a dot.
func (r *reader) podSpec(p *podSpec, path string) corev1.PodSpec {
	out := corev1.PodSpec{
		InitContainers: r.containers(p.InitContainers, path+"initContainers"), Containers: r.containers(p.Containers, path+"containers"),
		Overhead: r.resources(p.Overhead, path+"overhead."), NodeSelector: p.NodeSelector, Tolerations: p.Tolerations, Affinity: p.Affinity,
		ResourceClaims: p.ResourceClaims,
	}
	if p.Resources != nil {
		out.Resources = new(r.requirements(p.Resources, path+"resources."))
	}
	return out
}

func (r *reader) containers(list []container, path string) []corev1.Container {
	out := make([]corev1.Container, len(list))
	for i := range list {
		out[i].RestartPolicy = list[i].RestartPolicy
		out[i].Resources = r.requirements(&list[i].Resources, fmt.Sprintf("%s[%d].resources.", path, i))
	}
	return out
}

func (r *reader) requirements(q *requirements, path string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: r.resources(q.Requests, path+"requests."), Limits: r.resources(q.Limits, path+"limits.")}
}

// resources returns quantities by the names of their resources.
func (r *reader) resources(list map[string]quantity, path string) corev1.ResourceList {
	if list == nil {
		return nil
	}
	out := make(corev1.ResourceList, len(list))
	for _, name := range sortedKeys(list) {
		if parsed, ok := r.parse(list[name], path+name); ok {
			out[corev1.ResourceName(name)] = parsed
		}
	}
	return out
}
