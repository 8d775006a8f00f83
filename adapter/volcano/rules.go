package volcano

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

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
