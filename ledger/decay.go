package ledger

import (
	"math/big"
	"math/bits"
)

// decayBits is the number of bits after the point of decay factors: 1 is 2^62.
const decayBits = 62

// one is the decay factor of the last finished epoch.
const one = uint64(1) << decayBits

// Lambda returns by what usage is multiplied from one epoch to the next, in units of 2^−62: the largest λ with 2·λ^h ≤ 2^(62·h), so that
// usage is halved after h epochs.
func Lambda(h int) uint64 {
	h = min(max(h, 1), MaxHalfLife)
	bound := new(big.Int).Lsh(big.NewInt(1), uint(decayBits*h-1))
	exponent := big.NewInt(int64(h))
	fits := func(x uint64) bool {
		n := new(big.Int).SetUint64(x)
		return n.Exp(n, exponent, nil).Cmp(bound) <= 0
	}
	low, high := uint64(0), one
	for high-low > 1 {
		if middle := low + (high-low)/2; fits(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// decays returns the factors d_0 = 2^62, d_j = ⌊d_(j−1)·λ / 2^62⌋ of n epochs.
func decays(lambda uint64, n int) []uint64 {
	d := make([]uint64, n)
	for j := range d {
		if j == 0 {
			d[j] = one
			continue
		}
		hi, lo := bits.Mul64(d[j-1], lambda)
		d[j] = hi<<(64-decayBits) | lo>>decayBits
	}
	return d
}
