package volcano

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apportion/apportion/adapter/objects"
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
	termsNames     = namesOf(requiredField, preferredField)
)

// known returns v, or nil if it is not an object, and warns of fields that are not among the names.
func (r *reader) known(v *objects.Value, allowed names) *objects.Value {
	if !r.Is(v, objects.Map) {
		return nil
	}
	for _, item := range v.Items {
		if !allowed[item.Key] {
			r.warnUnknown(item)
		}
	}
	return v
}

// warnUnknown warns of a field that Volcano v1.15.1 does not have.
func (r *reader) warnUnknown(item *objects.Value) {
	doc := r.Doc
	r.Warnings.Add(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, func() string {
		return fmt.Sprintf("%s:%d: %s", doc.Name, doc.Line(item.KeyAt), item.Path())
	}, "Volcano v1.15.1 has no such field, so it has no effect here")
}

// queueShape is what is read of a Queue.
var queueShape = objects.Annotated(objects.Select(
	"spec?", "spec.weight", "spec.capability", "spec.reclaimable", "spec.parent", "spec.deserved", "spec.priority",
	"spec.guarantee?", "spec.guarantee.resource", "spec.affinity?",
	"spec.affinity.nodeGroupAffinity?", "spec.affinity.nodeGroupAffinity."+requiredField, "spec.affinity.nodeGroupAffinity."+preferredField,
	"spec.affinity.nodeGroupAntiAffinity?", "spec.affinity.nodeGroupAntiAffinity."+requiredField,
	"spec.affinity.nodeGroupAntiAffinity."+preferredField,
	"status.state",
), hierarchyAnnotation, hierarchyWeightsAnnotation, nodeGroupLimitsAnnotation)

// queue is a Queue on its way into the snapshot.
type queue struct {
	message *apportionv1.Queue
	// capability, guarantee and deserved are nil where they are absent.
	capability, guarantee, deserved *amounts
	// limits are those of message.NodeGroupLimits, by position.
	limits  []*amounts
	written objects.Origin
}

// queue reads a Queue. An absent weight is 1, which the API server writes. An absent state is Open, as which Volcano's controller takes it:
// a file in a repository has no status. The scheduler alone would take both as they are (AsScheduler).
func (r *reader) queue(m objects.Metadata, root *objects.Value) {
	spec := r.known(root.Field("spec"), queueSpecNames)
	weight := r.CountAt(spec.Field("weight"))
	if spec.Field("weight") == nil && !r.unopened {
		weight = 1
	}
	guarantee := r.known(spec.Field("guarantee"), guaranteeNames)
	q := queue{written: objects.Origin{Doc: r.Doc, At: root.At}}
	q.message = &apportionv1.Queue{
		Name:               m.Name,
		Parent:             r.TextAt(spec.Field("parent")),
		Weight:             &weight,
		Priority:           r.WholeAt(spec.Field("priority")),
		State:              r.queueState(root.Field("status").Field("state")),
		Reclaimable:        r.FlagAt(spec.Field("reclaimable")),
		NodeGroupAffinity:  r.affinity(spec.Field("affinity")),
		FairShareHierarchy: r.hierarchy(m),
		CreateTime:         m.Created,
	}
	q.capability = r.resourcesAt(spec.Field("capability"))
	q.guarantee = r.resourcesAt(guarantee.Field("resource"))
	q.deserved = r.resourcesAt(spec.Field("deserved"))
	q.message.NodeGroupLimits, q.limits = r.nodeGroupLimits(m)
	if !r.background {
		state := root.Field("status").Field("state")
		r.unstated[m.Name] = &unstated{
			queue: q.message, state: state == nil || state.Text == "", weight: spec.Field("weight") == nil,
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
func (u *unstated) take(r *reader, root *objects.Value) {
	if u.state {
		u.queue.State, u.state = r.queueState(root.Field("status").Field("state")), false
	}
	if weight := root.Field("spec").Field("weight"); u.weight && weight != nil {
		*u.queue.Weight, u.weight = r.CountAt(weight), false
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
func (r *reader) queueState(v *objects.Value) apportionv1.QueueState {
	name := r.TextAt(v)
	if name == "" && !r.unopened {
		return apportionv1.QueueState_QUEUE_STATE_OPEN
	}
	state := queueState(name)
	if state == apportionv1.QueueState_QUEUE_STATE_UNKNOWN && name != "" && name != unknownName {
		r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v,
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
func (r *reader) affinity(v *objects.Value) *apportionv1.NodeGroupAffinity {
	v = r.known(v, affinityNames)
	if v == nil {
		return nil
	}
	return &apportionv1.NodeGroupAffinity{
		Affinity:     r.terms(v.Field("nodeGroupAffinity")),
		AntiAffinity: r.terms(v.Field("nodeGroupAntiAffinity")),
	}
}

func (r *reader) terms(v *objects.Value) *apportionv1.NodeGroupTerms {
	v = r.known(v, termsNames)
	if v == nil {
		return nil
	}
	return &apportionv1.NodeGroupTerms{
		RequiredGroups:  r.TextsAt(v.Field(requiredField)),
		PreferredGroups: r.TextsAt(v.Field(preferredField)),
	}
}

// hierarchy reads a queue's place in the tree of hierarchical DRF; nil if it has none.
func (r *reader) hierarchy(m objects.Metadata) *apportionv1.FairShareHierarchy {
	path := r.TextAt(m.Annotations.Field(hierarchyAnnotation))
	if path == "" {
		return nil
	}
	return &apportionv1.FairShareHierarchy{Path: path, Weights: r.TextAt(m.Annotations.Field(hierarchyWeightsAnnotation))}
}

// quantityText is a quantity as written in JSON, of which resource.Quantity.UnmarshalJSON removes the quotes and spaces; null is 0.
type quantityText string

// UnmarshalJSON keeps what resource.Quantity would parse.
func (q *quantityText) UnmarshalJSON(b []byte) error {
	s := string(b)
	if s == "null" {
		s = "0"
	} else if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	*q = quantityText(strings.TrimSpace(s))
	return nil
}

// nodeGroupLimits reads the limits of a queue for groups of nodes, which an annotation has as JSON, and the amounts of each; nil if there
// are none. Volcano 1.16 admits the tasks of a queue to no node if it cannot read the annotation, and Volcano 1.15 ignores it. So such
// limits are invalid, with a warning; only a reader that leaves nothing out refuses the queue.
func (r *reader) nodeGroupLimits(m objects.Metadata) (*apportionv1.NodeGroupLimits, []*amounts) {
	v := m.Annotations.Field(nodeGroupLimitsAnnotation)
	written := r.TextAt(v)
	if written == "" {
		return nil, nil
	}
	found := r.Found
	r.Found = objects.Problems{}
	limits, list := r.limitsIn(v, written)
	own := r.Found
	switch r.Found = found; {
	case own.Total == 0:
		return limits, list
	case !r.Lenient:
		r.Found.Append(&own)
	default:
		p := own.Listed[0]
		r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v,
			"no node takes tasks of the queue under Volcano 1.16, because the limits cannot be read: %s",
			strings.TrimPrefix(strings.TrimPrefix(p.Path, v.Path()), ".")+": "+p.Message)
	}
	return &apportionv1.NodeGroupLimits{Invalid: true}, nil
}

// limitsIn reads the text of the annotation v.
func (r *reader) limitsIn(v *objects.Value, written string) (*apportionv1.NodeGroupLimits, []*amounts) {
	var groups map[string]map[string]quantityText
	if err := json.Unmarshal([]byte(written), &groups); err != nil {
		r.Found.Add(r.Doc, v, "not an object of node groups with their resources: %s", err)
		return nil, nil
	}
	limits, list := &apportionv1.NodeGroupLimits{}, []*amounts(nil)
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		of := &objects.Value{Type: objects.Map, At: v.At, KeyAt: v.KeyAt, Parent: v, Key: group}
		for _, name := range slices.Sorted(maps.Keys(groups[group])) {
			of.Add(&objects.Value{Type: objects.Text, At: v.At, KeyAt: v.KeyAt, Key: name, Text: string(groups[group][name])})
		}
		limits.Groups, list = append(limits.Groups, &apportionv1.NodeGroupLimit{Group: group}), append(list, r.resourcesAt(of))
	}
	if len(list) == 0 {
		return nil, nil
	}
	return limits, list
}
