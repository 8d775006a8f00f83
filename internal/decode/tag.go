package decode

import "github.com/apportion/apportion/internal/field"

// The fields of a Snapshot, which a Change shares, of a job, a group, and the detail of a task.
const (
	tagSnapshotAsOf      = 1<<3 | field.Varint
	tagSnapshotCluster   = 2<<3 | field.Delimited
	tagSnapshotDimension = 3<<3 | field.Delimited
	tagSnapshotNode      = 4<<3 | field.Delimited
	tagSnapshotQueue     = 5<<3 | field.Delimited
	tagSnapshotJob       = 6<<3 | field.Delimited
	tagSnapshotTotal     = 7<<3 | field.Delimited
	tagSnapshotNodeSet   = 8<<3 | field.Delimited
	tagSnapshotLeftOut   = 20<<3 | field.Delimited
	tagSnapshotMemory    = 21<<3 | field.Delimited
	tagSnapshotKueue     = 22<<3 | field.Delimited
	tagSnapshotPods      = 23<<3 | field.Delimited

	tagNodeDomains = 6 << 3
	tagNodeOthers  = 7 << 3
	tagNodeLeaving = 8 << 3

	tagNodeReservation = 9<<3 | field.Delimited

	tagQueueAffinity = 10<<3 | field.Delimited
	tagQueueUsage    = 13<<3 | field.Delimited
	tagQueueBudget   = 14<<3 | field.Delimited
	tagQueueOwner    = 15<<3 | field.Delimited
	tagQueueKueue    = 16<<3 | field.Delimited
	tagQueueEntitled = 17<<3 | field.Delimited
	tagQueueLimits   = 18<<3 | field.Delimited
	tagQueueReserved = 19<<3 | field.Delimited

	tagJobUID           = 1<<3 | field.Delimited
	tagJobName          = 2<<3 | field.Delimited
	tagJobNamespace     = 3<<3 | field.Delimited
	tagJobQueue         = 4<<3 | field.Delimited
	tagJobPriority      = 5<<3 | field.Varint
	tagJobPhase         = 6<<3 | field.Varint
	tagJobMinAvailable  = 7<<3 | field.Varint
	tagJobMinResources  = 8<<3 | field.Delimited
	tagJobCreateTime    = 9<<3 | field.Varint
	tagJobGroup         = 10<<3 | field.Delimited
	tagJobCondition     = 11<<3 | field.Delimited
	tagJobExpectedEnd   = 12<<3 | field.Varint
	tagJobEndIsDeadline = 13<<3 | field.Varint
	tagJobOwner         = 14<<3 | field.Delimited
	tagJobKueue         = 15<<3 | field.Delimited
	tagJobRuntime       = 16<<3 | field.Varint

	tagGroupRole         = 1<<3 | field.Delimited
	tagGroupRequest      = 2<<3 | field.Delimited
	tagGroupMinAvailable = 3<<3 | field.Varint
	tagGroupTask         = 4<<3 | field.Delimited
	tagGroupCount        = 5<<3 | field.Delimited
	tagSetExclusion      = 4<<3 | field.Delimited
	tagGroupNodeSet      = 6<<3 | field.Delimited
	tagGroupUnjudged     = 7 << 3
	tagGroupPodClass     = 8<<3 | field.Varint

	tagDetailGate          = 2<<3 | field.Varint
	tagDetailPriorityClass = 3<<3 | field.Delimited
	tagDetailRequest       = 6<<3 | field.Delimited
	tagDetailNodeSet       = 7<<3 | field.Delimited
	tagDetailUnjudged      = 8 << 3
	tagDetailCondition     = 9<<3 | field.Delimited
	tagDetailPodClass      = 10<<3 | field.Varint
)

// The fields of a Change beside those that it shares with Snapshot, and those of a TaskUpdate.
const (
	tagChangeRemoveNode  = 9<<3 | field.Delimited
	tagChangeRemoveQueue = 10<<3 | field.Delimited
	tagChangeRemoveJob   = 11<<3 | field.Delimited
	tagChangeTask        = 12<<3 | field.Delimited
	tagChangeClearTotal  = 13<<3 | field.Varint
	tagChangeRemoveSet   = 14<<3 | field.Delimited
	tagChangeClearMemory = 15<<3 | field.Varint

	tagUpdateUID    = 1<<3 | field.Delimited
	tagUpdateNumber = 2<<3 | field.Varint
	tagUpdateStatus = 3<<3 | field.Varint
	tagUpdateNode   = 4<<3 | field.Varint
	tagUpdateNoNode = 5<<3 | field.Varint
)

// The tags of a task's fields.
const (
	tagTaskUID        = 1<<3 | field.Delimited
	tagTaskStatus     = 2<<3 | field.Varint
	tagTaskNode       = 3<<3 | field.Varint
	tagTaskPriority   = 4<<3 | field.Varint
	tagTaskName       = 5<<3 | field.Delimited
	tagTaskCreateTime = 6<<3 | field.Varint
	tagTaskIndex      = 7<<3 | field.Varint
	tagTaskDetail     = 8<<3 | field.Delimited
)
