package volcano

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
)

var (
	podGroupSpecNames = namesOf("minMember", "minTaskMember", "queue", "priorityClassName", "minResources", "networkTopology",
		"subGroupPolicy")
	networkTopologyNames = namesOf("mode", "highestTierAllowed", "highestTierName")
	subGroupPolicyNames  = namesOf(objects.NameField, "networkTopology", "subGroupSize", "minSubGroups", "labelSelector", "matchLabelKeys")
)

// job is a PodGroup on its way into the snapshot.
type job struct {
	message *apportionv1.Job
	// minResources is nil where it is absent.
	minResources  *amounts
	priorityClass string
	// written is its position in the input.
	written objects.Origin
	// queue is the position of its queue field, or of the PodGroup if it has none.
	queue objects.Origin
	// groups is the index of each role's group in the message; requests are those of each group's tasks.
	groups   map[string]int
	requests [][]*amounts
	// placed are the placements of each group's tasks.
	placed [][]placed
	ending ending
	// charged is the name of the pod that names the owner; empty: none does, or the PodGroup names it.
	charged string
	// named are the minimum resources under their own names, for quotas.
	named []*apportionv1.NamedAmount
	// unstated has what the containers of each group's tasks leave open.
	unstated [][]unstatedCount
	// topology says that the nodes of its tasks must be near each other.
	topology bool
}

// podGroupShape is what is read of a PodGroup.
var podGroupShape = objects.Annotated(objects.Select(
	"metadata.labels", "spec?", "spec.minMember", "spec.minTaskMember", "spec.queue", "spec.priorityClassName", "spec.minResources",
	"spec.networkTopology?", "spec.networkTopology.mode", "spec.subGroupPolicy?", "spec.subGroupPolicy.networkTopology?",
	"spec.subGroupPolicy.networkTopology.mode", "status.phase",
	"status.conditions.type", "status.conditions.status", "status.conditions.reason", "status.conditions.message",
	"status.conditions.lastTransitionTime",
), ExpectedEndAnnotation, ExpectedRuntimeAnnotation, OwnerKey, preemptableKey, waitingTimeAnnotation, plainWaitingTimeAnnotation,
	jobMinAvailableAnnotation, jobMaxUnavailable)

// podGroup reads a PodGroup.
func (r *reader) podGroup(m objects.Metadata, root *objects.Value) {
	spec := r.known(root.Field("spec"), podGroupSpecNames)
	r.checkTopology(spec)
	queueName, named := spec.Field("queue"), root
	queue := r.TextAt(queueName)
	if queueName != nil {
		named = queueName
	}
	if queue == "" {
		queue = defaultQueue
	}
	j := job{
		message: &apportionv1.Job{
			Name:         m.Name,
			Namespace:    m.Namespace,
			Queue:        queue,
			Phase:        r.jobPhase(root.Field("status").Field("phase")),
			MinAvailable: r.CountAt(spec.Field("minMember")),
			CreateTime:   m.Created,
			Condition:    r.refusal(root.Field("status"), "Unschedulable", string(corev1.ConditionTrue)),
			Owner:        r.owner(m),
			Detail:       r.jobDetail(m),
		},
		named:         namedIn(spec.Field("minResources")),
		minResources:  r.resourcesAt(spec.Field("minResources")),
		topology:      hardTopology(spec) || anyOf(spec.Field("subGroupPolicy"), hardTopology),
		priorityClass: r.TextAt(spec.Field("priorityClassName")),
		written:       objects.Origin{Doc: r.Doc, At: root.At},
		queue:         objects.Origin{Doc: r.Doc, At: named.At},
		groups:        make(map[string]int),
		ending:        r.endingOf(m),
	}
	if roles := spec.Field("minTaskMember"); r.Is(roles, objects.Map) {
		for _, role := range roles.Items {
			minimum := r.CountAt(role)
			j.group(role.Key).MinAvailable = &minimum
		}
	}
	r.jobs = append(r.jobs, j)
}

// hardTopology reports whether the nodes of tasks must be near each other, as is the default of a network topology.
func hardTopology(of *objects.Value) bool {
	topology := of.Field("networkTopology")
	return topology != nil && topology.Type == objects.Map && topology.TextOf("mode") != "soft"
}

// jobDetail reads the rarely used properties of a PodGroup; nil: it has none.
func (r *reader) jobDetail(m objects.Metadata) *apportionv1.JobDetail {
	var d apportionv1.JobDetail
	some := false
	if written, ok := r.annotationOrLabel(m, preemptableKey); ok {
		preemptable, err := strconv.ParseBool(written)
		some, d.Preemptable = true, new(preemptable && err == nil)
	}
	for _, key := range []string{waitingTimeAnnotation, plainWaitingTimeAnnotation} {
		if limit := r.waitingLimit(m.Annotations.Field(key)); limit > 0 && d.WaitingLimit == nil {
			some, d.WaitingLimit = true, &limit
		}
	}
	// The first of the two that is there counts.
	if v := m.Annotations.Field(jobMinAvailableAnnotation); v != nil {
		d.DisruptionMinAvailable = r.TextAt(v)
	} else {
		d.DisruptionMaxUnavailable = r.TextAt(m.Annotations.Field(jobMaxUnavailable))
	}
	if some = some || d.DisruptionMinAvailable != "" || d.DisruptionMaxUnavailable != ""; !some {
		return nil
	}
	return &d
}

// waitingLimit reads how long a job waits at most; 0: not stated, or not a duration above 0, which has no effect.
func (r *reader) waitingLimit(v *objects.Value) int64 {
	if v == nil {
		return 0
	}
	limit, err := time.ParseDuration(r.TextAt(v))
	if err != nil || limit <= 0 {
		r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v,
			"not a duration above 0 like 1h30m, so it does not limit how long the job waits%s", objects.Shown(v))
		return 0
	}
	return int64(limit)
}

// owner returns the owner that an object names, empty if it names none.
func (r *reader) owner(m objects.Metadata) string {
	name, _ := r.annotationOrLabel(m, OwnerKey)
	return name
}

// identity is the key by which pods find their job.
func (j *job) identity() objects.Identity {
	return objects.Identity{Namespace: j.message.Namespace, Name: j.message.Name}
}

// group returns the task group of a role, and adds it if there is none.
func (j *job) group(role string) *apportionv1.TaskGroup {
	i, ok := j.groups[role]
	if !ok {
		i = len(j.message.Groups)
		j.groups[role] = i
		j.message.Groups = append(j.message.Groups, &apportionv1.TaskGroup{Role: role})
		j.requests = append(j.requests, nil)
		j.placed = append(j.placed, nil)
		j.unstated = append(j.unstated, nil)
	}
	return j.message.Groups[i]
}

// checkTopology warns of misspelt fields in the parts of a PodGroup that have no effect on decisions.
func (r *reader) checkTopology(spec *objects.Value) {
	r.known(spec.Field("networkTopology"), networkTopologyNames)
	policies := spec.Field("subGroupPolicy")
	if !r.Is(policies, objects.List) {
		return
	}
	for _, policy := range policies.Items {
		r.known(r.known(policy, subGroupPolicyNames).Field("networkTopology"), networkTopologyNames)
	}
}

// jobPhase reads the phase of a PodGroup, and warns of one that Volcano does not have.
func (r *reader) jobPhase(v *objects.Value) apportionv1.JobPhase {
	name := r.TextAt(v)
	phase := jobPhase(name)
	if phase == apportionv1.JobPhase_JOB_PHASE_UNKNOWN && name != unknownName {
		r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v,
			"not a phase of a PodGroup: %q; valid are Pending, Inqueue, Running, Completed and Unknown, as which it counts", name)
	}
	return phase
}

// jobPhase returns the phase with a name. A PodGroup without a phase is pending, as in Volcano.
func jobPhase(name string) apportionv1.JobPhase {
	switch name {
	case "", "Pending":
		return apportionv1.JobPhase_JOB_PHASE_PENDING
	case "Inqueue":
		return apportionv1.JobPhase_JOB_PHASE_INQUEUE
	case "Running":
		return apportionv1.JobPhase_JOB_PHASE_RUNNING
	case "Completed":
		return apportionv1.JobPhase_JOB_PHASE_COMPLETED
	}
	return apportionv1.JobPhase_JOB_PHASE_UNKNOWN
}

// run holds the times of a pod, in Unix nanoseconds; 0: not known.
type run struct {
	// limit is spec.activeDeadlineSeconds, after which the kubelet ends the pod. The other fields are those of a pod that holds resources.
	limit time.Duration
	holds bool
	// started is status.startTime; deadline is limit later.
	started, deadline int64
}

// runOf reads when a pod runs.
func (r *reader) runOf(status apportionv1.TaskStatus, spec, podStatus *objects.Value) run {
	u := run{holds: status == apportionv1.TaskStatus_TASK_STATUS_RUNNING || status == apportionv1.TaskStatus_TASK_STATUS_BOUND}
	if seconds := r.WholeAt(spec.Field("activeDeadlineSeconds")); seconds > 0 {
		u.limit = time.Duration(seconds) * time.Second
	}
	if !u.holds {
		return u
	}
	if u.started = r.MomentAt(podStatus.Field("startTime")); u.started != 0 && u.limit != 0 {
		u.deadline = u.started + int64(u.limit)
	}
	return u
}

// ending collects what determines the end of a job.
type ending struct {
	// at is the end and runtime the runtime that the annotations state; 0: none.
	at      int64
	runtime time.Duration
	// started is the start of the first of its pods, deadline the time when the last one must have ended; 0: unknown.
	started, deadline int64
	// open: some pod has no deadline.
	open bool
	// limit is the greatest limit of its pods, unlimited: some pod has none.
	limit     time.Duration
	unlimited bool
}

// endingOf reads the annotations of a PodGroup.
func (r *reader) endingOf(m objects.Metadata) ending {
	var e ending
	if v := m.Annotations.Field(ExpectedEndAnnotation); v != nil {
		at, known := momentOf(r.TextAt(v))
		if !known {
			r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v,
				"not a time like 2006-01-02T15:04:05Z, so the job's end is not known%s", objects.Shown(v))
		} else {
			e.at = at
		}
	}
	if v := m.Annotations.Field(ExpectedRuntimeAnnotation); v != nil {
		runtime, err := duration.Parse(r.TextAt(v))
		if err != nil || runtime <= 0 {
			r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v,
				"not a duration above 0 like 2h30m, so the job's end is not known%s", objects.Shown(v))
		} else {
			e.runtime = runtime
		}
	}
	return e
}

// add takes a pod of the job into account.
func (e *ending) add(u run) {
	e.limit = max(e.limit, u.limit)
	e.unlimited = e.unlimited || u.limit == 0
	if !u.holds {
		return
	}
	if u.started != 0 && (e.started == 0 || u.started < e.started) {
		e.started = u.started
	}
	e.deadline = max(e.deadline, u.deadline)
	e.open = e.open || u.deadline == 0
}

// set sets the job's end: the estimate, or the deadline of all its pods if it is earlier or there is no estimate. Its runtime is found
// likewise.
func (e *ending) set(job *apportionv1.Job) {
	job.ExpectedRuntime = int64(e.runtime)
	if e.limit != 0 && !e.unlimited && (e.runtime == 0 || e.limit < e.runtime) {
		job.ExpectedRuntime = int64(e.limit)
	}
	if job.ExpectedEnd = e.at; e.at == 0 && e.runtime > 0 && e.started != 0 {
		job.ExpectedEnd = e.started + int64(e.runtime)
	}
	if e.deadline != 0 && !e.open && (job.ExpectedEnd == 0 || e.deadline < job.ExpectedEnd) {
		job.ExpectedEnd, job.EndIsDeadline = e.deadline, true
	}
}

// priorityClass holds the fields of a PriorityClass.
type priorityClass struct {
	name   string
	value  int32
	global bool
	// never: no other pod is evicted for its pods.
	never bool
}

// classShape is what is read of a PriorityClass.
var classShape = objects.Select("value", "globalDefault", "preemptionPolicy")

// priorityClass reads a PriorityClass. Of several global defaults the last one counts, as for Volcano.
func (r *reader) priorityClass(m objects.Metadata, root *objects.Value) {
	class := priorityClass{
		name: m.Name, value: r.WholeAt(root.Field("value")), never: r.TextAt(root.Field("preemptionPolicy")) == neverPreempts,
	}
	if global := r.FlagAt(root.Field("globalDefault")); global != nil {
		class.global = *global
	}
	r.classes = append(r.classes, class)
}

// priorities are the values of classes by name, and the one of jobs without a class.
type priorities struct {
	values map[string]int32
	global int32
}

// of returns the priority of a job of a class, "" for none. A class that does not exist counts as none, as for Volcano.
func (p *priorities) of(class string) int32 {
	if value, ok := p.values[class]; ok {
		return value
	}
	return p.global
}

// written returns the priority that the API server writes into a pod that does not state its own. nil: the default of tasks, for a pod
// without a class where there is none for all.
func (p *priorities) written(task *apportionv1.Task) *int32 {
	class := task.GetDetail().GetPriorityClass()
	if value, known := p.values[class]; known || p.global != 0 {
		if !known {
			value = p.global
		}
		return &value
	}
	return nil
}

// priorities returns the values of the classes that were read, or else those that pods state: the API server writes the name and the value
// of a class into each pod. Pods of one class that differ state nothing.
func (r *reader) priorities() *priorities {
	p := &priorities{values: make(map[string]int32, len(r.classes))}
	for _, class := range r.classes {
		p.values[class.name] = class.value
		if class.global {
			p.global = class.value
		}
	}
	if r.knowsClasses() {
		return p
	}
	differ := map[string]bool{}
	for i := range r.pods {
		pod := &r.pods[i]
		class := pod.task.GetDetail().GetPriorityClass()
		if pod.priority == nil || class == "" {
			continue
		}
		value, known := p.values[class]
		differ[class] = differ[class] || known && value != *pod.priority
		p.values[class] = *pod.priority
	}
	for class, differs := range differ {
		if differs {
			delete(p.values, class)
		}
	}
	return p
}

// knowsClasses reports whether all PriorityClasses were given.
func (r *reader) knowsClasses() bool { return len(r.classes) > 0 || r.Listed[classKind] }

// provesClasses names a PodGroup whose priority is not known without its class: it has not ended, and no pod states the value. That of a
// PodGroup without a class is 0 unless a class is the default of the cluster, as it may be if its pods have one and no pod has none.
func (r *reader) provesClasses() string {
	p, none, classes := r.priorities(), false, map[objects.Identity]string{}
	for i := range r.pods {
		pod := &r.pods[i]
		switch class := pod.task.GetDetail().GetPriorityClass(); {
		case pod.priority == nil:
		case class == "":
			none = true
		case *pod.priority != 0:
			classes[objects.Identity{Namespace: pod.namespace, Name: pod.group}] = class
		}
	}
	for i := range r.jobs {
		j := &r.jobs[i]
		if j.message.GetPhase() == apportionv1.JobPhase_JOB_PHASE_COMPLETED {
			continue
		}
		name := "PodGroup " + j.message.GetNamespace() + "/" + j.message.GetName()
		if _, known := p.values[j.priorityClass]; !known && j.priorityClass != "" {
			return name + " has the class " + strconv.Quote(j.priorityClass)
		}
		if class := classes[j.identity()]; class != "" && j.priorityClass == "" && !none {
			return name + " has no class, but its pods have " + strconv.Quote(class) + ", which may be the default of the cluster"
		}
	}
	return ""
}
