package volcano

import (
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// node reads a Node. Volcano's total includes every node, ready or not, cordoned or not. The snapshot says which ones accept no new tasks.
func (r *reader) node(m metadata, root *value) {
	allocatable := r.resourcesAt(root.field("status").field("allocatable"))
	if allocatable == nil {
		allocatable = &amounts{}
	}
	r.oversubscribe(allocatable, corev1.ResourceCPU, m.annotations.field(oversubscribedCPUAnnotation))
	r.oversubscribe(allocatable, corev1.ResourceMemory, m.annotations.field(oversubscribedMemoryAnnotation))
	spec := root.field("spec")
	n := &apportionv1.Node{
		Name: m.name, Allocatable: r.dimensions.message(allocatable), Unschedulable: r.unschedulable(spec, root.field("status")),
	}
	if label := m.labels.field(nodeGroupLabel); label != nil {
		group := r.textAt(label)
		n.Group = &group
	}
	r.nodes, r.nodeOrigins = append(r.nodes, n), append(r.nodeOrigins, origin{doc: r.doc, at: root.at})
	r.candidates = append(r.candidates, r.candidate(m, spec))
}

// oversubscribe adds the oversubscribed amount of a node's annotation: a plain number of milli-cores or bytes, not a quantity. It needs no
// label. A text that is not a number counts as 0, as in Volcano.
func (r *reader) oversubscribe(allocatable *amounts, name corev1.ResourceName, v *value) {
	written := r.textAt(v)
	if written == "" {
		return
	}
	extra, err := strconv.ParseFloat(written, 64)
	if err != nil && !math.IsInf(extra, 0) {
		r.warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v, "not a number: %q", written)
		return
	}
	if math.IsNaN(extra) || math.IsInf(extra, 0) || extra < 0 {
		r.found.add(r.doc, v, "neither 0 nor a positive finite number: %q", written)
		return
	}
	dim, _ := r.dimensions.of(string(name))
	allocatable.add(dim.index, extra)
}
