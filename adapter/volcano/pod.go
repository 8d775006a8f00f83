package volcano

import (
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// pod is a Pod on its way into the snapshot, as a task or as usage of its node.
type pod struct {
	task *apportionv1.Task
	// group is the name of its PodGroup, in its own namespace. Empty: it has none.
	group, namespace string
	role             string
	node             string
	// terminated pods use nothing.
	terminated bool
	request    *amounts
	placed     placed
	run        run
	// priority is the one in its spec, which the API server fills in. nil: none.
	priority *int32
	// ranked: an annotation states the priority of the task.
	ranked bool
	// owner is the owner that the pod names.
	owner string
	// scheduler is the name of its scheduler. Empty: not given.
	scheduler string
	// policy: its preemption policy is stated, which its class does not change.
	policy bool
	// unstated is what its containers leave open.
	unstated unstatedCount
	// written is the pod's position in the input.
	written objects.Origin
}

// podShape is what is read of a Pod.
var podShape = objects.Annotated(objects.Select(
	"metadata.labels", "metadata.deletionTimestamp",
	"spec.containers.name", "spec.containers.restartPolicy", "spec.containers.resources.requests", "spec.containers.resources.limits",
	"spec.containers.ports.hostPort", "spec.containers.ports.protocol", "spec.containers.ports.hostIP",
	"spec.initContainers.name", "spec.initContainers.restartPolicy", "spec.initContainers.resources.requests",
	"spec.initContainers.resources.limits", "spec.preemptionPolicy", "status.nominatedNodeName",
	"spec.affinity.nodeAffinity."+preferredField+"*",
	"spec.initContainers.ports.hostPort", "spec.initContainers.ports.protocol", "spec.initContainers.ports.hostIP",
	"spec.overhead", "spec.nodeName", "spec.schedulerName", "spec.priority", "spec.priorityClassName", "spec.activeDeadlineSeconds",
	"spec.schedulingGates.name", "spec.resources.requests", "spec.nodeSelector", "spec.tolerations*", "spec.topologySpreadConstraints*",
	"spec.affinity.nodeAffinity."+requiredField+"*", "spec.affinity.podAffinity."+requiredField+"*",
	"spec.affinity.podAntiAffinity."+requiredField+"*",
	"spec.volumes?", "spec.volumes.name", "spec.volumes.persistentVolumeClaim", "spec.volumes.ephemeral", "spec.resourceClaims.name",
	"status.phase", "status.startTime", "status.conditions.type", "status.conditions.status", "status.conditions.reason",
	"status.conditions.message", "status.conditions.lastTransitionTime",
	"status.containerStatuses.name", "status.containerStatuses.allocatedResources", "status.containerStatuses.resources.requests",
	"status.initContainerStatuses.name", "status.initContainerStatuses.allocatedResources",
	"status.initContainerStatuses.resources.requests",
), groupNameAnnotation, taskRoleKey, preemptableKey, cooldownKey, taskPriorityAnnotation, OwnerKey, revocableZoneKey)

// pod reads a Pod.
func (r *reader) pod(m objects.Metadata, root *objects.Value) {
	spec, status := root.Field("spec"), root.Field("status")
	p := pod{
		group:     r.TextAt(m.Annotations.Field(groupNameAnnotation)),
		namespace: m.Namespace,
		role:      r.role(m),
		node:      r.TextAt(spec.Field("nodeName")),
		scheduler: r.TextAt(spec.Field("schedulerName")),
		owner:     r.owner(m),
		request:   r.requests.share(r.podRequest(spec, status)),
		placed: placed{
			placement: r.placement(spec), unjudged: r.unjudged(spec), traits: r.traitsOf(m, spec), claims: r.claims(m, spec),
		},
		policy:   spec.Field("preemptionPolicy") != nil,
		unstated: r.unstatedIn(spec),
		written:  objects.Origin{Doc: r.Doc, At: root.At},
	}
	phase := r.podPhase(status.Field("phase"))
	p.terminated = phase == corev1.PodSucceeded || phase == corev1.PodFailed
	if v := spec.Field("priority"); v != nil {
		priority := r.WholeAt(v)
		p.priority = &priority
	}
	p.task = &apportionv1.Task{
		Uid:        m.UID,
		Status:     taskStatus(phase, m.Value.Field("deletionTimestamp") != nil, p.node != ""),
		Priority:   r.taskPriority(m, &p),
		Name:       m.Name,
		CreateTime: m.Created,
		Index:      taskIndex(m.Name),
		Detail:     r.detail(m, spec, status, phase),
	}
	p.run = r.runOf(p.task.Status, spec, status)
	r.pods = append(r.pods, p)
}

// podPhase returns the phase of a pod, and warns of one that Kubernetes does not have.
func (r *reader) podPhase(v *objects.Value) corev1.PodPhase {
	phase := corev1.PodPhase(r.TextAt(v))
	switch phase {
	case "", corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown:
	default:
		r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v,
			"not a phase of a pod: %q; valid are Pending, Running, Succeeded, Failed and Unknown, as which it counts", string(phase))
	}
	return phase
}

// taskStatus returns the status of a pod. A pod without a phase has not reached an API server yet, and counts as pending.
func taskStatus(phase corev1.PodPhase, deleted, placed bool) apportionv1.TaskStatus {
	switch phase {
	case corev1.PodRunning:
		if deleted {
			return apportionv1.TaskStatus_TASK_STATUS_RELEASING
		}
		return apportionv1.TaskStatus_TASK_STATUS_RUNNING
	case corev1.PodPending, "":
		switch {
		case deleted:
			return apportionv1.TaskStatus_TASK_STATUS_RELEASING
		case placed:
			return apportionv1.TaskStatus_TASK_STATUS_BOUND
		}
		return apportionv1.TaskStatus_TASK_STATUS_PENDING
	case corev1.PodSucceeded:
		return apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED
	case corev1.PodFailed:
		return apportionv1.TaskStatus_TASK_STATUS_FAILED
	case corev1.PodUnknown:
	}
	return apportionv1.TaskStatus_TASK_STATUS_UNKNOWN
}

// role returns the pod's role in its job: the annotation, or the label if the annotation is empty.
func (r *reader) role(m objects.Metadata) string {
	if role := r.TextAt(m.Annotations.Field(taskRoleKey)); role != "" {
		return role
	}
	return r.TextAt(m.Labels.Field(taskRoleKey))
}

// taskPriority is the pod's own priority, which Volcano's annotation overrides. nil: it is 1, the default.
func (r *reader) taskPriority(m objects.Metadata, p *pod) *int32 {
	priority := int32(1)
	if p.priority != nil {
		priority = *p.priority
	}
	if written, err := strconv.ParseInt(r.TextAt(m.Annotations.Field(taskPriorityAnnotation)), 10, 32); err == nil {
		priority, p.ranked = int32(written), true
	}
	if priority == 1 {
		return nil
	}
	return &priority
}

// taskIndex is TaskIndex, nil for none.
func taskIndex(name string) *uint32 {
	index, ok := TaskIndex(name)
	if !ok {
		return nil
	}
	return &index
}

// detail returns the rarely used fields; nil if the pod has none of them.
func (r *reader) detail(m objects.Metadata, spec, status *objects.Value, phase corev1.PodPhase) *apportionv1.TaskDetail {
	var d apportionv1.TaskDetail
	some := false
	if written, ok := r.annotationOrLabel(m, preemptableKey); ok {
		if preemptable, err := strconv.ParseBool(written); err != nil || !preemptable {
			some, d.Preemptable = true, new(bool)
		}
	}
	if gate := r.gate(spec.Field("schedulingGates")); gate != apportionv1.TaskGate_TASK_GATE_UNSPECIFIED {
		some, d.Gate = true, gate
	}
	if class := r.TextAt(spec.Field("priorityClassName")); class != "" {
		some, d.PriorityClass = true, class
	}
	if condition := r.refusal(status, string(corev1.PodScheduled), string(corev1.ConditionFalse)); condition != "" {
		some, d.Condition = true, condition
	}
	if cooldown, ok := r.cooldown(m); ok {
		some, d.Cooldown = true, &cooldown
	}
	if phase == corev1.PodRunning && (d.Cooldown != nil || r.starts) || phase == corev1.PodPending && r.starts {
		if d.ScheduleTime = r.scheduleTime(status.Field("conditions")); d.ScheduleTime != nil {
			some = true
		}
	}
	if phase != corev1.PodSucceeded && phase != corev1.PodFailed {
		some = r.sessionDetail(&d, m, spec, status) || some
	}
	if !some {
		return nil
	}
	return &d
}

// neverPreempts is the preemption policy of pods for which no other pod is evicted.
const neverPreempts = string(corev1.PreemptNever)

// anyZone is the one revocable zone that pods may name: all of them.
const anyZone = "*"

// sessionDetail sets what only whole sessions read of a pod, and reports whether there is any.
func (r *reader) sessionDetail(d *apportionv1.TaskDetail, m objects.Metadata, spec, status *objects.Value) bool {
	if spec.Field("nodeName") == nil {
		d.NominatedNode = r.TextAt(status.Field("nominatedNodeName"))
	}
	d.NeverPreempts = r.TextAt(spec.Field("preemptionPolicy")) == neverPreempts
	zone := m.Annotations.Field(revocableZoneKey)
	if zone == nil {
		// Who may be preempted may use revocable nodes, unless the pod says otherwise. Its label does not count here.
		preemptable, err := strconv.ParseBool(r.TextAt(m.Annotations.Field(preemptableKey)))
		if preemptable && err == nil {
			d.RevocableZone = anyZone
		}
	} else if r.TextAt(zone) == anyZone {
		d.RevocableZone = anyZone
	}
	d.Unlabelled = m.Labels == nil || m.Labels.Type == objects.Map && len(m.Labels.Items) == 0
	return d.NominatedNode != "" || d.NeverPreempts || d.RevocableZone != "" || d.Unlabelled
}

// annotationOrLabel is the text under a key of the annotations, or else of the labels; present distinguishes an empty text from none.
func (r *reader) annotationOrLabel(m objects.Metadata, key string) (content string, present bool) {
	if v := m.Annotations.Field(key); v != nil {
		return r.TextAt(v), true
	}
	if v := m.Labels.Field(key); v != nil {
		return r.TextAt(v), true
	}
	return "", false
}

// gate returns whether scheduling gates hold the pod back, and whose.
func (r *reader) gate(gates *objects.Value) apportionv1.TaskGate {
	if !r.Is(gates, objects.List) || len(gates.Items) == 0 {
		return apportionv1.TaskGate_TASK_GATE_UNSPECIFIED
	}
	return Gate(len(gates.Items), r.TextAt(gates.Items[0].Field(objects.NameField)))
}

// cooldown is how long the pod is protected. The label takes precedence over the annotation even if it is not a duration; then the pod is
// not protected.
func (r *reader) cooldown(m objects.Metadata) (int64, bool) {
	v := m.Labels.Field(cooldownKey)
	if v == nil {
		v = m.Annotations.Field(cooldownKey)
	}
	if v == nil {
		return 0, false
	}
	duration, ok := Cooldown(r.TextAt(v))
	if !ok {
		r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v, "not a duration, so the pod is not protected%s", objects.Shown(v))
	}
	return duration, ok
}

// scheduleTime is when the condition PodScheduled became true; nil: it is not.
func (r *reader) scheduleTime(conditions *objects.Value) *int64 {
	if !r.Is(conditions, objects.List) {
		return nil
	}
	for _, condition := range conditions.Items {
		if condition.TextOf("type") != string(corev1.PodScheduled) || condition.TextOf("status") != string(corev1.ConditionTrue) {
			continue
		}
		since := condition.Field("lastTransitionTime")
		if since == nil {
			return nil
		}
		moment := r.MomentAt(since)
		return &moment
	}
	return nil
}

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
	asked := r.askedBy(container)
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

// askedBy returns what a container asks for: its limits stand for requests that it does not state, as the API server writes them.
func (r *reader) askedBy(container *objects.Value) *amounts {
	resources := container.Field("resources")
	asked, limits := r.resourcesAt(resources.Field("requests")), r.resourcesAt(resources.Field("limits"))
	if limits == nil || len(limits.entries) == 0 {
		return asked
	}
	if asked == nil {
		return limits
	}
	for _, e := range limits.entries {
		if place, fresh := asked.at(e.name); fresh {
			place.amount = e.amount
		}
	}
	return asked
}

// unstatedCount counts the containers of a pod that ask for no cpu, and for no memory.
type unstatedCount struct{ cpu, memory uint16 }

// unstatedIn counts what containers leave open that run as long as the pod. What a pod states as a whole is not open.
func (r *reader) unstatedIn(spec *objects.Value) (u unstatedCount) {
	count := func(container *objects.Value) {
		resources := container.Field("resources")
		open := func(name corev1.ResourceName) bool {
			return resources.Field("requests").Field(string(name)) == nil && resources.Field("limits").Field(string(name)) == nil
		}
		if open(corev1.ResourceCPU) && u.cpu < math.MaxUint16 {
			u.cpu++
		}
		if open(corev1.ResourceMemory) && u.memory < math.MaxUint16 {
			u.memory++
		}
	}
	for _, container := range itemsOf(spec.Field("containers")) {
		count(container)
	}
	for _, container := range itemsOf(spec.Field("initContainers")) {
		if container.TextOf("restartPolicy") == string(corev1.ContainerRestartPolicyAlways) {
			count(container)
		}
	}
	whole := spec.Field("resources").Field("requests")
	if whole.Field(string(corev1.ResourceCPU)) != nil {
		u.cpu = 0
	}
	if whole.Field(string(corev1.ResourceMemory)) != nil {
		u.memory = 0
	}
	return u
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
