package volcano

// Labels and annotations that Volcano reads.
const (
	groupNameAnnotation    = "scheduling.k8s.io/group-name"
	taskPriorityAnnotation = "volcano.sh/task-priority"
	// Read from annotations and from labels.
	taskRoleKey    = "volcano.sh/task-spec"
	preemptableKey = "volcano.sh/preemptable"
	cooldownKey    = "volcano.sh/cooldown-time"

	hierarchyAnnotation        = "volcano.sh/hierarchy"
	hierarchyWeightsAnnotation = "volcano.sh/hierarchy-weights"

	nodeGroupLabel                 = "volcano.sh/nodegroup-name"
	oversubscribedCPUAnnotation    = "volcano.sh/oversubscription-cpu"
	oversubscribedMemoryAnnotation = "volcano.sh/oversubscription-memory"
	queueAllocationGate            = "scheduling.volcano.sh/queue-allocation-gate"
	defaultQueue                   = "default"
	volcanoGroup, priorityGroup    = "scheduling.volcano.sh", "scheduling.k8s.io"
	coreVersion                    = "v1"
)
