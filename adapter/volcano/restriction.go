package volcano

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

type apportionConstraint = apportionv1.PlacementConstraint

// The constraints that pods and PodGroups have.
const (
	constraintVolumes         = apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_VOLUMES
	constraintHostPorts       = apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_HOST_PORTS
	constraintPodAffinity     = apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_POD_AFFINITY
	constraintTopologySpread  = apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_TOPOLOGY_SPREAD
	constraintResourceClaims  = apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_RESOURCE_CLAIMS
	constraintNetworkTopology = apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_NETWORK_TOPOLOGY
	constraintLeftOut         = apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_LEFT_OUT
)

// placed is a pod's placement and the constraints that node sets do not express.
type placed struct {
	placement *placement
	unjudged  []apportionConstraint
	traits    *traits
	claims    []claimed
	// class is the number of its class in the snapshot's rules on other pods.
	class uint32
}

// usedPlacements lists the placements of the tasks of these jobs in the order of first use.
func usedPlacements(jobs []*job) []*placement {
	var list []*placement
	seen := map[*placement]bool{}
	for _, j := range jobs {
		for _, group := range j.placed {
			for _, p := range group {
				if !seen[p.placement] {
					seen[p.placement] = true
					list = append(list, p.placement)
				}
			}
		}
	}
	return list
}

// restrictTasks sets the node sets and the constraints of a job's tasks. Values that all tasks of a group share are set at the group.
func (j *job) restrictTasks() {
	for i, group := range j.message.Groups {
		tasks := j.placed[i]
		group.NodeSet = shared(tasks, func(p *placed) string { return p.placement.set })
		group.UnjudgedConstraints = sharedConstraints(tasks)
		group.PodClass = shared(tasks, func(p *placed) uint32 { return p.class })
		if group.Role == leftOutRole {
			group.UnjudgedConstraints = append(group.UnjudgedConstraints, constraintLeftOut)
		}
		if j.topology {
			group.UnjudgedConstraints = append(group.UnjudgedConstraints, constraintNetworkTopology)
		}
		for k, p := range tasks {
			own := slices.DeleteFunc(slices.Clone(p.unjudged), func(c apportionConstraint) bool {
				return slices.Contains(group.UnjudgedConstraints, c)
			})
			if p.placement.set == group.NodeSet && len(own) == 0 && p.class == group.PodClass {
				continue
			}
			task := group.Tasks[k]
			if task.Detail == nil {
				task.Detail = &apportionv1.TaskDetail{}
			}
			task.Detail.UnjudgedConstraints = own
			if p.class != group.PodClass {
				task.Detail.PodClass = p.class
			}
			if p.placement.set != group.NodeSet {
				task.Detail.NodeSet = p.placement.set
			}
		}
	}
}

// shared returns the value that most tasks have, the earliest of several; none if a task has none, because a task cannot override a value
// of its group with none.
func shared[T comparable](tasks []placed, of func(*placed) T) T {
	var none T
	values := make([]T, len(tasks))
	for i := range tasks {
		if values[i] = of(&tasks[i]); values[i] == none {
			return none
		}
	}
	return commonest(values)
}

// commonest returns the value that occurs most often, the earliest of several; the zero value if there is none.
func commonest[T comparable](values []T) (most T) {
	counts := map[T]int{}
	for _, value := range values {
		counts[value]++
	}
	for _, value := range values {
		if counts[value] > counts[most] {
			most = value
		}
	}
	return most
}

// sharedConstraints are those that all tasks have.
func sharedConstraints(tasks []placed) []apportionConstraint {
	if len(tasks) == 0 {
		return nil
	}
	shared := slices.Clone(tasks[0].unjudged)
	for _, p := range tasks[1:] {
		shared = slices.DeleteFunc(shared, func(c apportionConstraint) bool { return !slices.Contains(p.unjudged, c) })
	}
	return shared
}

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
