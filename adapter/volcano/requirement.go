package volcano

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/apportion/apportion/adapter/objects"
)

// requiredField is the part of an affinity that must hold, preferredField the one that need not.
const (
	requiredField  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferredField = "preferredDuringSchedulingIgnoredDuringExecution"
)

// requirements describes the node selector and the required node affinity of a pod.
func requirements(spec *corev1.PodSpec) []string {
	var parts []string
	if len(spec.NodeSelector) > 0 {
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
			labels = append(labels, key+"="+spec.NodeSelector[key])
		}
		parts = append(parts, "node selector "+strings.Join(labels, ","))
	}
	if spec.Affinity != nil {
		var terms []string
		for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			terms = append(terms, termText(&term))
		}
		parts = append(parts, "node affinity "+few(terms, " or "))
	}
	return parts
}

func termText(term *corev1.NodeSelectorTerm) string {
	if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
		return "of an empty term, which matches no node"
	}
	var parts []string
	for _, r := range slices.Concat(term.MatchExpressions, term.MatchFields) {
		text := r.Key + " " + string(r.Operator)
		if len(r.Values) > 0 {
			text += " [" + few(r.Values, ", ") + "]"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " and ")
}

// unjudged lists the constraints on a pod's placement that a snapshot does not express, in order of their numbers. The rules on other pods
// and the claims of volumes are resolved later.
func (r *reader) unjudged(spec *objects.Value) []apportionConstraint {
	var list []apportionConstraint
	add := func(stands bool, c apportionConstraint) {
		if stands {
			list = append(list, c)
		}
	}
	add(anyOf(spec.Field("volumes"), exclusiveVolume), constraintVolumes)
	add(anyOf(spec.Field("resourceClaims"), always), constraintResourceClaims)
	return list
}

func always(*objects.Value) bool { return true }

// anyOf reports whether any element of a list satisfies is.
func anyOf(list *objects.Value, is func(*objects.Value) bool) bool {
	return list != nil && list.Type == objects.List && slices.ContainsFunc(list.Items, is)
}

// conditionOf is the last condition of a type; nil if there is none.
func conditionOf(status *objects.Value, kind string) *objects.Value {
	conditions := status.Field("conditions")
	if conditions == nil || conditions.Type != objects.List {
		return nil
	}
	for _, c := range slices.Backward(conditions.Items) {
		if c.TextOf("type") == kind {
			return c
		}
	}
	return nil
}

// reported returns the reason and the message of a condition.
func (r *reader) reported(condition *objects.Value) string {
	if condition == nil {
		return ""
	}
	reason, message := condition.TextOf("reason"), condition.TextOf("message")
	if reason != "" && message != "" {
		return r.Shortened(reason + ": " + message)
	}
	return r.Shortened(reason + message)
}

// refusal returns the report of the condition of this type if it has this status.
func (r *reader) refusal(status *objects.Value, kind, is string) string {
	condition := conditionOf(status, kind)
	if condition == nil || condition.TextOf("status") != is {
		return ""
	}
	return r.reported(condition)
}
