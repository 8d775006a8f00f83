package fair

import (
	"math"
	"math/big"
)

// lacks are how much the lack under each line changes, per dimension, in raw amounts: a change of the potential is the sum over the
// dimensions of change / total.
type lacks [lines][]int64

func newLacks(width int) lacks {
	cells := make([]int64, lines*width)
	return lacks{cells[:width:width], cells[width : 2*width : 2*width], cells[2*width:]}
}

func (l *lacks) clear() {
	for i := range l {
		clear(l[i])
	}
}

func (l *lacks) copyFrom(o *lacks) {
	for i := range l {
		copy(l[i], o[i])
	}
}

// addLoss adds what the lacks of a leaf that holds `held` rise by when it loses an amount.
func (s *State) addLoss(l *lacks, p place, d int, held, amount int64) {
	for i := range l {
		line := s.line(i, p, d)
		l[i][d] += max(0, line-held+amount) - max(0, line-held)
	}
}

// divided returns what there is of a dimension in the division, in raw amounts. Dimensions that there is nothing of have no part in the
// potential.
func (s *State) divided(d int) int64 { return s.division.columns[d].Total * s.quantum[d] }

// compareLacks compares two changes of the potential line by line; at is the line that decides, lines if none does.
func (s *State) compareLacks(l, r *lacks) (c, at int) {
	for at = range l {
		if c = s.compareLack(l[at], r[at]); c != 0 {
			return c, at
		}
	}
	return 0, lines
}

// compareLack compares Σ l / total with Σ r / total. It decides by floating point where the difference is beyond any error of it, and
// exactly elsewhere.
func (s *State) compareLack(l, r []int64) int {
	sum, size, differing, last := 0.0, 0.0, 0, int64(0)
	for d := range l {
		if total := s.divided(d); l[d] != r[d] && total > 0 {
			differing++
			last = l[d] - r[d]
			part := float64(last) / float64(total)
			sum += part
			size += math.Abs(part)
		}
	}
	switch differing {
	case 0:
		return 0
	case 1:
		return sign64(last)
	}
	// Each part is wrong by less than 2^-51 of itself, each of at most 64 sums by less than 2^-52 of size.
	if math.Abs(sum) > size*0x1p-44 {
		return sign64(int64(math.Copysign(1, sum)))
	}
	totals := s.scratch.asked
	for d := range totals {
		totals[d] = s.divided(d)
	}
	return fraction(l, totals).Cmp(fraction(r, totals))
}

func sign64(x int64) int {
	switch {
	case x < 0:
		return -1
	case x > 0:
		return 1
	}
	return 0
}

// fraction returns Σ l / total.
func fraction(l, totals []int64) *big.Rat {
	sum, part := new(big.Rat), new(big.Rat)
	for d, x := range l {
		if x != 0 && totals[d] > 0 {
			sum.Add(sum, part.SetFrac64(x, totals[d]))
		}
	}
	return sum
}

func fractions(l *lacks, totals []int64) [lines]*big.Rat {
	var f [lines]*big.Rat
	for i := range f {
		f[i] = fraction(l[i], totals)
	}
	return f
}

// approximate returns about Σ l / total, for people.
func (s *State) approximate(l []int64) float64 {
	sum := 0.0
	for d, x := range l {
		if total := s.divided(d); x != 0 && total > 0 {
			sum += float64(x) / float64(total)
		}
	}
	return sum
}

// Potential returns what all leaves lack under each line, as shares of the cluster summed over the dimensions.
func (s *State) Potential() [lines]*big.Rat {
	s.settle()
	l, totals := newLacks(s.width), make([]int64, s.width)
	for d := range totals {
		totals[d] = s.divided(d)
		for _, p := range s.tree.leaves {
			for i := range l {
				l[i][d] += max(0, s.line(i, p, d)-s.row(s.accounts.held, p)[d])
			}
		}
	}
	return fractions(&l, totals)
}
