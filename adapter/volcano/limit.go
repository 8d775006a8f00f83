package volcano

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

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
func (r *reader) nodeGroupLimits(m metadata) (*apportionv1.NodeGroupLimits, []*amounts) {
	v := m.annotations.field(nodeGroupLimitsAnnotation)
	written := r.textAt(v)
	if written == "" {
		return nil, nil
	}
	found := r.found
	r.found = problems{}
	limits, list := r.limitsIn(v, written)
	own := r.found
	switch r.found = found; {
	case own.total == 0:
		return limits, list
	case !r.lenient:
		r.found.append(&own)
	default:
		p := own.listed[0]
		r.warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, v,
			"no node takes tasks of the queue under Volcano 1.16, because the limits cannot be read: %s",
			strings.TrimPrefix(strings.TrimPrefix(p.Path, v.path()), ".")+": "+p.Message)
	}
	return &apportionv1.NodeGroupLimits{Invalid: true}, nil
}

// limitsIn reads the text of the annotation v.
func (r *reader) limitsIn(v *value, written string) (*apportionv1.NodeGroupLimits, []*amounts) {
	var groups map[string]map[string]quantityText
	if err := json.Unmarshal([]byte(written), &groups); err != nil {
		r.found.add(r.doc, v, "not an object of node groups with their resources: %s", err)
		return nil, nil
	}
	limits, list := &apportionv1.NodeGroupLimits{}, []*amounts(nil)
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		of := &value{kind: object, at: v.at, keyAt: v.keyAt, parent: v, key: group}
		for _, name := range slices.Sorted(maps.Keys(groups[group])) {
			of.add(&value{kind: text, at: v.at, keyAt: v.keyAt, key: name, text: string(groups[group][name])})
		}
		limits.Groups, list = append(limits.Groups, &apportionv1.NodeGroupLimit{Group: group}), append(list, r.resourcesAt(of))
	}
	if len(list) == 0 {
		return nil, nil
	}
	return limits, list
}
