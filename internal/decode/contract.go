package decode

import (
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/field"
)

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
	tagSnapshotPods      = 22<<3 | field.Delimited
	tagSnapshotBudget    = 23<<3 | field.Delimited
	tagSnapshotQuota     = 24<<3 | field.Delimited

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
	tagJobDetail        = 17<<3 | field.Delimited

	tagGroupRole         = 1<<3 | field.Delimited
	tagGroupRequest      = 2<<3 | field.Delimited
	tagGroupMinAvailable = 3<<3 | field.Varint
	tagGroupTask         = 4<<3 | field.Delimited
	tagGroupCount        = 5<<3 | field.Delimited
	tagSetExclusion      = 4<<3 | field.Delimited
	tagSetFlavor         = 7<<3 | field.Delimited
	tagSetPreference     = 8<<3 | field.Delimited
	tagGroupNodeSet      = 6<<3 | field.Delimited
	tagGroupUnjudged     = 7 << 3
	tagGroupPodClass     = 8<<3 | field.Varint
	tagGroupUnstated     = 9<<3 | field.Delimited

	tagDetailGate          = 2<<3 | field.Varint
	tagDetailPriorityClass = 3<<3 | field.Delimited
	tagDetailRequest       = 6<<3 | field.Delimited
	tagDetailNodeSet       = 7<<3 | field.Delimited
	tagDetailUnjudged      = 8 << 3
	tagDetailCondition     = 9<<3 | field.Delimited
	tagDetailPodClass      = 10<<3 | field.Varint
	tagDetailNominated     = 11<<3 | field.Delimited
	tagDetailZone          = 13<<3 | field.Delimited
	tagDetailBudgets       = 15<<3 | field.Delimited
	tagDetailUnstated      = 16<<3 | field.Delimited
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

	tagChangeRemoveBudget = 25<<3 | field.Delimited
	tagChangeRemoveQuota  = 26<<3 | field.Delimited

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

// enum returns the engine's number for a value of the contract whose numbers are larger by one because 0 is "not specified", which
// means the first. False: the value is not known.
func enum[T ~uint8](value, last int32) (T, bool) {
	if value < 0 || value > last {
		return 0, false
	}
	return T(max(value-1, 0)), true
}

// StatusOf returns the status with a value of the contract; false: the value is not known.
func StatusOf(s apportionv1.TaskStatus) (model.Status, bool) {
	return enum[model.Status](int32(s), int32(apportionv1.TaskStatus_TASK_STATUS_UNKNOWN))
}

// PhaseOf returns the phase with a value of the contract; false: the value is not known.
func PhaseOf(p apportionv1.JobPhase) (model.Phase, bool) {
	return enum[model.Phase](int32(p), int32(apportionv1.JobPhase_JOB_PHASE_COMPLETED))
}

// QueueStateOf returns the state with a value of the contract; false: the value is not known.
func QueueStateOf(s apportionv1.QueueState) (model.QueueState, bool) {
	return enum[model.QueueState](int32(s), int32(apportionv1.QueueState_QUEUE_STATE_UNKNOWN))
}

// GateOf returns the gate with a value of the contract; false: the value is not known. No gate is 0 on both sides.
func GateOf(g apportionv1.TaskGate) (model.Gate, bool) {
	return model.Gate(g & 3), g >= 0 && g <= apportionv1.TaskGate_TASK_GATE_OTHER
}

// WireStatus is the value of the contract of a status.
func WireStatus(s model.Status) apportionv1.TaskStatus { return apportionv1.TaskStatus(s) + 1 }

// WirePhase is the value of the contract of a phase.
func WirePhase(p model.Phase) apportionv1.JobPhase { return apportionv1.JobPhase(p) + 1 }
