package volcano

import (
	"fmt"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// names is a set of the names of fields.
type names map[string]bool

func namesOf(list ...string) names {
	set := make(names, len(list))
	for _, name := range list {
		set[name] = true
	}
	return set
}

// All fields of scheduling.volcano.sh/v1beta1 in Volcano v1.15.1. Any other name is a typing error or belongs to a newer Volcano; a warning
// names it, because it has no effect.
var (
	queueSpecNames = namesOf("weight", "capability", "reclaimable", "extendClusters", "guarantee", "affinity", "type", "parent",
		"deserved", "priority", "dequeueStrategy")
	guaranteeNames = namesOf("resource")
	affinityNames  = namesOf("nodeGroupAffinity", "nodeGroupAntiAffinity")
	termsNames     = namesOf("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")
)

// known returns v, or nil if it is not an object, and warns of fields that are not among the names.
func (r *reader) known(v *value, allowed names) *value {
	if !r.is(v, object) {
		return nil
	}
	for _, item := range v.items {
		if !allowed[item.key] {
			r.warnUnknown(item)
		}
	}
	return v
}

// warnUnknown warns of a field that Volcano v1.15.1 does not have.
func (r *reader) warnUnknown(item *value) {
	doc := r.doc
	r.warnings.add(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, func() string {
		return fmt.Sprintf("%s:%d: %s", doc.name, doc.line(item.keyAt), item.path())
	}, "Volcano v1.15.1 has no such field, so it has no effect here")
}

// queue is a Queue on its way into the snapshot.
type queue struct {
	message *apportionv1.Queue
	// capability, guarantee and deserved are nil where they are absent.
	capability, guarantee, deserved *amounts
	// limits are those of message.NodeGroupLimits, by position.
	limits  []*amounts
	written origin
}

// queue reads a Queue. An absent weight is 0, as for a queue without an API server's defaults in Volcano. An absent state is Open, as which
// Volcano's controller takes it: a file in a repository has no status.
func (r *reader) queue(m metadata, root *value) {
	spec := r.known(root.field("spec"), queueSpecNames)
	weight := r.countAt(spec.field("weight"))
	guarantee := r.known(spec.field("guarantee"), guaranteeNames)
	q := queue{written: origin{doc: r.doc, at: root.at}}
	q.message = &apportionv1.Queue{
		Name:               m.name,
		Parent:             r.textAt(spec.field("parent")),
		Weight:             &weight,
		Priority:           r.wholeAt(spec.field("priority")),
		State:              r.queueState(root.field("status").field("state")),
		Reclaimable:        r.flagAt(spec.field("reclaimable")),
		NodeGroupAffinity:  r.affinity(spec.field("affinity")),
		FairShareHierarchy: r.hierarchy(m),
		CreateTime:         m.created,
	}
	q.capability = r.resourcesAt(spec.field("capability"))
	q.guarantee = r.resourcesAt(guarantee.field("resource"))
	q.deserved = r.resourcesAt(spec.field("deserved"))
	q.message.NodeGroupLimits, q.limits = r.nodeGroupLimits(m)
	if !r.background {
		state := root.field("status").field("state")
		r.unstated[m.name] = &unstated{
			queue: q.message, state: state == nil || state.text == "", weight: spec.field("weight") == nil,
		}
	}
	r.queues = append(r.queues, q)
}

// unstated says what a file does not state of a queue, because the API server or a controller does.
type unstated struct {
	queue         *apportionv1.Queue
	state, weight bool
}

// take takes it from the queue of the same name that the file replaces.
func (u *unstated) take(r *reader, root *value) {
	if u.state {
		u.queue.State, u.state = r.queueState(root.field("status").field("state")), false
	}
	if weight := root.field("spec").field("weight"); u.weight && weight != nil {
		*u.queue.Weight, u.weight = r.countAt(weight), false
	}
}

// fill takes the weight of a new queue.
func (u *unstated) fill() {
	if u.weight {
		*u.queue.Weight = 1
	}
}

// add adds a queue to a snapshot.
func (q *queue) add(to *apportionv1.Snapshot, d *dimensions) {
	m := q.message
	m.Capability, m.Guarantee, m.Deserved = d.message(q.capability), d.message(q.guarantee), d.message(q.deserved)
	for i, limit := range q.limits {
		m.NodeGroupLimits.Groups[i].Limit = d.message(limit)
	}
	to.Queues = append(to.Queues, m)
}

// queueState reads the state of a queue, and warns of one that Volcano does not have.
func (r *reader) queueState(v *value) apportionv1.QueueState {
	name := r.textAt(v)
	if name == "" && !r.unopened {
		return apportionv1.QueueState_QUEUE_STATE_OPEN
	}
	state := queueState(name)
	if state == apportionv1.QueueState_QUEUE_STATE_UNKNOWN && name != "" && name != unknownName {
		r.warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v,
			"not a state of a queue: %q; valid are Open, Closing, Closed and Unknown, as which it counts", name)
	}
	return state
}

// unknownName is Volcano's name of an unknown state or phase.
const unknownName = "Unknown"

// queueState is the state of a name; every other name is the unknown state.
func queueState(name string) apportionv1.QueueState {
	switch name {
	case "Open":
		return apportionv1.QueueState_QUEUE_STATE_OPEN
	case "Closing":
		return apportionv1.QueueState_QUEUE_STATE_CLOSING
	case "Closed":
		return apportionv1.QueueState_QUEUE_STATE_CLOSED
	}
	return apportionv1.QueueState_QUEUE_STATE_UNKNOWN
}

// affinity reads a queue's affinity. Present and empty stays present: it stops inheritance.
func (r *reader) affinity(v *value) *apportionv1.NodeGroupAffinity {
	v = r.known(v, affinityNames)
	if v == nil {
		return nil
	}
	return &apportionv1.NodeGroupAffinity{
		Affinity:     r.terms(v.field("nodeGroupAffinity")),
		AntiAffinity: r.terms(v.field("nodeGroupAntiAffinity")),
	}
}

func (r *reader) terms(v *value) *apportionv1.NodeGroupTerms {
	v = r.known(v, termsNames)
	if v == nil {
		return nil
	}
	return &apportionv1.NodeGroupTerms{
		Required:  r.textsAt(v.field("requiredDuringSchedulingIgnoredDuringExecution")),
		Preferred: r.textsAt(v.field("preferredDuringSchedulingIgnoredDuringExecution")),
	}
}

// hierarchy reads a queue's place in the tree of hierarchical DRF; nil if it has none.
func (r *reader) hierarchy(m metadata) *apportionv1.FairShareHierarchy {
	path := r.textAt(m.annotations.field(hierarchyAnnotation))
	if path == "" {
		return nil
	}
	return &apportionv1.FairShareHierarchy{Path: path, Weights: r.textAt(m.annotations.field(hierarchyWeightsAnnotation))}
}
