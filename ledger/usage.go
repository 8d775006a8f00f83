package ledger

import (
	"maps"
	"math"
	"slices"
)

// Line names what usage belongs to: a queue, with everything below it, or one owner in a queue.
type Line struct {
	Queue string
	// Owner is the owner whose jobs are in Queue itself, if Owned.
	Owner string
	Owned bool
}

// sums are totals of lines by dimension.
type sums map[Line][]sum

// Usage returns the decayed usage at the beginning of an epoch, in quantum-seconds by dimension: the sum of the window's epochs before it,
// rounded down once. Starting usage of new queues is not part of it.
func (l *Ledger) Usage(epoch int64) map[Line][]int64 {
	d := decays(l.lambda, l.options.Window)
	return l.total(epoch-int64(len(d)), epoch, func(n int64) uint64 { return d[epoch-1-n] }, decayBits)
}

// Spent returns what was used in the epochs from begin to before end, not decayed, in quantum-seconds.
func (l *Ledger) Spent(begin, end int64) map[Line][]int64 {
	return l.total(begin, end, func(int64) uint64 { return 1 }, 0)
}

func (l *Ledger) total(begin, end int64, factor func(epoch int64) uint64, shift uint) map[Line][]int64 {
	// Sums by number of line first: a path has many queues, and each number occurs in many epochs.
	byLine := make([][]sum, len(l.lines.list))
	l.each(begin, end, func(n int64, to int32, x []Amount) {
		if grow := len(x) - len(byLine[to]); grow > 0 {
			byLine[to] = append(byLine[to], make([]sum, grow)...)
		}
		for i, a := range x {
			byLine[to][i].add(a, factor(n))
		}
	})
	totals := sums{}
	for i, parts := range byLine {
		for _, to := range l.lines.list[i].charged() {
			totals[to] = added(totals[to], parts)
		}
	}
	out := make(map[Line][]int64, len(totals))
	for to, s := range totals {
		if len(s) > 0 {
			out[to] = l.inQuanta(s, shift)
		}
	}
	return out
}

// charged lists what a line charges: every queue of its path, and its owner.
func (l line) charged() []Line {
	out := make([]Line, 0, len(l.path)+1)
	for _, queue := range l.path {
		out = append(out, Line{Queue: queue})
	}
	if len(l.path) > 0 {
		out = append(out, Line{Queue: l.path[0], Owner: l.owner, Owned: true})
	}
	return out
}

// offer is what the cluster offered when an epoch was first seen.
type offer struct {
	// at is when it was, in seconds.
	at      int64
	amounts []int64
}

// Offer records what the cluster offers, raw by dimension, at a time in seconds of the cluster's clock. The first offer of an epoch counts.
func (l *Ledger) Offer(at int64, amounts map[string]int64) {
	l.offer(l.EpochOf(at), offer{at, l.vector(amounts)})
}

// offer keeps the earlier offer of an epoch, of two of the same time the smaller one.
func (l *Ledger) offer(n int64, o offer) {
	own, known := l.offers[n]
	if known && (own.at < o.at || own.at == o.at && l.compareAmounts(own.amounts, o.amounts) <= 0) {
		return
	}
	l.offers[n] = o
	l.dirty.offers[n] = struct{}{}
}

// Offered returns what the cluster offered, decayed as usage is, in quantum-seconds. An epoch without an offer counts as the one before
// it, and epochs before the first offer as that one, so that a new ledger steers gently at first.
func (l *Ledger) Offered(epoch int64) []int64 {
	d := decays(l.lambda, l.options.Window)
	s := make([]sum, len(l.dimensions))
	known := slices.Sorted(maps.Keys(l.offers))
	next := len(known)
	for next > 0 && known[next-1] >= epoch {
		next--
	}
	for j := range d {
		n := epoch - 1 - int64(j)
		for next > 0 && known[next-1] > n {
			next--
		}
		if len(known) == 0 {
			break
		}
		for i, amount := range l.offers[known[max(next-1, 0)]].amounts {
			s[i].add(times(amount, l.seconds), d[j])
		}
	}
	out := make([]int64, len(s))
	for i := range s {
		out[i] = s[i].over(l.quantum(l.dimensions[i]), decayBits)
	}
	return out
}

func (l *Ledger) mergeOffers(other *Ledger) {
	for _, n := range slices.Sorted(maps.Keys(other.offers)) {
		o := other.offers[n]
		l.offer(n, offer{o.at, l.vector(other.named(o.amounts))})
	}
}

// Known records that a queue exists since a time, in seconds.
func (l *Ledger) known(queue string, since int64) {
	n := l.EpochOf(since)
	if first, is := l.queues[queue]; !is || n < first {
		l.queues[queue] = n
		l.dirty.queues[queue] = struct{}{}
	}
}

func (l *Ledger) mergeQueues(other *Ledger) {
	for _, name := range slices.Sorted(maps.Keys(other.queues)) {
		l.known(name, other.queues[name]*l.seconds)
	}
}

// plus returns a + b, at most 2^63 − 1; both are at least 0.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Span returns the first and the last epoch in which something was used, not more than the ledger keeps; false if there is none.
func (l *Ledger) Span() (first, last int64, some bool) {
	first, last = math.MaxInt64, math.MinInt64
	for n := range l.cells {
		first, last, some = min(first, n), max(last, n), true
	}
	for k, r := range l.records {
		if r.until() > k.start {
			first, last, some = min(first, l.EpochOf(k.start)), max(last, l.EpochOf(r.until()-1)), true
		}
	}
	if some {
		first = max(first, last-int64(l.options.Retain))
	}
	return first, last, some
}
