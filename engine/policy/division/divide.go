package division

import (
	"math/big"
	"math/bits"
)

// Problem is an amount to divide among children, which are in order of rank. Amounts are in quanta. Where Start or Base is nil it is 0
// for every child.
//
// Each quantum goes to the child whose signpost (share - base + 1/2) / weight is smallest, among equals to the first, until the amount is
// divided or no child with a weight is below its ceiling: Webster's method with bounds. Start >= Base, Ceiling >= Start.
type Problem struct {
	Amount                       int64
	Stage                        Stage
	Weight, Start, Ceiling, Base []int64
	// Share is the result.
	Share []int64
}

// From returns where the share of a child starts.
func (p *Problem) From(i int) int64 {
	if p.Start == nil {
		return 0
	}
	return p.Start[i]
}

// Zero returns where the weight of a child counts from.
func (p *Problem) Zero(i int) int64 {
	if p.Base == nil {
		return 0
	}
	return p.Base[i]
}

// Level returns the last signpost awarded; nil if no child was given more than its start.
func (p *Problem) Level() *big.Rat {
	last := award{}
	for i, share := range p.Share {
		if share == p.From(i) {
			continue
		}
		if a := (award{2*(share-p.Zero(i)) - 1, p.Weight[i], int32(i)}); last.weight == 0 || last.before(&a) {
			last = a
		}
	}
	if last.weight == 0 {
		return nil
	}
	return new(big.Rat).SetFrac(big.NewInt(last.odd), new(big.Int).Lsh(big.NewInt(last.weight), 1))
}

// Divider solves problems and keeps its memory.
type Divider struct {
	// active are the children with a weight that are below their ceilings, search those of them whose share is not known yet; low, high and
	// mid are the shares of these at the levels of the search.
	active, search []int32
	low, high, mid []int64
	heap           []award
}

// award is the next quantum of a child: its signpost is odd / (2 weight).
type award struct {
	odd, weight int64
	child       int32
}

// before reports whether l is awarded before r.
func (l *award) before(r *award) bool {
	lHigh, lLow := bits.Mul64(uint64(l.odd), uint64(r.weight))
	rHigh, rLow := bits.Mul64(uint64(r.odd), uint64(l.weight))
	if lHigh != rHigh {
		return lHigh < rHigh
	}
	if lLow != rLow {
		return lLow < rLow
	}
	return l.child < r.child
}

// Run sets the shares.
func (d *Divider) Run(p Problem) {
	d.active = d.active[:0]
	var widest, full int64
	given, most := int64(0), int64(0)
	for i := range p.Share {
		start, ceiling := p.From(i), p.Ceiling[i]
		p.Share[i] = start
		given += start
		if p.Weight[i] > 0 && ceiling > start {
			d.active = append(d.active, int32(i))
			most += ceiling - start
			widest, full = max(widest, p.Weight[i]), max(full, CeilDiv(ceiling-p.Zero(i), p.Weight[i]))
		}
	}
	rest := p.Amount - given
	switch {
	case rest <= 0 || len(d.active) == 0:
	case rest >= most:
		for _, i := range d.active {
			p.Share[i] = p.Ceiling[i]
		}
	default:
		rest = d.raise(&p, rest, widest, full)
		d.award(&p, rest)
	}
}

// level is a fraction of 128 bits over 2^shift: the signposts up to it have been awarded.
type level struct{ high, low uint64 }

// at returns the share of a child at a level: base + ⌊weight level + 1/2⌋ within the bounds.
func (p *Problem) at(i int32, l level, shift uint) int64 {
	w := uint64(p.Weight[i])
	high, low := bits.Mul64(w, l.low)
	top, more := bits.Mul64(w, l.high)
	high, carry := bits.Add64(high, more, 0)
	top += carry
	if shift > 0 {
		low, carry = bits.Add64(low, 1<<(shift-1), 0)
		high, carry = bits.Add64(high, 0, carry)
		top += carry
		low, high, top = low>>shift|high<<(64-shift), high>>shift|top<<(64-shift), top>>shift
	}
	start, ceiling, base := p.From(int(i)), p.Ceiling[i], p.Zero(int(i))
	if high|top != 0 || low >= uint64(ceiling-base) {
		return ceiling
	}
	return max(start, base+int64(low))
}

// raise brings the shares to a level at which at most rest quanta are awarded beyond the starts, such that few remain, and returns how many
// remain. At level full every child has its ceiling. A level has at most 118 bits: ceilings have 60, weights with memory 55, and other
// weights are smaller or at least the ceilings.
//
// The search narrows the interval between a level that awards too little and one that awards too much. Awards are a piecewise linear
// function of the level, but for roundings of at most a half for each child. In turns it looks a little below and a little above where the
// tangent at the low end meets the rest, a little above where the straight line between the ends does, and in the middle. Children whose
// share is the same at both ends have that share and are left out of the search, so that each step costs less than the one before.
func (d *Divider) raise(p *Problem, rest, widest, full int64) int64 {
	// Weights divided by 2^shift are at most 1, so neighbouring levels differ by at most one quantum a child. Finer levels tell more
	// children apart, unless all weights are 1: then signposts coincide.
	shift := uint(bits.Len64(uint64(widest - 1)))
	if shift > 0 {
		shift += 3
	}
	low, high := level{}, shifted(uint64(full), shift)
	more, slope := d.open(p)
	for turn := 0; low.next() != high; turn++ {
		roundings := int64(len(d.search))
		mid := low.between(high)
		switch {
		case more <= 4*roundings || turn%4 == 3:
		case turn%4 == 2 || slope == 0:
			mid = low.towards(high, min(more, rest+roundings), more)
		case turn%4 == 0:
			mid = low.plus(max(0, rest-roundings), shift, slope)
		default:
			mid = low.plus(rest+rest/8+roundings, shift, slope)
		}
		if !low.before(mid) || !mid.before(high) {
			mid = low.between(high)
		}
		awarded, steep := d.look(p, mid, shift)
		if awarded > rest {
			high, more = mid, awarded
			d.high, d.mid = d.mid, d.high
		} else {
			low, rest, more, slope = mid, rest-awarded, more-awarded, steep
			d.low, d.mid = d.mid, d.low
		}
		d.narrow(p)
	}
	for k, i := range d.search {
		p.Share[i] = d.low[k]
	}
	return rest
}

// open begins a search among the active children and returns how much more they have at the high end than at the low end, and the weights
// of those that gain at once.
func (d *Divider) open(p *Problem) (more int64, slope uint64) {
	n := len(d.active)
	d.search, d.low = append(d.search[:0], d.active...), grown(d.low, n)
	d.high, d.mid = grown(d.high, n), grown(d.mid, n)
	for k, i := range d.search {
		d.low[k], d.high[k] = p.From(int(i)), p.Ceiling[i]
		more += d.high[k] - d.low[k]
		if d.low[k] == p.Zero(int(i)) {
			slope += uint64(p.Weight[i])
		}
	}
	return more, slope
}

// look fills in the shares at a level, and returns how much more that is than at the low end, and the weights of those that are neither at
// their starts nor at their ceilings.
func (d *Divider) look(p *Problem, l level, shift uint) (awarded int64, slope uint64) {
	for k, i := range d.search {
		share := p.at(i, l, shift)
		d.mid[k] = share
		awarded += share - d.low[k]
		if share > p.From(int(i)) && share < p.Ceiling[i] {
			slope += uint64(p.Weight[i])
		}
	}
	return awarded, slope
}

// narrow leaves those children out of the search whose share is known.
func (d *Divider) narrow(p *Problem) {
	kept := 0
	for k, i := range d.search {
		if p.Share[i] = d.low[k]; d.low[k] != d.high[k] {
			d.search[kept], d.low[kept], d.high[kept] = i, d.low[k], d.high[k]
			kept++
		}
	}
	d.search = d.search[:kept]
}

func grown(list []int64, n int) []int64 {
	if cap(list) < n {
		return make([]int64, n)
	}
	return list[:n]
}

func shifted(x uint64, shift uint) level {
	if shift == 0 {
		return level{0, x}
	}
	return level{x >> (64 - shift), x << shift}
}

func (l level) next() level { return l.add(level{0, 1}) }

// towards returns about the level where part of whole lies on a straight line from l to h. 0 <= part <= whole.
func (l level) towards(h level, part, whole int64) level {
	low, borrow := bits.Sub64(h.low, l.low, 0)
	high := h.high - l.high - borrow
	// The quotient has 32 bits, the interval at most 127, of which the last 32 make no difference where there are more than 64.
	q, _ := bits.Div64(uint64(part)>>32, uint64(part)<<32, uint64(whole)+1)
	var add level
	if high == 0 {
		carry, product := bits.Mul64(low, q)
		add = level{0, carry<<32 | product>>32}
	} else {
		low, high = high<<32|low>>32, high>>32
		carry, product := bits.Mul64(low, q)
		add = level{high*q + carry, product}
	}
	return l.add(add)
}

// plus returns the level at which part more quanta are awarded by weights of a sum.
func (l level) plus(part int64, shift uint, sum uint64) level {
	by := shifted(uint64(part), shift)
	high := by.high / sum
	low, _ := bits.Div64(by.high%sum, by.low, sum)
	return l.add(level{high, low})
}

func (l level) add(o level) level {
	low, carry := bits.Add64(l.low, o.low, 0)
	return level{l.high + o.high + carry, low}
}

func (l level) before(o level) bool { return l.high < o.high || l.high == o.high && l.low < o.low }

func (l level) between(h level) level {
	low, carry := bits.Add64(l.low, h.low, 0)
	high := l.high + h.high + carry
	return level{high >> 1, high<<63 | low>>1}
}

// award gives the rest away, one quantum each, to the children whose next signposts are smallest. Only those left in the search have a
// signpost between the two levels that it ended with, and none has two.
func (d *Divider) award(p *Problem, rest int64) {
	d.heap = d.heap[:0]
	for _, i := range d.search {
		d.heap = append(d.heap, award{2*(p.Share[i]-p.Zero(int(i))) + 1, p.Weight[i], i})
	}
	for i := len(d.heap)/2 - 1; i >= 0; i-- {
		d.sink(i)
	}
	for ; rest > 0 && len(d.heap) > 0; rest-- {
		p.Share[d.heap[0].child]++
		last := len(d.heap) - 1
		d.heap[0] = d.heap[last]
		d.heap = d.heap[:last]
		d.sink(0)
	}
}

func (d *Divider) sink(i int) {
	for {
		least := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(d.heap); k++ {
			if d.heap[k].before(&d.heap[least]) {
				least = k
			}
		}
		if least == i {
			return
		}
		d.heap[i], d.heap[least] = d.heap[least], d.heap[i]
		i = least
	}
}
