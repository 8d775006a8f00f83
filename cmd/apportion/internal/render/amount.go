package render

import (
	"strings"

	"github.com/apportion/apportion/contract/quantity"
	"github.com/apportion/apportion/contract/text"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// at is the amount of a dimension, and whether it is present.
func at(resource *apportionv1.Resource, dimension int) (float64, bool) {
	for i, index := range resource.GetDimension() {
		if int(index) == dimension && i < len(resource.GetAmount()) {
			return resource.GetAmount()[i], true
		}
	}
	return 0, false
}

// value is the amount of a dimension, 0 if it is absent.
func value(resource *apportionv1.Resource, dimension int) float64 {
	amount, _ := at(resource, dimension)
	return amount
}

// cell shows the amount of a dimension, - if it is absent.
func cell(names text.Names, resource *apportionv1.Resource, dimension int) string {
	amount, present := at(resource, dimension)
	if !present {
		return "-"
	}
	return quantity.Short(names.Dimensions[dimension], amount)
}

// Amounts lists a resource in one line: `8 cpu, 64Gi memory, 8 nvidia.com/gpu`. pods are left out where other things are listed.
func Amounts(names text.Names, resource *apportionv1.Resource) string {
	var parts []string
	pods := ""
	for i, name := range names.Dimensions {
		amount, present := at(resource, i)
		switch {
		case !present:
		case name == "pods":
			pods = quantity.Short(name, amount) + " " + text.Verb(int(amount), "pod", "pods")
		case amount != 0:
			parts = append(parts, quantity.Short(name, amount)+" "+name)
		}
	}
	if len(parts) > 0 {
		return strings.Join(parts, ", ")
	}
	if pods != "" {
		return pods
	}
	return "nothing"
}
