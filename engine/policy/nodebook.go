package policy

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// NodeBook is what the pods on nodes ask for, as a scheduler counts it for scores. Volcano keeps such sums beside those of its nodes, and
// the two differ within a session.
type NodeBook interface {
	// Requested returns what the pods on a node ask for in a dimension.
	Requested(n model.NodeID, dimension int) float64
	// Stated returns the sums of Stated over the pods on a node.
	Stated(n model.NodeID) (cpu, memory float64)
}

// What Kubernetes' scores count for a container that asks for no CPU or no memory (pkg/scheduler/util/pod_resources.go).
const (
	UnstatedCPU    = 100
	UnstatedMemory = 200 << 20
)

// Unstated returns how many containers of a task ask for no CPU, and how many for no memory: what is known of them, and at least one where
// the task asks for none.
func Unstated(request resource.Row, known model.Unstated) model.Unstated {
	if request.V[resource.CPU] == 0 {
		known.CPU = max(known.CPU, 1)
	}
	if request.V[resource.Memory] == 0 {
		known.Memory = max(known.Memory, 1)
	}
	return known
}

// Stated returns what Kubernetes' scores count of a request: a tenth of a core, and 200 MiB, are added for each container that asks for
// none.
func Stated(request resource.Row, known model.Unstated) (cpu, memory float64) {
	open := Unstated(request, known)
	return request.V[resource.CPU] + float64(open.CPU)*UnstatedCPU, request.V[resource.Memory] + float64(open.Memory)*UnstatedMemory
}
