package volcano

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// The API groups of the kinds that are read; Kubernetes' core group has only a version.
const (
	volcanoGroup  = "scheduling.volcano.sh"
	priorityGroup = "scheduling.k8s.io"
	storageGroup  = "storage.k8s.io"
	budgetGroup   = "policy"
	coreVersion   = "v1"
	betaVersion   = "v1beta1"
	// volcanoVersion is the apiVersion of the kinds of volcanoGroup.
	volcanoVersion = volcanoGroup + "/" + betaVersion
)

// Kinds of objects.
const (
	nodeKind      = "Node"
	queueKind     = "Queue"
	podGroupKind  = "PodGroup"
	podKind       = "Pod"
	classKind     = "PriorityClass"
	namespaceKind = "Namespace"
	claimKind     = "PersistentVolumeClaim"
	volumeKind    = "PersistentVolume"
	storageKind   = "StorageClass"
	driverKind    = "CSIDriver"
	attachKind    = "CSINode"
	capacityKind  = "CSIStorageCapacity"
	budgetKind    = "PodDisruptionBudget"
	quotaKind     = "ResourceQuota"
)

// What is not judged where a list cannot be read.
const (
	judgesVolumes    = "volumes of pods"
	judgesNamespaces = "affinities to pods in namespaces selected by labels"
	judgesBudgets    = "disruption budgets of pods"
	judgesQuotas     = "quotas of namespaces"
)

// olderVersions are those of objects that files have and clusters no longer serve.
var olderVersions = []string{betaVersion, "v1alpha1"}

// kinds are the objects that are read. The configuration of Volcano's scheduler is read by package schedulerconf.
var kinds = objects.NewTable(
	objects.Row[*reader]{Resource: ofVolcano(queueKind, "queues", false), Shape: queueShape, Read: (*reader).queue},
	objects.Row[*reader]{Resource: ofVolcano(podGroupKind, "podgroups", true), Shape: podGroupShape, Read: (*reader).podGroup},
	objects.Row[*reader]{Resource: core(podKind, "pods", true, ""), Shape: podShape, Read: (*reader).pod},
	objects.Row[*reader]{Resource: core(nodeKind, "nodes", false, ""), Shape: nodeShape, Read: (*reader).node},
	objects.Row[*reader]{
		Resource: objects.Resource{
			Kind: classKind, Group: priorityGroup, Versions: []string{coreVersion}, Older: olderVersions, List: "priorityclasses",
			Decides: true,
		},
		Shape: classShape, Read: (*reader).priorityClass,
	},
	objects.Row[*reader]{Resource: ofStorage(driverKind, "csidrivers"), Shape: driverShape, Read: (*reader).csiDriver},
	objects.Row[*reader]{Resource: ofStorage(attachKind, "csinodes"), Shape: attachShape, Read: (*reader).csiNode},
	objects.Row[*reader]{
		Resource: ofStorage(capacityKind, "csistoragecapacities"), Shape: capacityShape, Read: (*reader).storageCapacity,
	},
	objects.Row[*reader]{Resource: ofStorage(storageKind, "storageclasses"), Shape: storageShape, Read: (*reader).storageClass},
	objects.Row[*reader]{
		Resource: core(volumeKind, "persistentvolumes", false, judgesVolumes), Shape: volumeShape, Read: (*reader).persistentVolume,
	},
	objects.Row[*reader]{
		Resource: core(claimKind, "persistentvolumeclaims", true, judgesVolumes), Shape: claimShape, Read: (*reader).persistentVolumeClaim,
	},
	objects.Row[*reader]{
		Resource: core(namespaceKind, "namespaces", false, judgesNamespaces), Shape: objects.Select("metadata.labels"),
		Read: (*reader).namespace,
	},
	objects.Row[*reader]{
		Resource: objects.Resource{
			Kind: budgetKind, Group: budgetGroup, Versions: []string{coreVersion}, Older: []string{betaVersion},
			List: "poddisruptionbudgets", Namespaced: true, Judges: judgesBudgets,
		},
		Shape: budgetShape, Read: (*reader).disruptionBudget,
	},
	objects.Row[*reader]{Resource: core(quotaKind, "resourcequotas", true, judgesQuotas), Shape: quotaShape, Read: (*reader).resourceQuota},
	// Its controller makes a PodGroup of it, which is read.
	objects.Row[*reader]{Resource: objects.Resource{Kind: "Job", Group: "batch.volcano.sh", Versions: []string{"v1alpha1"}}},
	objects.Row[*reader]{Resource: schedulerconf.ConfigMap}, objects.Row[*reader]{Resource: schedulerconf.Deployment},
)

// ofVolcano is a kind of Volcano.
func ofVolcano(kind, list string, namespaced bool) objects.Resource {
	return objects.Resource{
		Kind: kind, Group: volcanoGroup, Versions: []string{betaVersion}, List: list, Namespaced: namespaced, Needed: true,
	}
}

// core is a kind of Kubernetes' core, by which constraints of pods alone are judged, or on which most answers depend.
func core(kind, list string, namespaced bool, judges string) objects.Resource {
	return objects.Resource{
		Kind: kind, Versions: []string{coreVersion}, List: list, Namespaced: namespaced, Decides: judges == "", Judges: judges,
	}
}

// ofStorage is a kind that volumes are judged by.
func ofStorage(kind, list string) objects.Resource {
	return objects.Resource{
		Kind: kind, Group: storageGroup, Versions: []string{coreVersion}, Older: olderVersions, List: list, Judges: judgesVolumes,
	}
}

// Kinds are the kinds that a cluster lists, in the order in which their objects are given.
func Kinds() []*objects.Resource { return kinds.Resources() }

// Shape is what is read of objects.
func Shape() *objects.Shape { return kinds.Shape() }

// The labels, annotations and special names that Volcano reads.
const (
	groupNameAnnotation            = "scheduling.k8s.io/group-name"
	taskPriorityAnnotation         = "volcano.sh/task-priority"
	hierarchyAnnotation            = "volcano.sh/hierarchy"
	hierarchyWeightsAnnotation     = "volcano.sh/hierarchy-weights"
	oversubscribedCPUAnnotation    = "volcano.sh/oversubscription-cpu"
	oversubscribedMemoryAnnotation = "volcano.sh/oversubscription-memory"
	nodeGroupLabel                 = "volcano.sh/nodegroup-name"
	nodeGroupLimitsAnnotation      = "volcano.sh/nodegroup-resource-limits"

	// Read from annotations and from labels.
	taskRoleKey    = "volcano.sh/task-spec"
	preemptableKey = "volcano.sh/preemptable"

	// Read from the annotations of PodGroups. The plugin sla knows two names of its own.
	waitingTimeAnnotation      = "volcano.sh/sla-waiting-time"
	plainWaitingTimeAnnotation = "sla-waiting-time"
	jobMinAvailableAnnotation  = "volcano.sh/jdb-min-available"
	jobMaxUnavailable          = "volcano.sh/jdb-max-unavailable"

	// An annotation of pods and a label of nodes.
	revocableZoneKey = "volcano.sh/revocable-zone"
	cooldownKey      = "volcano.sh/cooldown-time"

	// ExpectedEndAnnotation of a PodGroup says when its job is expected to end, as 2006-01-02T15:04:05Z. Volcano copies the annotations of
	// a Job to its PodGroup.
	ExpectedEndAnnotation = "apportion.dev/expected-end"
	// ExpectedRuntimeAnnotation of a PodGroup says how long its job is expected to run from the start of its first pod, as 2h30m.
	ExpectedRuntimeAnnotation = "apportion.dev/expected-runtime"

	// MaintenanceAnnotation of a Node says when it is to be drained, as 2006-01-02T15:04:05Z/2006-01-02T17:04:05Z: no task may run then.
	// Several periods are separated by commas.
	MaintenanceAnnotation = "apportion.dev/maintenance"

	// OwnerKey is the annotation or label of a PodGroup, or else of its pods, that names the user or group to which is charged what the job
	// uses.
	OwnerKey = "apportion.dev/owner"

	queueAllocationGate = "scheduling.volcano.sh/queue-allocation-gate"
	defaultQueue        = "default"
)

// specField is the part of an object that says what is wanted.
const specField = "spec"

// Package adapter/extender uses the rules below too.

// Keys that Volcano reads from labels and annotations and does not pass on resolved.
const (
	CooldownKey  = cooldownKey
	NodeGroupKey = nodeGroupLabel
)

// Amount returns the amount that Volcano accounts for a quantity of a resource; accounted is false for names that it drops. A quantity that
// does not fit int64 gives the same result as in Volcano.
func Amount(name, text string) (amount float64, accounted bool, err error) {
	u := unitOf(name)
	if u == dropped {
		return 0, false, nil
	}
	parsed, err := objects.Quantity(text)
	if err != nil {
		return 0, false, fmt.Errorf("%s: %w", name, err)
	}
	return amountOf(&parsed, u), true, nil
}

// TaskIndex is the number at the end of pod names like `job-role-0`, by which Volcano orders the pods of a role; false: there is none.
func TaskIndex(pod string) (uint32, bool) {
	if strings.Count(pod, "-") < 2 {
		return 0, false
	}
	number, err := strconv.ParseUint(pod[strings.LastIndexByte(pod, '-')+1:], 10, 32)
	return uint32(number), err == nil
}

// Gate returns the gate of a pod with this number of scheduling gates and this first one: Volcano's own gate counts as such only if it is
// the only one.
func Gate(gates int, first string) apportionv1.TaskGate {
	switch {
	case gates == 0:
		return apportionv1.TaskGate_TASK_GATE_UNSPECIFIED
	case gates == 1 && first == queueAllocationGate:
		return apportionv1.TaskGate_TASK_GATE_ADMISSION
	}
	return apportionv1.TaskGate_TASK_GATE_OTHER
}

// Cooldown returns how long a pod is protected; false: the text is not a duration, and the pod is not protected.
func Cooldown(written string) (int64, bool) {
	duration, err := time.ParseDuration(written)
	return int64(duration), err == nil
}

// QueueState is the state of a queue by its name.
func QueueState(name string) apportionv1.QueueState { return queueState(name) }

// JobPhase is the phase of a PodGroup by its name.
func JobPhase(name string) apportionv1.JobPhase { return jobPhase(name) }
