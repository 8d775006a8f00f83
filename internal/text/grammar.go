package text

import (
	"fmt"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Constraints names constraints on placement: `volumes and ports of the node`.
func Constraints(list []apportionv1.PlacementConstraint) string {
	var parts []string
	for _, constraint := range list {
		parts = append(parts, constraintNames[constraint])
	}
	return and(slices.DeleteFunc(parts, func(s string) bool { return s == "" }))
}

var constraintNames = map[apportionv1.PlacementConstraint]string{
	apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_VOLUMES:          "volumes",
	apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_HOST_PORTS:       "ports of the node",
	apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_POD_AFFINITY:     "affinities to other pods",
	apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_TOPOLOGY_SPREAD:  "topology spread constraints",
	apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_RESOURCE_CLAIMS:  "resource claims",
	apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_NETWORK_TOPOLOGY: "network topology",
	apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_OTHER:            "other constraints",
	apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_LEFT_OUT:         "tasks that were left out because they are invalid",
}

// Amounts lists what a resource has that is not zero, `4 cpu, 64Gi memory`; pods only if there is nothing else.
func Amounts(names Names, resource *apportionv1.Resource) string {
	return Sentence(amounts(names, resource))
}

// amounts is Amounts for a text that Sentence completes.
func amounts(names Names, resource *apportionv1.Resource) string {
	var parts []string
	for i, index := range resource.GetDimension() {
		if i >= len(resource.GetAmount()) {
			break
		}
		name, amount := names.Dimension(index), resource.GetAmount()[i]
		if amount != 0 && name != "pods" {
			parts = append(parts, Figure(name, amount)+" "+name)
		}
	}
	if len(parts) == 0 {
		return "no resources"
	}
	return strings.Join(parts, ", ")
}

// Are is a number of things and the verb: `1 pod is`, `3 pods are`.
func Are(n int, noun string) string { return Count(n, noun) + " " + plural2(n, "is", "are") }

// Verb is the form of a verb for a number of things.
func Verb(n int, one, several string) string { return plural2(n, one, several) }

// ofThem is a part of several things that were counted before: `2 of them`, or `it` for a single one.
func ofThem(n, of int) string {
	if of == 1 {
		return "it"
	}
	return fmt.Sprintf("%d of them", n)
}

// Count is a number with a noun: `1 task`, `2 tasks`.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// and joins parts: `a, b and c`.
func and(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

func plural(n int, noun string) string { return plural2(n, noun, noun+"s") }

func plural2(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}
