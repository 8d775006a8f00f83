// Package resource implements the arithmetic of resource vectors: named dimensions, dense rows with the set of dimensions that they name,
// and the few comparisons that policies use.
//
// A dimension of a row is absent, zero, finite or unlimited (+Inf). Absent and zero have equal amounts but differ in presence, and presence
// affects verdicts, as in Volcano's map of scalars (pkg/scheduler/api/resource_info.go).
package resource

import (
	"fmt"
	"math/bits"
	"slices"
)

const (
	// CPU is the dimension of `cpu` in every Dimensions, in milli-cores.
	CPU = 0
	// Memory is the dimension of `memory` in every Dimensions, in bytes.
	Memory = 1
	// MaxDimensions is the maximum number of dimensions of one snapshot, including cpu and memory: a row's presence is one machine word.
	MaxDimensions = 64
	// Threshold is the absolute tolerance of LessEqual and IsEmpty (Volcano's minResource).
	Threshold = 0.1
)

// Mask is a set of dimensions.
type Mask uint64

// Base is the set of cpu and memory, which every account names.
const Base Mask = 1<<CPU | 1<<Memory

// Has reports whether dimension d is in the set.
func (m Mask) Has(d int) bool { return m>>uint(d)&1 != 0 }

// With returns the set with dimension d in it.
func (m Mask) With(d int) Mask { return m | 1<<uint(d) }

// Without returns the set with dimension d not in it.
func (m Mask) Without(d int) Mask { return m &^ (1 << uint(d)) }

// Len returns the number of dimensions in the set.
func (m Mask) Len() int { return bits.OnesCount64(uint64(m)) }

// First returns the lowest dimension of a set that is not empty.
func (m Mask) First() int { return bits.TrailingZeros64(uint64(m)) }

// Rest returns the set without its lowest dimension; ranging is for m := set; m != 0; m = m.Rest() { d := m.First() }.
func (m Mask) Rest() Mask { return m & (m - 1) }

// Dimensions contains the names of the dimensions of rows: cpu, memory, then the others sorted by name, so that no result depends on their
// order in a snapshot. It also stores that order, which is used in answers.
type Dimensions struct {
	names []string
	pods  Mask
	order []int
	// position is the inverse of order.
	position []int
}

// NewDimensions returns the dimensions of the given names together with cpu and memory, and for each given name its dimension. It
// fails if a name is empty or given twice, or if there are more than MaxDimensions.
func NewDimensions(given []string) (Dimensions, []int, error) {
	others := make([]string, 0, len(given))
	var base Mask
	for i, name := range given {
		switch name {
		case "":
			return Dimensions{}, nil, fmt.Errorf("dimensions[%d]: a dimension needs a name", i)
		case "cpu", "memory":
			d := CPU
			if name == "memory" {
				d = Memory
			}
			if base.Has(d) {
				return Dimensions{}, nil, errTwice(i, name)
			}
			base = base.With(d)
		default:
			others = append(others, name)
		}
	}
	slices.Sort(others)
	dims := Dimensions{names: append([]string{"cpu", "memory"}, others...)}
	if len(dims.names) > MaxDimensions {
		return Dimensions{}, nil, fmt.Errorf(
			"dimensions: %d dimensions beside cpu and memory, which every snapshot has; at most %d are possible",
			len(others), MaxDimensions-Base.Len())
	}
	order := make([]int, len(given), len(dims.names))
	var seen Mask
	for i, name := range given {
		d, _ := dims.Index(name)
		if seen.Has(d) {
			return Dimensions{}, nil, errTwice(i, name)
		}
		seen = seen.With(d)
		order[i] = d
	}
	for missing := Base &^ seen; missing != 0; missing = missing.Rest() {
		order = append(order, missing.First())
	}
	dims.order, dims.position = order, make([]int, len(order))
	for i, d := range order {
		dims.position[d] = i
	}
	if d, ok := dims.Index("pods"); ok {
		dims.pods = Mask(0).With(d)
	}
	return dims, order[:len(given):len(given)], nil
}

func errTwice(i int, name string) error {
	return fmt.Errorf("dimensions[%d]: dimension %q is named twice", i, name)
}

// Len returns the number of dimensions, which is the width of rows.
func (d Dimensions) Len() int { return len(d.names) }

// Name returns the name of dimension i.
func (d Dimensions) Name(i int) string { return d.names[i] }

// Names returns all names in order of dimension.
func (d Dimensions) Names() []string { return slices.Clone(d.names) }

// OrderedNames returns all names in the order of Order.
func (d Dimensions) OrderedNames() []string {
	names := make([]string, len(d.order))
	for i, dimension := range d.order {
		names[i] = d.names[dimension]
	}
	return names
}

// Order returns all dimensions in the order in which their names were given, then cpu and memory if they were not given. Callers must not
// modify it.
func (d Dimensions) Order() []int { return d.order }

// Position returns the position of dimension i in Order.
func (d Dimensions) Position(i int) int { return d.position[i] }

// Index returns the dimension with this name.
func (d Dimensions) Index(name string) (int, bool) {
	switch name {
	case "cpu":
		return CPU, true
	case "memory":
		return Memory, true
	}
	i, ok := slices.BinarySearch(d.names[2:], name)
	return i + 2, ok
}

// Pods returns the set with the dimension `pods`, or the empty set: some of Volcano's comparisons ignore it (IsIgnoredScalarResource).
func (d Dimensions) Pods() Mask { return d.pods }
