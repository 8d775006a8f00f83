package volcano

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/apportion/apportion/adapter/objects"
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
