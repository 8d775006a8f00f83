package generate

import (
	"fmt"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// The dimensions that every snapshot that has so many names at these positions.
const (
	cpu = iota
	memory
	pods
	gpu
	storage
	device
)

const mebibyte = 1 << 20

func dimensions(n int) []string {
	names := make([]string, n)
	copy(names, []string{"cpu", "memory", "pods", "nvidia.com/gpu", "ephemeral-storage"})
	for d := device; d < n; d++ {
		names[d] = fmt.Sprintf("example.com/device-%02d", d-device)
	}
	return names
}

// grain returns the unit of the amounts of a dimension: they are its multiples.
func grain(d int) int64 {
	switch d {
	case cpu:
		return 10
	case memory, storage:
		return mebibyte
	case pods:
		return 1
	default:
		return 1000
	}
}

// vector holds a whole amount for each dimension, or absent. Whole amounts up to 2^53 are exact in a float64.
type vector []int64

const absent = -1

// none returns a vector without amounts.
func none(n int) vector {
	v := make(vector, n)
	for d := range v {
		v[d] = absent
	}
	return v
}

// set gives an amount to a dimension that the snapshot has.
func (v vector) set(d int, amount int64) {
	if d < len(v) {
		v[d] = amount
	}
}

// add adds n times o.
func (v vector) add(o vector, n int64) {
	for d, x := range o {
		if x != absent {
			v[d] = max(v[d], 0) + n*x
		}
	}
}

// covers reports whether o fits into v.
func (v vector) covers(o vector) bool {
	for d, x := range o {
		if x > 0 && x > v[d] {
			return false
		}
	}
	return true
}

// take subtracts o from v, which covers it.
func (v vector) take(o vector) {
	for d, x := range o {
		if x > 0 {
			v[d] -= x
		}
	}
}

// part returns so many millionths of an amount, in whole grains.
func part(d int, amount, millionths int64) int64 {
	return amount / grain(d) * millionths / 1_000_000 * grain(d)
}

// resource returns the vector as the contract writes it, nil if it is empty.
func (v vector) resource() *apportionv1.Resource {
	n := 0
	for _, x := range v {
		if x != absent {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	r := &apportionv1.Resource{Dimensions: make([]uint32, 0, n), Amounts: make([]float64, 0, n)}
	for d, x := range v {
		if x != absent {
			r.Dimensions, r.Amounts = append(r.Dimensions, uint32(d)), append(r.Amounts, float64(x))
		}
	}
	return r
}
