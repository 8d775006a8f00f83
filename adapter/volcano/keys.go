package volcano

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
	cooldownKey    = "volcano.sh/cooldown-time"

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
