package ledger

import (
	"math"
	"math/big"
	"math/bits"
)

// Amount is an unsigned number of 128 bits: raw amounts times seconds. Bytes of memory times seconds of an epoch exceed 64 bits.
type Amount struct{ Hi, Lo uint64 }

// Plus returns a + b.
func (a Amount) Plus(b Amount) Amount {
	lo, carry := bits.Add64(a.Lo, b.Lo, 0)
	hi, _ := bits.Add64(a.Hi, b.Hi, carry)
	return Amount{hi, lo}
}

// Less reports whether a < b.
func (a Amount) Less(b Amount) bool { return a.Hi < b.Hi || a.Hi == b.Hi && a.Lo < b.Lo }

// Big returns a as a big integer.
func (a Amount) Big() *big.Int {
	n := new(big.Int).SetUint64(a.Hi)
	return n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(a.Lo))
}

// String returns a in decimal.
func (a Amount) String() string { return a.Big().String() }

// Over returns ⌊a / d⌋, at most 2^63 − 1. d = 0 counts as 1.
func (a Amount) Over(d uint64) int64 {
	s := sum{a.Lo, a.Hi}
	return s.over(d, 0)
}

// times returns amount × seconds; both are at least 0.
func times(amount, seconds int64) Amount {
	hi, lo := bits.Mul64(uint64(amount), uint64(seconds))
	return Amount{hi, lo}
}

// sum is an unsigned number of 256 bits, the lowest word first.
type sum [4]uint64

// add adds a × factor.
func (s *sum) add(a Amount, factor uint64) {
	hi, lo := bits.Mul64(a.Lo, factor)
	top, mid := bits.Mul64(a.Hi, factor)
	var c uint64
	s[0], c = bits.Add64(s[0], lo, 0)
	s[1], c = bits.Add64(s[1], hi, c)
	s[2], c = bits.Add64(s[2], 0, c)
	s[3] += c
	s[1], c = bits.Add64(s[1], mid, 0)
	s[2], c = bits.Add64(s[2], top, c)
	s[3] += c
}

// over returns ⌊s / (2^shift · d)⌋ for a shift below 64, at most 2^63 − 1. d = 0 counts as 1.
func (s *sum) over(d uint64, shift uint) int64 {
	d = max(d, 1)
	n := *s
	if shift > 0 {
		for i := range n {
			n[i] >>= shift
			if i+1 < len(n) {
				n[i] |= s[i+1] << (64 - shift)
			}
		}
	}
	var quotient sum
	var rest uint64
	for i := len(n) - 1; i >= 0; i-- {
		quotient[i], rest = bits.Div64(rest, n[i], d)
	}
	if quotient[1]|quotient[2]|quotient[3] != 0 || quotient[0] > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(quotient[0])
}

// plus adds another sum.
func (s *sum) plus(t *sum) {
	var c uint64
	for i := range s {
		s[i], c = bits.Add64(s[i], t[i], c)
	}
}
