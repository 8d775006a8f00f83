package ledger

import (
	"maps"
	"math"
	"slices"
)

// cells are what lines used in one epoch, raw amounts × seconds by dimension.
type cells map[int32][]Amount

// add adds amounts × seconds to a line.
func (c cells) add(to int32, amounts []int64, seconds int64) {
	x := c[to]
	if len(x) < len(amounts) {
		x = append(x, make([]Amount, len(amounts)-len(x))...)
		c[to] = x
	}
	for d, amount := range amounts {
		if amount != 0 {
			x[d] = x[d].Plus(times(amount, seconds))
		}
	}
}

// raise makes each amount of a line at least x.
func (c cells) raise(to int32, x []Amount) {
	own := c[to]
	if len(own) < len(x) {
		own = append(own, make([]Amount, len(x)-len(own))...)
		c[to] = own
	}
	for d := range x {
		if own[d].Less(x[d]) {
			own[d] = x[d]
		}
	}
}

// overlap returns how many seconds of [start, until) lie in an epoch.
func (l *Ledger) overlap(start, until, epoch int64) int64 {
	begin := epoch * l.seconds
	return max(0, min(until, begin+l.seconds)-max(start, begin))
}

// open returns the cells of the epochs from begin to before end that are not sealed, from the records.
func (l *Ledger) open(begin, end int64) map[int64]cells {
	begin = max(begin, l.sealed)
	out := map[int64]cells{}
	for k, r := range l.records {
		until := r.until()
		if until <= k.start {
			continue
		}
		for n := max(begin, l.EpochOf(k.start)); n < end && n <= l.EpochOf(until-1); n++ {
			if out[n] == nil {
				out[n] = cells{}
			}
			out[n].add(r.line, r.amounts, l.overlap(k.start, until, n))
		}
	}
	return out
}

// each calls use with what lines used in the epochs from begin to before end, in order of epochs. The amounts are valid during the call.
func (l *Ledger) each(begin, end int64, use func(epoch int64, line int32, x []Amount)) {
	for _, n := range slices.Sorted(maps.Keys(l.cells)) {
		if n >= begin && n < end {
			// The ledger checked the block when it was made or read.
			_ = l.cells[n].each(len(l.lines.list), func(to int32, x []Amount) { use(n, to, x) })
		}
	}
	unsealed := l.open(begin, end)
	for _, n := range slices.Sorted(maps.Keys(unsealed)) {
		for _, to := range slices.Sorted(maps.Keys(unsealed[n])) {
			use(n, to, unsealed[n][to])
		}
	}
}

// Seal closes the epochs for which evidence cannot be expected any more: those that the evidence of at least two tasks lies four epochs
// beyond, so that no single task closes an epoch for the others. Their cells are final, and records that lie within them are dropped.
// Call it after all evidence of a snapshot or a file was taken in, not between.
func (l *Ledger) Seal() {
	if reach, ok := l.reach(); ok {
		l.sealBefore(reach - grace + 1)
	}
	l.retain()
	if l.lines.due() {
		l.forget()
	}
}

// reach returns the newest epoch that evidence of at least two tasks reaches; false if there is none.
func (l *Ledger) reach() (epoch int64, ok bool) {
	first, second, task := int64(math.MinInt64), int64(math.MinInt64), ""
	for k, r := range l.records {
		if r.until() <= k.start {
			continue
		}
		switch n := l.EpochOf(r.until() - 1); {
		case k.task == task:
			first = max(first, n)
		case n > first:
			first, second, task = n, first, k.task
		default:
			second = max(second, n)
		}
	}
	return second, second != math.MinInt64
}

// sealBefore seals all epochs before end.
func (l *Ledger) sealBefore(end int64) {
	if end <= l.sealed {
		return
	}
	begin := l.sealed
	// What is older than the ledger keeps would be dropped at once, and a task may claim to run for thousands of years.
	for n, c := range l.open(end-int64(l.options.Retain), end) {
		l.setCells(n, c)
	}
	l.sealed = end
	l.dirty.head = true
	if begin != math.MinInt64 {
		l.countGaps(begin, end)
	}
	for k, r := range l.records {
		if !r.live && l.EpochOf(max(r.until(), k.start+1)-1) < end {
			l.drop(k)
		}
	}
}

// countGaps counts the epochs without any use among those that were sealed.
func (l *Ledger) countGaps(begin, end int64) {
	for n := max(begin, end-int64(l.options.Retain)); n < end; n++ {
		if len(l.cells[n]) == 0 {
			l.counts.Gaps++
		}
	}
}

func (l *Ledger) drop(k key) {
	delete(l.records, k)
	l.dirty.records[k] = struct{}{}
}

func (l *Ledger) setCells(n int64, c cells) {
	l.cells[n] = encodeBlock(c)
	l.dirty.cells[n] = struct{}{}
}

// retain drops cells, rows and offers that are older than the ledger keeps, counted from the first epoch that is not sealed. The newest
// offer before that stays, because it lasts until the next one.
func (l *Ledger) retain() {
	if l.sealed == math.MinInt64 {
		return
	}
	oldest := l.sealed - int64(l.options.Retain)
	for n := range l.cells {
		if n < oldest {
			delete(l.cells, n)
			l.dirty.cells[n] = struct{}{}
		}
	}
	for n := range l.rows {
		if n < l.sealed-int64(l.options.Window) {
			delete(l.rows, n)
			l.dirty.rows[n] = struct{}{}
		}
	}
	kept := int64(math.MinInt64)
	for n := range l.offers {
		if n <= oldest {
			kept = max(kept, n)
		}
	}
	for n := range l.offers {
		if n < kept {
			delete(l.offers, n)
			l.dirty.offers[n] = struct{}{}
		}
	}
}

// Merge takes in what another ledger saw of the same cluster. As long as nothing is sealed, any number of ledgers merge to the same one, in
// any order and any number of times. Sealed cells are merged by the maximum. The other ledger is not changed, except that it seals what
// this one has sealed. A ledger of another cluster is refused.
func (l *Ledger) Merge(other *Ledger) error {
	if l.seconds != other.seconds {
		return errEpoch(l.options.Epoch, other.options.Epoch)
	}
	if err := l.Identify(other.cluster); err != nil {
		return err
	}
	end := max(l.sealed, other.sealed)
	l.sealBefore(end)
	other.sealBefore(end)
	counts := l.counts
	for _, k := range slices.SortedFunc(maps.Keys(other.records), compareKeys) {
		l.see(other.evidence(k, other.records[k]))
	}
	l.counts = counts
	for _, n := range slices.Sorted(maps.Keys(other.cells)) {
		l.mergeCells(n, other)
	}
	l.mergeOffers(other)
	l.mergeQueues(other)
	l.mergeRows(other)
	l.mergeJobs(other)
	l.retain()
	return nil
}

// named returns a vector by the names of its dimensions, without zeros.
func (l *Ledger) named(v []int64) map[string]int64 {
	out := map[string]int64{}
	for d, amount := range v {
		if amount != 0 {
			out[l.dimensions[d]] = amount
		}
	}
	return out
}

func (l *Ledger) mergeCells(n int64, other *Ledger) {
	own := cells{}
	_ = l.cells[n].each(len(l.lines.list), func(to int32, x []Amount) { own[to] = slices.Clone(x) })
	_ = other.cells[n].each(len(other.lines.list), func(from int32, x []Amount) {
		mapped := make([]Amount, 0, len(l.dimensions))
		for d, amount := range x {
			if amount == (Amount{}) {
				continue
			}
			to := l.dimensionOf(other.dimensions[d])
			for len(mapped) <= to {
				mapped = append(mapped, Amount{})
			}
			mapped[to] = amount
		}
		own.raise(l.lines.of(other.lines.list[from].path, other.lines.list[from].owner), mapped)
	})
	if encoded := encodeBlock(own); string(encoded) != string(l.cells[n]) {
		l.cells[n] = encoded
		l.dirty.cells[n] = struct{}{}
	}
}
