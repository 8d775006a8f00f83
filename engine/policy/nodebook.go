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

// What Kubernetes' scores count for a pod that asks for no CPU or no memory (pkg/scheduler/util/pod_resources.go).
const (
	UnstatedCPU    = 100
	UnstatedMemory = 200 << 20
)

// Stated returns what Kubernetes' scores count of a request: a tenth of a core, and 200 MiB, stand for what it does not ask for.
func Stated(request resource.Row) (cpu, memory float64) {
	if cpu = request.V[resource.CPU]; cpu == 0 {
		cpu = UnstatedCPU
	}
	if memory = request.V[resource.Memory]; memory == 0 {
		memory = UnstatedMemory
	}
	return cpu, memory
}
