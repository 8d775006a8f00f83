package volcano

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
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
	// topology says that the nodes of its tasks must be near each other.
	topology bool
}

// podGroupShape is what is read of a PodGroup.
var podGroupShape = objects.Annotated(objects.Select(
	"metadata.labels", "spec?", "spec.minMember", "spec.minTaskMember", "spec.queue", "spec.priorityClassName", "spec.minResources",
	"spec.networkTopology?", "spec.networkTopology.mode", "spec.subGroupPolicy?", "spec.subGroupPolicy.networkTopology?", "status.phase",
	"status.conditions.type", "status.conditions.status", "status.conditions.reason", "status.conditions.message",
	"status.conditions.lastTransitionTime",
), ExpectedEndAnnotation, ExpectedRuntimeAnnotation, OwnerKey)

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
		},
		minResources:  r.resourcesAt(spec.Field("minResources")),
		topology:      spec.Field("networkTopology") != nil && spec.Field("networkTopology").TextOf("mode") != "soft",
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
