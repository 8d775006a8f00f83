package volcano

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// unit is the conversion of a quantity of a resource to an amount.
type unit uint8

const (
	// dropped resources are left out without a warning, as in Volcano.
	dropped unit = iota
	// milli rounds up to thousandths.
	milli
	// whole rounds up to ones.
	whole
)

// unitOf returns the unit in which Volcano reads a resource: cpu in thousandths, memory in bytes, pods as they are; then what Kubernetes'
// scheduler accounts as a scalar (huge pages, attachable volumes, names with a domain) and ephemeral-storage, all in thousandths.
func unitOf(name string) unit {
	switch {
	case name == string(corev1.ResourceMemory), name == string(corev1.ResourcePods):
		return whole
	case name == string(corev1.ResourceCPU), name == string(corev1.ResourceEphemeralStorage),
		strings.HasPrefix(name, corev1.ResourceHugePagesPrefix), strings.HasPrefix(name, corev1.ResourceAttachableVolumesPrefix):
		return milli
	case strings.HasPrefix(name, "count/"):
		return dropped
	case strings.Contains(name, corev1.ResourceDefaultNamespacePrefix):
		return milli
	case strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix), !strings.Contains(name, "/"):
		return dropped
	case len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+name)) == 0:
		return milli
	}
	return dropped
}

// amountOf is the float64 that Volcano accounts with. Each quantity is rounded by itself.
func amountOf(q *resource.Quantity, u unit) float64 {
	if u == whole {
		return float64(q.Value())
	}
	return float64(q.MilliValue())
}

// overflows reports whether a quantity does not fit the int64 that amountOf uses. The result of amountOf is undefined then.
func overflows(q *resource.Quantity, u unit) bool {
	if u == whole {
		return q.CmpInt64(math.MaxInt64) > 0
	}
	return q.CmpInt64(math.MaxInt64/1000) > 0
}

// resourceName is the name of a resource, held once for all objects and only as long as one of them has it.
type resourceName = unique.Handle[string]

// dimension is the name of a resource and its unit.
type dimension struct {
	unit unit
	name resourceName
}

// units has the unit of each resource name that was read. It may drop cached values at any time.
type units map[string]dimension

// of returns the dimension of a name; fresh says that the name is new.
func (u units) of(name string) (dim dimension, fresh bool) {
	if dim, ok := u[name]; ok {
		return dim, false
	}
	dim = dimension{unit: unitOf(name), name: unique.Make(name)}
	u[name] = dim
	return dim, true
}

// dimensions numbers the resource names of a snapshot in the order of their first appearance. The final order is only known at the end.
type dimensions struct {
	byName map[resourceName]uint32
	names  []string
	// written are the messages that hold provisional numbers until finish.
	written []*apportionv1.Resource
}

// message converts amounts; nil stays nil.
func (d *dimensions) message(a *amounts) *apportionv1.Resource {
	if a == nil {
		return nil
	}
	r := &apportionv1.Resource{}
	for _, entry := range a.entries {
		index, ok := d.byName[entry.name]
		if !ok {
			if d.byName == nil {
				d.byName = make(map[resourceName]uint32)
			}
			index = uint32(len(d.names))
			d.byName[entry.name], d.names = index, append(d.names, entry.name.Value())
		}
		r.Dimension, r.Amount = append(r.Dimension, index), append(r.Amount, entry.amount)
	}
	d.written = append(d.written, r)
	return r
}

// finish returns the names, cpu and memory first and the others in their order, and renumbers every message.
func (d *dimensions) finish() []string {
	order := make([]int, len(d.names))
	for index := range order {
		order[index] = index
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(d.names[a]), rank(d.names[b])), cmp.Compare(d.names[a], d.names[b]))
	})
	final := make([]uint32, len(order))
	names := make([]string, 0, len(order))
	for position, index := range order {
		final[index] = uint32(position)
		names = append(names, d.names[index])
	}
	for _, r := range d.written {
		renumber(r, final)
	}
	return names
}

// rank puts cpu and memory before the others.
func rank(name string) int {
	switch name {
	case string(corev1.ResourceCPU):
		return 0
	case string(corev1.ResourceMemory):
		return 1
	}
	return 2
}

// renumber gives r its final dimensions, in ascending order.
func renumber(r *apportionv1.Resource, final []uint32) {
	type entry struct {
		dimension uint32
		amount    float64
	}
	entries := make([]entry, len(r.Dimension))
	for i, index := range r.Dimension {
		entries[i] = entry{final[index], r.Amount[i]}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.dimension, b.dimension) })
	for i, e := range entries {
		r.Dimension[i], r.Amount[i] = e.dimension, e.amount
	}
}
