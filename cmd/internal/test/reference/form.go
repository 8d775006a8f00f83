package reference

import (
	"math"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// object is an object of the recorded form. Its values are objects, lists, amounts, text, numbers (float64), truth values, and nil.
type object = map[string]any

// amounts is a resource; the unlimited is +Inf.
type amounts map[string]float64

// form is the answers of one case, on their way into the recorded form.
type form struct {
	*subject
	dimensions []string
	root       object
}

// place says where in the recorded form an answer belongs.
type place func(f *form, v any)

// at is the place under keys, from the root down. An object is merged into the existing one. A failure without keys replaces the whole
// form.
func at(keys ...string) place {
	return func(f *form, v any) {
		if from, ok := v.(object); ok {
			merge(f.object(keys...), from)
			return
		}
		if len(keys) == 0 {
			keys = []string{"failure"}
		}
		f.object(keys[:len(keys)-1]...)[keys[len(keys)-1]] = v
	}
}

// merge adds the members of from to those of into.
func merge(into, from object) {
	for key, value := range from {
		if below, ok := value.(object); ok {
			if there, ok := into[key].(object); ok {
				merge(there, below)
				continue
			}
		}
		into[key] = value
	}
}

// next is the place after the last element of a list at the root.
func next(list string) place {
	return func(f *form, v any) {
		elements, _ := f.root[list].([]any)
		f.root[list] = append(elements, v)
	}
}

// inside is a place within the last element of a list at the root. An element that is a failure stays one.
func inside(list, key string) place {
	return func(f *form, v any) {
		elements, _ := f.root[list].([]any)
		if last, ok := elements[len(elements)-1].(object); ok {
			last[key] = v
		}
	}
}

// object returns the object under keys, made where there is none.
func (f *form) object(keys ...string) object {
	o := f.root
	for _, key := range keys {
		below, ok := o[key].(object)
		if !ok {
			below = object{}
			o[key] = below
		}
		o = below
	}
	return o
}

// amounts is a resource in the recorded form, in which cpu and memory are always there; nil for no resource.
func (f *form) amounts(r *apportionv1.Resource) any {
	switch {
	case r == nil:
		return nil
	case len(r.Dimensions) != len(r.Amounts):
		return malformed
	}
	a := amounts{"cpu": 0, "memory": 0}
	for i, d := range r.Dimensions {
		a[nameAt(f.dimensions, d)] = r.Amounts[i]
	}
	return a
}

// malformed stands for a resource whose lists do not match.
const malformed = "(malformed)"

// dimension is the name of a dominant dimension, which is empty where there is none.
func (f *form) dimension(d *uint32) any {
	if d == nil {
		return ""
	}
	return nameAt(f.dimensions, *d)
}

func (f *form) queue(q uint32) string { return nameAt(f.queueNames, q) }
func (f *form) job(j uint32) string   { return nameAt(f.jobNames, j) }
func (f *form) task(t uint32) string  { return nameAt(f.taskNames, t) }
func (f *form) node(n uint32) string  { return nameAt(f.nodeNames, n) }

// outOfRange replaces a reference of an answer to an entity that the snapshot does not have.
const outOfRange = "(out of range)"

func nameAt(names []string, i uint32) string {
	if int64(i) >= int64(len(names)) {
		return outOfRange
	}
	return names[i]
}

// list brings a list of references into the recorded form.
func list(indices []uint32, name func(uint32) string) []any {
	names := make([]any, len(indices))
	for i, index := range indices {
		names[i] = name(index)
	}
	return names
}

// number is an integer in the recorded form.
func number[N ~int32 | ~uint32](n N) any { return float64(n) }

// sign is -1, 0 or 1.
func sign(x float64) float64 {
	switch {
	case x < 0:
		return -1
	case x > 0:
		return 1
	case math.IsNaN(x):
		return x
	}
	return 0
}
