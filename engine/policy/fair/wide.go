package fair

import (
	"math/big"
	"math/bits"
)

// wide is an unsigned integer of 256 bits, the least significant word first. Charged usage has at most 101 bits, a sum of it over all
// queues 132, and a product with a weight and two factors 205.
type wide [4]uint64

func wideOf(x int64) wide { return wide{uint64(x)} }

func (w wide) plus(o wide) wide {
	carry := uint64(0)
	for i := range w {
		w[i], carry = bits.Add64(w[i], o[i], carry)
	}
	return w
}

func (w wide) times(x int64) wide {
	carry := uint64(0)
	for i := range w {
		if w[i] == 0 && carry == 0 {
			continue
		}
		high, low := bits.Mul64(w[i], uint64(x))
		var over uint64
		w[i], over = bits.Add64(low, carry, 0)
		carry = high + over
	}
	return w
}

// over returns ⌊w / x⌋ for x > 0.
func (w wide) over(x int64) wide {
	rest := uint64(0)
	for i := len(w) - 1; i >= 0; i-- {
		// A division takes longer than all else here, and most words are 0.
		if w[i] != 0 || rest != 0 {
			w[i], rest = bits.Div64(rest, w[i], uint64(x))
		}
	}
	return w
}

func (w wide) compare(o wide) int {
	for i := len(w) - 1; i >= 0; i-- {
		if w[i] != o[i] {
			if w[i] < o[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}

func (w wide) isZero() bool { return w == wide{} }

// float returns about w.
func (w wide) float() float64 {
	x := 0.0
	for i := len(w) - 1; i >= 0; i-- {
		x = x*0x1p64 + float64(w[i])
	}
	return x
}

// quotient returns ⌊w / o⌋, which is below 2^40, for o > 0. It is estimated by floating point, whose error is below 1, and then made exact.
func (w wide) quotient(o wide) int64 {
	q := max(int64(w.float()/o.float()), 0)
	product := o.times(q)
	for product.compare(w) > 0 {
		q--
		product = o.times(q)
	}
	for next := product.plus(o); next.compare(w) <= 0; next = next.plus(o) {
		q++
	}
	return q
}

// Integer returns w as an integer of any size.
func (w wide) Integer() *big.Int {
	x := new(big.Int)
	for i := len(w) - 1; i >= 0; i-- {
		x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(w[i]))
	}
	return x
}
