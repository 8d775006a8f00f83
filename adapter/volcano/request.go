package volcano

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/apportion/apportion/adapter/objects"
)

// requests holds each request once: pods with equal requests share it, so that comparing pointers is enough.
type requests struct {
	byKey  map[string]*amounts
	buffer []byte
}

// share returns the first request that was equal to a.
func (q *requests) share(a *amounts) *amounts {
	q.buffer = a.key(q.buffer[:0])
	if known, ok := q.byKey[string(q.buffer)]; ok {
		return known
	}
	if q.byKey == nil {
		q.byKey = make(map[string]*amounts)
	}
	q.byKey[string(q.buffer)] = a
	return a
}

// podRequest returns what a pod needs on its node: the maximum of the sum of its containers and sidecars, and of each init container with
// the sidecars started before it. Requests at pod level replace this maximum, and the overhead is added. The pod itself counts as one of
// `pods`.
//
// Kubernetes' own PodRequests (k8s.io/component-helpers/resource) adds quantities exactly and leaves the rounding to its caller. Volcano
// rounds each container's quantity before it adds, so two containers of 1500m bytes need 4, not 3; hence the sums here.
func (r *reader) podRequest(spec, status *objects.Value) *amounts {
	infeasible := resizeInfeasible(status.Field("conditions"))
	total := &amounts{}
	running := statusesByName(status.Field("containerStatuses"))
	for _, container := range r.listAt(spec.Field("containers")) {
		total.plus(r.containerRequest(container, running, infeasible))
	}
	sidecars, peak := &amounts{}, &amounts{}
	running = statusesByName(status.Field("initContainerStatuses"))
	for _, container := range r.listAt(spec.Field("initContainers")) {
		if container.TextOf("restartPolicy") == string(corev1.ContainerRestartPolicyAlways) {
			request := r.containerRequest(container, running, infeasible)
			total.plus(request)
			sidecars.plus(request)
			peak.raise(sidecars)
			continue
		}
		step := &amounts{}
		step.plus(r.containerRequest(container, nil, infeasible))
		step.plus(sidecars)
		peak.raise(step)
	}
	total.raise(peak)
	pods, _ := r.units.of(string(corev1.ResourcePods))
	total.add(pods.name, 1)
	r.overridePod(total, spec.Field("resources").Field("requests"))
	total.plus(r.resourcesAt(spec.Field("overhead")))
	return total
}

// listAt returns the elements of a list.
func (r *reader) listAt(v *objects.Value) []*objects.Value {
	if !r.Is(v, objects.List) {
		return nil
	}
	return v.Items
}

// containerRequest returns a container's request, or, while it is resized in place, the maximum of its requested, actual and allocated
// resources. nil: nothing.
func (r *reader) containerRequest(container *objects.Value, running map[string]*objects.Value, infeasible bool) *amounts {
	asked := r.resourcesAt(container.Field("resources").Field("requests"))
	state, ok := running[container.TextOf(objects.NameField)]
	if !ok {
		return asked
	}
	most := &amounts{}
	if !infeasible {
		most.raise(asked)
	}
	most.raise(r.resourcesAt(state.Field("resources").Field("requests")))
	most.raise(r.resourcesAt(state.Field("allocatedResources")))
	return most
}

// statusesByName returns the containers' statuses that contain resources.
func statusesByName(statuses *objects.Value) map[string]*objects.Value {
	if statuses == nil {
		return nil
	}
	var byName map[string]*objects.Value
	for _, state := range statuses.Items {
		if state.Field("resources") == nil {
			continue
		}
		if byName == nil {
			byName = make(map[string]*objects.Value, len(statuses.Items))
		}
		byName[state.TextOf(objects.NameField)] = state
	}
	return byName
}

// resizeInfeasible reports whether the node has refused the pod's resize.
func resizeInfeasible(conditions *objects.Value) bool {
	if conditions == nil {
		return false
	}
	for _, condition := range conditions.Items {
		if condition.TextOf("type") == string(corev1.PodResizePending) {
			return condition.TextOf("reason") == corev1.PodReasonInfeasible
		}
	}
	return false
}

// overridePod replaces the containers' requests by those at pod level, which can be cpu, memory and huge pages.
func (r *reader) overridePod(total *amounts, v *objects.Value) {
	if v == nil || v.Type != objects.Map {
		return
	}
	written := r.resourcesAt(v)
	for _, e := range written.entries {
		name := e.name.Value()
		if name == string(corev1.ResourceCPU) || name == string(corev1.ResourceMemory) ||
			strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) {
			place, _ := total.at(e.name)
			place.amount = e.amount
		}
	}
}
