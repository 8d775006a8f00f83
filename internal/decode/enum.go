package decode

import (
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
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
