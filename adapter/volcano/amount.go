package volcano

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// amounts is a sparse vector, ascending by the names of the resources. A resource that is named with 0 is present.
type amounts struct {
	entries []entry
}

type entry struct {
	name   resourceName
	amount float64
}

// at returns the entry of a resource. If there is none, it adds one with amount 0 and returns fresh.
func (a *amounts) at(name resourceName) (place *entry, fresh bool) {
	i := len(a.entries)
	for i > 0 && a.entries[i-1].name.Value() >= name.Value() {
		i--
	}
	if i < len(a.entries) && a.entries[i].name == name {
		return &a.entries[i], false
	}
	a.entries = slices.Insert(a.entries, i, entry{name: name})
	return &a.entries[i], true
}

// add adds an amount of one resource.
func (a *amounts) add(name resourceName, amount float64) {
	place, _ := a.at(name)
	place.amount += amount
}

// plus adds b, resource by resource.
func (a *amounts) plus(b *amounts) {
	if b == nil {
		return
	}
	for _, e := range b.entries {
		a.add(e.name, e.amount)
	}
}

// raise takes the larger of both for every resource that either has.
func (a *amounts) raise(b *amounts) {
	if b == nil {
		return
	}
	for _, e := range b.entries {
		if place, fresh := a.at(e.name); fresh || e.amount > place.amount {
			place.amount = e.amount
		}
	}
}

// key is equal for equal vectors only.
func (a *amounts) key(buffer []byte) []byte {
	for _, e := range a.entries {
		name := e.name.Value()
		buffer = append(binary.AppendUvarint(buffer, uint64(len(name))), name...)
		buffer = binary.LittleEndian.AppendUint64(buffer, math.Float64bits(e.amount))
	}
	return buffer
}

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
		r.Dimensions, r.Amounts = append(r.Dimensions, index), append(r.Amounts, entry.amount)
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
	entries := make([]entry, len(r.Dimensions))
	for i, index := range r.Dimensions {
		entries[i] = entry{final[index], r.Amounts[i]}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.dimension, b.dimension) })
	for i, e := range entries {
		r.Dimensions[i], r.Amounts[i] = e.dimension, e.amount
	}
}

// resourcesAt reads quantities by resource name. nil: absent. Names that Volcano drops are left out.
func (r *reader) resourcesAt(v *objects.Value) *amounts {
	if !r.Is(v, objects.Map) {
		return nil
	}
	list := &amounts{entries: make([]entry, 0, len(v.Items)+1)}
	for _, item := range v.Items {
		q, ok := r.QuantityAt(item)
		if !ok {
			continue
		}
		dim, fresh := r.units.of(item.Key)
		if dim.unit == dropped {
			if fresh && !quotaNames(item.Key) {
				r.WarnDropped(item, "%q is not a resource that Volcano accounts for", item.Key)
			}
			continue
		}
		amount := amountOf(&q, dim.unit)
		if overflows(&q, dim.unit) {
			if amount < 0 {
				r.Found.Add(r.Doc, item, "exceeds Volcano's range: %q", item.Text)
				continue
			}
			r.Warn(apportionv1.WarningCode_WARNING_CODE_SETTING_IGNORED, item,
				"exceeds Volcano's range; it reads %q as %g", item.Text, amount)
		}
		place, _ := list.at(dim.name)
		place.amount = amount
	}
	return list
}
