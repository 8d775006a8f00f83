package volcano

import (
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/moment"
)

// node is a Node while it is converted.
type node struct {
	message     *apportionv1.Node
	allocatable *amounts
	// others is the usage of tasks that are not in the snapshot; nil: none.
	others *amounts
	// otherPods are these pods.
	otherPods []otherPod
	candidate nodeCandidate
	written   objects.Origin
}

// nodeShape is what is read of a Node.
var nodeShape = objects.Annotated(objects.Select(
	"metadata.labels", "spec.unschedulable", "spec.taints*", "status.allocatable",
	"status.conditions.type", "status.conditions.status", "status.conditions.reason", "status.conditions.message",
), oversubscribedCPUAnnotation, oversubscribedMemoryAnnotation, MaintenanceAnnotation)

// node reads a Node. Volcano's total includes every node, ready or not, cordoned or not. The snapshot says which ones accept no new tasks.
func (r *reader) node(m objects.Metadata, root *objects.Value) {
	allocatable := r.resourcesAt(root.Field("status").Field("allocatable"))
	if allocatable == nil {
		allocatable = &amounts{}
	}
	r.oversubscribe(allocatable, corev1.ResourceCPU, m.Annotations.Field(oversubscribedCPUAnnotation))
	r.oversubscribe(allocatable, corev1.ResourceMemory, m.Annotations.Field(oversubscribedMemoryAnnotation))
	spec := root.Field("spec")
	n := node{allocatable: allocatable, candidate: r.candidate(m, spec), written: objects.Origin{Doc: r.Doc, At: root.At}}
	n.message = &apportionv1.Node{Name: m.Name, Unschedulable: r.unschedulable(spec, root.Field("status"))}
	n.message.Reservations = r.maintenance(m.Annotations.Field(MaintenanceAnnotation))
	if label := m.Labels.Field(nodeGroupLabel); label != nil {
		group := r.TextAt(label)
		n.message.Group = &group
	}
	n.message.RevocableZone = r.TextAt(m.Labels.Field(revocableZoneKey))
	r.nodes = append(r.nodes, n)
}

// add adds a node to a snapshot, without its usage by others.
func (n *node) add(to *apportionv1.Snapshot, d *dimensions) {
	n.message.Allocatable = d.message(n.allocatable)
	to.Nodes = append(to.Nodes, n.message)
}

// oversubscribe adds the oversubscribed amount of a node's annotation: a plain number of milli-cores or bytes, not a quantity. It needs no
// label. A text that is not a number counts as 0, as in Volcano.
func (r *reader) oversubscribe(allocatable *amounts, name corev1.ResourceName, v *objects.Value) {
	written := r.TextAt(v)
	if written == "" {
		return
	}
	extra, err := strconv.ParseFloat(written, 64)
	if err != nil && !math.IsInf(extra, 0) {
		r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v, "not a number: %q", written)
		return
	}
	if math.IsNaN(extra) || extra > math.MaxInt64 || extra < 0 {
		// The sum over all nodes would not be finite.
		r.Found.Add(r.Doc, v, "neither 0 nor a positive finite number: %q", written)
		return
	}
	dim, _ := r.units.of(string(name))
	allocatable.add(dim.name, extra)
}

// maintenance reads the periods in which a node is to be drained. What is not a period is left out, with a warning.
func (r *reader) maintenance(v *objects.Value) (list []*apportionv1.NodeReservation) {
	written := r.TextAt(v)
	if written == "" {
		return nil
	}
	for period := range strings.SplitSeq(written, ",") {
		from, until, err := moment.Period(period)
		switch {
		case err != nil:
			r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v,
				"%s, so no downtime is planned for it: %q", err, strings.TrimSpace(period))
		case len(list) == model.MaxReservations:
			r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v,
				"a node has at most %d periods of downtime; the others are left out", model.MaxReservations)
			return list
		default:
			// It keeps the whole node for no job.
			list = append(list, &apportionv1.NodeReservation{StartUnixNano: from, EndUnixNano: until, Reason: "maintenance"})
		}
	}
	return list
}

// momentOf reads a time of which Unix nanoseconds can be stated.
func momentOf(text string) (nanoseconds int64, known bool) {
	at, err := time.Parse(time.RFC3339, text)
	return at.UnixNano(), err == nil && moment.Countable(at)
}
