package client

import (
	"maps"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/quantity"
)

// Resources are quantities by the name of their dimension, as Kubernetes writes them: {"cpu": "500m", "memory": "4Gi", "nvidia.com/gpu":
// "8"}; Unlimited has no bound. A missing name is absent, which differs from "0". Nil means that no resources are given, Resources{} that
// they are empty.
type Resources map[string]string

// Unlimited is the quantity without an upper bound.
const Unlimited = quantity.Unlimited

// Amounts returns the quantities of a resource in an answer with this basis. Fractions are rounded to the thousandth, memory to the byte;
// the exact numbers are in the resource itself. It returns nil for nil.
func Amounts(basis *apportionv1.Basis, resource *apportionv1.Resource) Resources {
	if resource == nil {
		return nil
	}
	amounts := make(Resources, len(resource.GetDimensions()))
	dimensions := basis.GetDimensions()
	for i, index := range resource.GetDimensions() {
		if int(index) < len(dimensions) && i < len(resource.GetAmounts()) {
			name := dimensions[index]
			amounts[name] = quantity.Format(name, resource.GetAmounts()[i])
		}
	}
	return amounts
}

// String lists the quantities, cpu and memory first, the others by name.
func (r Resources) String() string {
	parts := make([]string, 0, len(r))
	for _, name := range inOrder(slices.Collect(maps.Keys(r))) {
		parts = append(parts, name+": "+r[name])
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// inOrder sorts names of dimensions: cpu, memory, the others by name.
func inOrder(names []string) []string {
	rank := func(name string) string {
		switch name {
		case "cpu":
			return "\x00"
		case "memory":
			return "\x01"
		}
		return name
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(rank(a), rank(b)) })
	return names
}
