package ledger

import "math/bits"

// Totals is what was used in one period.
type Totals struct {
	// Period is its number: from bounds[Period] to before bounds[Period+1].
	Period int
	// Used is what lines used in the period, not decayed, in quantum-seconds by dimension. What used nothing is not in it.
	Used map[Line][]int64
	// Decayed is what counts at the end of the period, of queues that used something before it. It is rounded down at each epoch with use.
	Decayed map[string][]int64
}

// Totals calls use with what was used in the periods between bounds, which are epochs in increasing order, until it returns false. It reads
// each epoch once. wanted selects queues; nil: all.
func (l *Ledger) Totals(bounds []int64, wanted func(queue string) bool, use func(*Totals) bool) {
	if len(bounds) < 2 {
		return
	}
	t := l.totaling(wanted)
	period, on := 0, true
	ended := func(n int64) {
		for ; on && period+1 < len(bounds) && n >= bounds[period+1]; period++ {
			on = use(t.end(period, bounds[period+1]))
		}
	}
	last := bounds[len(bounds)-1]
	l.each(bounds[0]-int64(l.options.Window), last, func(n int64, to int32, x []Amount) {
		if ended(n); on {
			t.add(n, to, x, n >= bounds[0])
		}
	})
	ended(last)
}

// totaling is a pass over the epochs of a ledger.
type totaling struct {
	ledger *Ledger
	decays []uint64
	// charged are the lines that each line charges, of the wanted queues.
	charged [][]Line
	used    [][]sum
	levels  []level
}

// level is the decayed use of a line before an epoch.
type level struct {
	amounts []Amount
	epoch   int64
}

func (l *Ledger) totaling(wanted func(string) bool) *totaling {
	n := len(l.lines.list)
	t := &totaling{
		ledger: l, decays: decays(l.lambda, l.options.Window), charged: make([][]Line, n), used: make([][]sum, n), levels: make([]level, n),
	}
	for i := range t.charged {
		for _, to := range l.lines.list[i].charged() {
			if wanted == nil || wanted(to.Queue) {
				t.charged[i] = append(t.charged[i], to)
			}
		}
	}
	return t
}

// add adds what a line used in an epoch; counts is false before the first period.
func (t *totaling) add(n int64, to int32, x []Amount, counts bool) {
	if len(t.charged[to]) == 0 {
		return
	}
	t.decay(to, n+1)
	own := &t.levels[to]
	for len(own.amounts) < len(x) {
		own.amounts = append(own.amounts, Amount{})
	}
	for d, amount := range x {
		own.amounts[d] = own.amounts[d].Plus(amount)
	}
	if !counts {
		return
	}
	for len(t.used[to]) < len(x) {
		t.used[to] = append(t.used[to], sum{})
	}
	for d, amount := range x {
		t.used[to][d].add(amount, 1)
	}
}

// decay makes the level of a line that of the beginning of an epoch: use of the epoch before it counts whole.
func (t *totaling) decay(to int32, epoch int64) {
	own := &t.levels[to]
	age := epoch - own.epoch
	own.epoch = epoch
	for d := range own.amounts {
		if age >= int64(len(t.decays)) {
			own.amounts[d] = Amount{}
			continue
		}
		own.amounts[d] = own.amounts[d].scaled(t.decays[age])
	}
}

// end returns the totals of a period that ends before an epoch, and begins the next one.
func (t *totaling) end(period int, epoch int64) *Totals {
	out := &Totals{Period: period, Used: map[Line][]int64{}, Decayed: map[string][]int64{}}
	used, decayed := sums{}, map[string][]sum{}
	for i, charged := range t.charged {
		if t.levels[i].amounts == nil {
			continue
		}
		t.decay(int32(i), epoch)
		for _, to := range charged {
			if len(t.used[i]) > 0 {
				used[to] = added(used[to], t.used[i])
			}
			if to.Owned {
				continue
			}
			level := make([]sum, len(t.levels[i].amounts))
			for d, amount := range t.levels[i].amounts {
				level[d].add(amount, 1)
			}
			decayed[to.Queue] = added(decayed[to.Queue], level)
		}
		t.used[i] = nil
	}
	for to, s := range used {
		out.Used[to] = t.ledger.inQuanta(s, 0)
	}
	for queue, s := range decayed {
		out.Decayed[queue] = t.ledger.inQuanta(s, 0)
	}
	return out
}

// added adds the sums of a line to a total.
func added(to, parts []sum) []sum {
	if len(to) < len(parts) {
		to = append(to, make([]sum, len(parts)-len(to))...)
	}
	for d := range parts {
		to[d].plus(&parts[d])
	}
	return to
}

// inQuanta returns sums, shifted, in quantum-seconds by dimension.
func (l *Ledger) inQuanta(s []sum, shift uint) []int64 {
	v := make([]int64, len(l.dimensions))
	for i := range s {
		v[i] = s[i].over(l.quantum(l.dimensions[i]), shift)
	}
	return v
}

// scaled returns ⌊a · factor / 2^62⌋ for a factor of at most 2^62.
func (a Amount) scaled(factor uint64) Amount {
	top, mid := bits.Mul64(a.Hi, factor)
	hi, lo := bits.Mul64(a.Lo, factor)
	mid, carry := bits.Add64(mid, hi, 0)
	top += carry
	return Amount{Hi: top<<(64-decayBits) | mid>>decayBits, Lo: mid<<(64-decayBits) | lo>>decayBits}
}
