package checker

import (
	"fmt"
	"math/big"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// division checks one division: it adds up, keeps its bounds, and no quantum went to a later signpost than one that was refused.
func (c *check) division(
	path string, division *apportionv1.FairDivision, q int, b map[int]bound, shares map[int]int64, weightOf func(q int) int64,
) {
	amount, kids := shares[q], c.kids[q]
	var lo, m, all, most int64
	for _, k := range kids {
		lo, m = lo+b[k].lo, m+b[k].m
	}
	kind := apportionv1.FairCase_FAIR_CASE_WEIGHT
	if lo > amount {
		kind = apportionv1.FairCase_FAIR_CASE_GUARANTEE
	} else if m > amount {
		kind = apportionv1.FairCase_FAIR_CASE_DESERVED
	}
	expect(c, path+".amount", int64(division.GetAmount()), amount)
	expect(c, path+".case", division.GetCase(), kind)
	expect(c, path+": number of children", len(division.GetChildren()), len(kids))
	var last, next *award
	for i, k := range kids[:min(len(kids), len(division.GetChildren()))] {
		p, at := division.GetChildren()[i], fmt.Sprintf("%s.children[%d]", path, i)
		start, top, base, weight := c.terms(kind, b[k], weightOf(k))
		share := int64(p.GetShare())
		shares[k], all = share, all+share
		expect(c, at+".queue", queueOf(p.Queue), k)
		for _, n := range []struct {
			name      string
			got, want int64
		}{
			{"guaranteed", int64(p.GetGuaranteed()), b[k].lo},
			{"begin", int64(p.GetBegin()), b[k].m},
			{"useful", int64(p.GetUseful()), b[k].hi},
			{"weight", int64(p.GetWeight()), weight},
			{"start", int64(p.GetStart()), start},
			{"ceiling", int64(p.GetCeiling()), top},
			{"base", int64(p.GetBase()), base},
		} {
			expect(c, at+"."+n.name, n.got, n.want)
		}
		expect(c, at+".bound", p.GetBound(), boundOf(share, start, top))
		if weight == 0 {
			top = start
		}
		most += top
		if share < start || share > top {
			c.wrong("%s.share %d is not within %d and %d", at, share, start, top)
			continue
		}
		if a := newAward(share-base, -1, weight, i); share > start && (last == nil || last.before(a)) {
			last = a
		}
		if a := newAward(share-base, 1, weight, i); share < top && (next == nil || a.before(next)) {
			next = a
		}
	}
	expect(c, path+": sum of shares", all, min(amount, most))
	if last != nil && next != nil && next.before(last) {
		c.wrong("%s: a quantum of child %d belongs to child %d", path, last.rank, next.rank)
	}
	level := "none"
	if last != nil {
		level = last.signpost.String()
	}
	expect(c, path+".level", fractionText(division.GetLevel()), level)
}

// boundOf says what holds a share.
func boundOf(share, start, ceiling int64) apportionv1.FairBound {
	switch share {
	case ceiling:
		return apportionv1.FairBound_FAIR_BOUND_UPPER
	case start:
		return apportionv1.FairBound_FAIR_BOUND_LOWER
	}
	return apportionv1.FairBound_FAIR_BOUND_LEVEL
}

// award is the signpost of a quantum of a child, by which quanta are given; of equal ones the first in rank comes first.
type award struct {
	signpost *big.Rat
	rank     int
}

// newAward is (2 quanta + sign) / (2 weight): of the quantum awarded last for a sign of -1, of the next one for 1. A weight of 0 has none.
func newAward(quanta, sign, weight int64, rank int) *award {
	if weight == 0 {
		return &award{new(big.Rat), rank}
	}
	return &award{new(big.Rat).SetFrac(big.NewInt(2*quanta+sign), new(big.Int).Lsh(big.NewInt(weight), 1)), rank}
}

func (a *award) before(o *award) bool {
	c := a.signpost.Cmp(o.signpost)
	return c < 0 || c == 0 && a.rank < o.rank
}

// fractionText is a fraction as written, so that one that is not in lowest terms is found too.
func fractionText(f *apportionv1.Fraction) string {
	if f == nil {
		return "none"
	}
	return f.GetNumerator() + "/" + f.GetDenominator()
}

// terms are the bounds of a child's share in a case of section 3.
func (c *check) terms(kind apportionv1.FairCase, b bound, own int64) (start, ceiling, base, weight int64) {
	switch kind {
	case apportionv1.FairCase_FAIR_CASE_GUARANTEE:
		return 0, b.lo, 0, b.guaranteed
	case apportionv1.FairCase_FAIR_CASE_DESERVED:
		return b.lo, b.m, 0, b.deserving
	case apportionv1.FairCase_FAIR_CASE_UNSPECIFIED, apportionv1.FairCase_FAIR_CASE_WEIGHT:
	}
	if c.settings.GetBase() > apportionv1.FairBase_FAIR_BASE_NONE {
		base = b.m
	}
	return b.m, b.hi, base, own
}

// portions checks the lines of every portion, and the root's own numbers.
func (c *check) portions(name string, divisions []*apportionv1.FairDivision) {
	for i, division := range divisions {
		d := int(division.GetDimension())
		path := fmt.Sprintf("%s[%d]", name, i)
		portions := division.GetChildren()
		own := division.GetRoot()
		expect(c, path+": the root's own numbers", own != nil, name != "sated" && queueOf(division.Queue) == c.top)
		if own != nil {
			b := c.bounds[min(d, len(c.bounds)-1)][c.top]
			portions = append(slices.Clip(portions), own)
			want := &apportionv1.FairPortion{
				Queue: division.Queue, Guaranteed: uint64(b.lo), Begin: uint64(b.m), Useful: uint64(b.hi), Share: division.GetAmount(),
				GuaranteeLine: own.GetGuaranteeLine(), FairLine: own.GetFairLine(),
			}
			expect(c, path+".root", own.String(), want.String())
		}
		for k, p := range portions {
			lines, ok := c.lines[queueOf(p.Queue)]
			if !ok || d >= len(lines) {
				continue // Named above already.
			}
			at := fmt.Sprintf("%s, line %d", path, k)
			expect(c, at+".guarantee_line", int64(p.GetGuaranteeLine()), lines[d][0])
			expect(c, at+".fair_line", int64(p.GetFairLine()), lines[d][1])
		}
	}
}
