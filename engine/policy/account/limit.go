package account

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// ResolveCapability sets dst to a queue's effective capability in both plugins and reports whether it limits anything. If it names any
// dimension, cpu and memory are unlimited where they are 0 or not named, while a scalar of 0 is 0; if it names none, dst is zeros and there
// is no limit.
func ResolveCapability(written resource.Row, dst *resource.Row) bool {
	if written.Has == 0 {
		dst.Clear(resource.Base)
		return false
	}
	dst.CopyFrom(written)
	dst.Has |= resource.Base
	for _, d := range [...]int{resource.CPU, resource.Memory} {
		if dst.V[d] <= 0 {
			dst.V[d] = math.Inf(1)
		}
	}
	return true
}

// Fits reports whether minimum + allocated + inqueue - elastic stays within limit, strictly and without tolerance, in every dimension that
// the minimum asks for; what limit does not name is 0, and `pods` does not count. why receives a reason for each dimension that does not
// fit, with the current amount in Have and the minimum in Need.
func Fits(
	plugin string, q model.QueueID, minimum, allocated, inqueue, elastic, limit resource.Row, pods resource.Mask, why *policy.Reasons,
) bool {
	fits := true
	for m := minimum.Positive() &^ pods; m != 0; m = m.Rest() {
		d := m.First()
		if minimum.V[d]+allocated.V[d]+inqueue.V[d]-elastic.V[d] <= limit.V[d] {
			continue
		}
		fits = false
		why.Add(policy.Reason{
			Plugin: plugin, Code: policy.AboveRealCapability, Queue: q, Dimension: d,
			Have: allocated.V[d] + inqueue.V[d] - elastic.V[d], Need: minimum.V[d], Limit: limit.V[d],
		})
	}
	return fits
}
