package rehearsal

import (
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// EntitledBy returns the preset whose deserved shares queues are entitled to unless a person names another: capacity if queues state what
// they deserve, else proportion.
func EntitledBy(snapshot *apportionv1.Snapshot) string {
	if slices.ContainsFunc(snapshot.GetQueues(), func(q *apportionv1.Queue) bool { return len(q.GetDeserved().GetAmounts()) > 0 }) {
		return "capacity"
	}
	return "proportion"
}

// ResourceOf returns the resource of a name, which may lack its prefix. Without a name it returns the GPUs, if nodes offer any, or cpu.
func ResourceOf(snapshot *apportionv1.Snapshot, name string) string {
	suffix := "/" + name
	if name == "" {
		suffix = "/gpu"
	}
	for i, dimension := range snapshot.GetDimensions() {
		if !strings.HasSuffix(dimension, suffix) {
			continue
		}
		for _, node := range snapshot.GetNodes() {
			if at := slices.Index(node.GetAllocatable().GetDimensions(), uint32(i)); at >= 0 && node.GetAllocatable().GetAmounts()[at] > 0 {
				return dimension
			}
		}
	}
	if name == "" {
		return "cpu"
	}
	return name
}
