package fair

import "math/bits"

// problem is an amount to divide among children, which are in order of rank. Amounts are in quanta. Where start or base is nil it is 0
// for every child.
//
// Each quantum goes to the child whose signpost (share - base + 1/2) / weight is smallest, among equals to the first, until the amount is
// divided or no child with a weight is below its ceiling: Webster's method with bounds. start >= base, ceiling >= start.
type problem struct {
	amount                       int64
	stage                        Stage
	weight, start, ceiling, base []int64
	// share is the result.
	share []int64
}

func (p *problem) from(i int) int64 {
	if p.start == nil {
		return 0
	}
	return p.start[i]
}

func (p *problem) zero(i int) int64 {
	if p.base == nil {
		return 0
	}
	return p.base[i]
}

// divider solves problems and keeps its memory.
type divider struct {
	// active are the children whose share is between their bounds at some level of the search.
	active []int32
	heap   []award
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

// run sets the shares.
func (d *divider) run(p problem) {
	d.active = d.active[:0]
	var widest, full int64
	given, most := int64(0), int64(0)
	for i := range p.share {
		start, ceiling := p.from(i), p.ceiling[i]
		p.share[i] = start
		given += start
		if p.weight[i] > 0 && ceiling > start {
			d.active = append(d.active, int32(i))
			most += ceiling - start
			widest, full = max(widest, p.weight[i]), max(full, ceilDiv(ceiling-p.zero(i), p.weight[i]))
		}
	}
	rest := p.amount - given
	switch {
	case rest <= 0 || len(d.active) == 0:
	case rest >= most:
		for _, i := range d.active {
			p.share[i] = p.ceiling[i]
		}
	default:
		rest = d.raise(&p, rest, widest, full)
		d.award(&p, rest)
	}
}

// level is a fraction of 128 bits over 2^shift: the signposts up to it have been awarded.
type level struct{ high, low uint64 }

// at returns the share of a child at a level: base + ⌊weight level + 1/2⌋ within the bounds.
func (p *problem) at(i int32, l level, shift uint) int64 {
	w := uint64(p.weight[i])
	high, low := bits.Mul64(w, l.low)
	high += w * l.high
	if shift > 0 {
		var carry uint64
		low, carry = bits.Add64(low, 1<<(shift-1), 0)
		high += carry
		low, high = low>>shift|high<<(64-shift), high>>shift
	}
	start, ceiling, base := p.from(int(i)), p.ceiling[i], p.zero(int(i))
	if high != 0 || low >= uint64(ceiling-base) {
		return ceiling
	}
	return max(start, base+int64(low))
}

// raise brings the shares to a level at which at most rest quanta are awarded beyond the starts, such that few remain, and returns how many
// remain. At level full every child has its ceiling; a product of weight and level has at most 124 bits, because weights that are not
// queues' own are at least the ceilings, and queues' own have 31 bits. The search halves the interval between a level that awards too little and one that awards too much.
func (d *divider) raise(p *problem, rest, widest, full int64) int64 {
	// Weights divided by 2^shift are at most 1, so neighbouring levels differ by at most one quantum a child, ties apart.
	shift := uint(bits.Len64(uint64(widest - 1)))
	low, high := level{}, shifted(uint64(full), shift)
	for low.next() != high {
		mid := low.between(high)
		awarded := int64(0)
		for _, i := range d.active {
			if awarded += p.at(i, mid, shift) - p.from(int(i)); awarded > rest {
				break
			}
		}
		if awarded > rest {
			high = mid
		} else {
			low = mid
		}
	}
	for _, i := range d.active {
		p.share[i] = p.at(i, low, shift)
		rest -= p.share[i] - p.from(int(i))
	}
	return rest
}

func shifted(x uint64, shift uint) level {
	if shift == 0 {
		return level{0, x}
	}
	return level{x >> (64 - shift), x << shift}
}

func (l level) next() level {
	low, carry := bits.Add64(l.low, 1, 0)
	return level{l.high + carry, low}
}

func (l level) between(h level) level {
	low, carry := bits.Add64(l.low, h.low, 0)
	high := l.high + h.high + carry
	return level{high >> 1, high<<63 | low>>1}
}

// award gives the rest away quantum by quantum.
func (d *divider) award(p *problem, rest int64) {
	d.heap = d.heap[:0]
	for _, i := range d.active {
		if p.share[i] < p.ceiling[i] {
			d.heap = append(d.heap, award{2*(p.share[i]-p.zero(int(i))) + 1, p.weight[i], i})
		}
	}
	for i := len(d.heap)/2 - 1; i >= 0; i-- {
		d.sink(i)
	}
	for ; rest > 0 && len(d.heap) > 0; rest-- {
		first := &d.heap[0]
		p.share[first.child]++
		first.odd += 2
		if p.share[first.child] == p.ceiling[first.child] {
			last := len(d.heap) - 1
			d.heap[0] = d.heap[last]
			d.heap = d.heap[:last]
		}
		d.sink(0)
	}
}

func (d *divider) sink(i int) {
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
