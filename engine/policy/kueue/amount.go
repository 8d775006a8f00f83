package kueue

import "math"

// Amount is an amount of a resource: thousandths of a CPU, whole units of everything else. Arithmetic saturates as Kueue's does
// (pkg/resources/amount.go).
type Amount int64

// Unlimited is an amount without a bound. Sums that overflow are unlimited, too.
const Unlimited Amount = math.MaxInt64

// least is what a bounded amount minus Unlimited is.
const least Amount = math.MinInt64

// plus returns a + b: Unlimited if one of them is.
func (a Amount) plus(b Amount) Amount {
	switch {
	case a == Unlimited || b == Unlimited || b > 0 && a > math.MaxInt64-b:
		return Unlimited
	case b < 0 && a < math.MinInt64-b:
		return least
	}
	return a + b
}

// minus returns a - b: 0 if both are Unlimited, Unlimited if only a is, the least amount if only b is.
func (a Amount) minus(b Amount) Amount {
	switch {
	case a == Unlimited && b == Unlimited:
		return 0
	case a == Unlimited || b < 0 && a > math.MaxInt64+b:
		return Unlimited
	case b == Unlimited || b > 0 && a < math.MinInt64+b:
		return least
	}
	return a - b
}

// times returns a * n, saturated, for n ≥ 0.
func (a Amount) times(n int64) Amount {
	switch {
	case n == 0 || a == 0:
		return 0
	case a > 0 && a > Amount(math.MaxInt64/n):
		return Unlimited
	case a < 0 && a < Amount(math.MinInt64/n):
		return least
	}
	return a * Amount(n)
}
