package volcano

import (
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

// The fields of scheduling.volcano.sh/v1beta1, those that nothing here reads included: a name beyond them is a slip of the pen, and
// would otherwise change a queue without a sound.
var (
	queueSpecNames = namesOf("weight", "capability", "reclaimable", "extendClusters", "guarantee", "affinity", "type", "parent",
		"deserved", "priority", "dequeueStrategy")
	guaranteeNames = namesOf("resource")
	affinityNames  = namesOf("nodeGroupAffinity", "nodeGroupAntiAffinity")
	termsNames     = namesOf("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")
)

// known is v itself, once its fields are found to be all of those names; nil if it is absent or no object.
func (r *reader) known(v *value, allowed names) *value {
	if !r.is(v, object) {
		return nil
	}
	for _, item := range v.items {
		if !allowed[item.key] {
			r.found.addKey(r.doc, item, "no such field")
		}
	}
	return v
}

// queue reads a Queue. An absent weight is 0, and an absent state admits nothing: so Volcano sees a queue that no API server has
// completed.
func (r *reader) queue(m metadata, root *value) {
	spec := r.known(root.field("spec"), queueSpecNames)
	weight := r.countAt(spec.field("weight"))
	guarantee := r.known(spec.field("guarantee"), guaranteeNames)
	r.queues = append(r.queues, &apportionv1.Queue{
		Name:               m.name,
		Parent:             r.textAt(spec.field("parent")),
		Weight:             &weight,
		Priority:           r.wholeAt(spec.field("priority")),
		State:              queueState(r.textAt(root.field("status").field("state"))),
		Reclaimable:        r.flagAt(spec.field("reclaimable")),
		Capability:         r.resourceMessage(spec.field("capability")),
		Guarantee:          r.resourceMessage(guarantee.field("resource")),
		Deserved:           r.resourceMessage(spec.field("deserved")),
		NodeGroupAffinity:  r.affinity(spec.field("affinity")),
		FairShareHierarchy: r.hierarchy(m),
		CreateTime:         m.created,
	})
}

// resourceMessage reads quantities right into a message.
func (r *reader) resourceMessage(v *value) *apportionv1.Resource {
	return r.dimensions.message(r.resourcesAt(v))
}

// queueState is the state of a name; only these three are told apart from not known.
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
