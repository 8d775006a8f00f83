package ledger

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// Queue is a queue as rows read it: its place in the tree, its weight, and when it was created, in seconds; 0 if not known.
type Queue struct {
	Name, Parent string
	Weight       uint32
	Created      int64
}

// Row is what a snapshot says about usage during one epoch. It is computed once, when the epoch begins, and evidence that arrives later
// does not change it, so that answers stay equal. Vectors are by dimension of the ledger, in quantum-seconds.
type Row struct {
	Epoch   int64
	Offered []int64
	// Queues has no entry for a queue that is new: it counts as the average of its siblings.
	Queues map[string][]int64
	// Owners by queue and owner.
	Owners map[string]map[string][]int64
	// Starting is what queues got at this epoch, their first one, beside what they used.
	Starting map[string][]int64
	// StartingOwners is what owners had used when the ledger began with this row, by queue and owner.
	StartingOwners map[string]map[string][]int64
	// Budgets by queue.
	Budgets map[string]*Allowance
}

// Allowance is the current period of a budget as a row states it, by name of dimension, in quantum-seconds.
type Allowance struct {
	Begin int64
	// Amount is that of the period, Granted what is left of it for this period after what earlier ones overspent, at least 0.
	Amount, Granted map[string]int64
	// Spent until the beginning of the epoch.
	Spent map[string]int64
}

// Row returns the row of the epoch that contains a time in seconds, computing it if that epoch has begun only now. Queues are those of the
// cluster at that time, each with its parent; budgets are those whose spending the row states.
func (l *Ledger) Row(at int64, queues []Queue, budgets []Budget) *Row {
	epoch := l.EpochOf(at)
	for _, q := range queues {
		since := at
		switch {
		case q.Created > 0 && q.Created < at:
			since = q.Created
		case q.Created == 0 && len(l.rows) == 0:
			// A queue that was there before the ledger is not new.
			since = at - l.seconds
		}
		if _, is := l.queues[q.Name]; !is {
			l.known(q.Name, since)
		}
	}
	row := l.rows[epoch]
	if row == nil {
		row = l.compute(epoch, queues)
		l.rows[epoch] = row
		l.dirty.rows[epoch] = struct{}{}
	}
	l.allow(row, budgets)
	return row
}

// Start states, before anything else is known, what queues had used at the beginning of an epoch, decayed, in quantum-seconds by name of
// dimension, and what owners had used by queue and owner. It decays from then on like their own use. Queues of that epoch that it does not
// name are new.
func (l *Ledger) Start(epoch int64, used map[string]map[string]int64, owners map[string]map[string]map[string]int64) {
	row := &Row{Epoch: epoch, Queues: map[string][]int64{}, Owners: map[string]map[string][]int64{}, Budgets: map[string]*Allowance{}}
	for _, queue := range slices.Sorted(maps.Keys(used)) {
		row.Queues[queue] = l.vector(used[queue])
	}
	for _, queue := range slices.Sorted(maps.Keys(owners)) {
		row.Owners[queue] = map[string][]int64{}
		for _, owner := range slices.Sorted(maps.Keys(owners[queue])) {
			row.Owners[queue][owner] = l.vector(owners[queue][owner])
		}
	}
	row.Starting, row.StartingOwners, row.Offered = maps.Clone(row.Queues), maps.Clone(row.Owners), l.Offered(epoch)
	l.rows[epoch] = row
	l.dirty.rows[epoch] = struct{}{}
}

// Renew makes the next Row of the epoch of a time a new one, by what the ledger knows and its half-life now. It is for a copy of a ledger
// that is asked what would be: snapshots of one epoch must state the same.
func (l *Ledger) Renew(at int64) { delete(l.rows, l.EpochOf(at)) }

// newest returns the row of the newest epoch before or at an epoch, nil if there is none.
func (l *Ledger) newest(epoch int64) *Row {
	var newest *Row
	for n, row := range l.rows {
		if n <= epoch && (newest == nil || n > newest.Epoch) {
			newest = row
		}
	}
	return newest
}

// allow completes the budgets of a row. What it states of a period stays, unless the period is another now.
func (l *Ledger) allow(row *Row, budgets []Budget) {
	for i := range budgets {
		p := budgets[i].period(l, row.Epoch)
		own := row.Budgets[budgets[i].Queue]
		switch {
		case p == nil && own == nil:
			continue
		case p == nil:
			delete(row.Budgets, budgets[i].Queue)
		case own != nil && own.Begin == p.Begin && maps.Equal(own.Amount, p.Amount):
			continue
		default:
			row.Budgets[budgets[i].Queue] = l.allowance(&budgets[i], row.Epoch)
		}
		l.dirty.rows[row.Epoch] = struct{}{}
	}
}

func (l *Ledger) compute(epoch int64, queues []Queue) *Row {
	row := &Row{
		Epoch: epoch, Offered: l.Offered(epoch), Queues: map[string][]int64{}, Owners: map[string]map[string][]int64{},
		Starting: map[string][]int64{}, Budgets: map[string]*Allowance{},
	}
	usage := l.Usage(epoch)
	before := l.newest(epoch - 1)
	var fresh []Queue
	for _, q := range queues {
		used, ever := usage[Line{Queue: q.Name}]
		first := l.queues[q.Name]
		switch {
		case first >= epoch && !ever:
		case before != nil && before.Queues[q.Name] == nil && first >= before.Epoch && !ever:
			fresh = append(fresh, q)
		default:
			row.Queues[q.Name] = l.withStarting(q.Name, epoch, used)
		}
	}
	l.start(row, queues, fresh, usage)
	for to, used := range usage {
		if !to.Owned || row.Queues[to.Queue] == nil {
			continue
		}
		if row.Owners[to.Queue] == nil {
			row.Owners[to.Queue] = map[string][]int64{}
		}
		row.Owners[to.Queue][to.Owner] = used
	}
	l.startOwners(row)
	return row
}

// startOwners adds to the usage of owners what is left of what they had used when the ledger began.
func (l *Ledger) startOwners(row *Row) {
	for n, before := range l.rows {
		age := row.Epoch - n
		if age < 1 || age > int64(l.options.Window) || len(before.StartingOwners) == 0 {
			continue
		}
		factor := decays(l.lambda, int(age)+1)[age]
		for queue, owners := range before.StartingOwners {
			if row.Queues[queue] == nil {
				continue
			}
			if row.Owners[queue] == nil {
				row.Owners[queue] = map[string][]int64{}
			}
			for owner, starting := range owners {
				out := make([]int64, len(l.dimensions))
				copy(out, row.Owners[queue][owner])
				for d, amount := range starting {
					out[d] = plus(out[d], int64(Amount{Lo: uint64(amount)}.scaled(factor).Lo))
				}
				row.Owners[queue][owner] = out
			}
		}
	}
}

// withStarting adds to the usage of a queue what is left of its starting usage.
func (l *Ledger) withStarting(queue string, epoch int64, used []int64) []int64 {
	out := make([]int64, len(l.dimensions))
	copy(out, used)
	for n, row := range l.rows {
		starting := row.Starting[queue]
		if n >= epoch || starting == nil || epoch-n > int64(l.options.Window) {
			continue
		}
		factor := decays(l.lambda, int(epoch-n)+1)[epoch-n]
		for d, amount := range starting {
			hi, lo := bits.Mul64(uint64(amount), factor)
			out[d] = plus(out[d], int64(hi<<(64-decayBits)|lo>>decayBits))
		}
	}
	return out
}

// start gives queues in their first epoch the average usage per weight of their siblings, so that making a queue anew gains nothing over
// it. New siblings are not part of the average.
func (l *Ledger) start(row *Row, queues, fresh []Queue, usage map[Line][]int64) {
	stated := make(map[string][]int64, len(fresh))
	for _, q := range fresh {
		own := make([]int64, len(l.dimensions))
		copy(own, usage[Line{Queue: q.Name}])
		if starting := l.average(row, queues, &q); starting != nil {
			row.Starting[q.Name] = starting
			for d := range own {
				own[d] = plus(own[d], starting[d])
			}
		}
		stated[q.Name] = own
	}
	maps.Copy(row.Queues, stated)
}

// average returns ⌊weight · usage of the stated siblings / their weight⌋, nil if there are none or the weight is 0.
func (l *Ledger) average(row *Row, queues []Queue, q *Queue) []int64 {
	sums, weight := make([]big.Int, len(l.dimensions)), new(big.Int)
	for _, sibling := range queues {
		stated := row.Queues[sibling.Name]
		if sibling.Parent != q.Parent || sibling.Weight == 0 || stated == nil {
			continue
		}
		weight.Add(weight, big.NewInt(int64(sibling.Weight)))
		for d := range stated {
			sums[d].Add(&sums[d], big.NewInt(stated[d]))
		}
	}
	if weight.Sign() == 0 || q.Weight == 0 {
		return nil
	}
	out := make([]int64, len(l.dimensions))
	for d := range sums {
		n := new(big.Int).Mul(&sums[d], big.NewInt(int64(q.Weight)))
		out[d] = clip(n.Quo(n, weight))
	}
	return out
}

// clip returns a number as 64 bits, from 0 to 2^63 − 1.
func clip(n *big.Int) int64 {
	switch {
	case n.Sign() <= 0:
		return 0
	case !n.IsInt64():
		return math.MaxInt64
	}
	return n.Int64()
}

// mergeRows adopts of two rows of an epoch the one with the smaller digest.
func (l *Ledger) mergeRows(other *Ledger) {
	for _, n := range slices.Sorted(maps.Keys(other.rows)) {
		row := other.rows[n].mapped(other, l)
		if own := l.rows[n]; own != nil && bytes.Compare(own.digest(l), row.digest(l)) <= 0 {
			continue
		}
		l.rows[n] = row
		l.dirty.rows[n] = struct{}{}
	}
}

// mapped returns the row with the dimensions of another ledger, which shares its budgets: those are never changed.
func (r *Row) mapped(from, to *Ledger) *Row {
	vector := func(v []int64) []int64 { return to.vector(from.named(v)) }
	vectors := func(m map[string][]int64) map[string][]int64 {
		out := make(map[string][]int64, len(m))
		for name, v := range m {
			out[name] = vector(v)
		}
		return out
	}
	out := &Row{
		Epoch: r.Epoch, Offered: vector(r.Offered), Queues: vectors(r.Queues), Owners: map[string]map[string][]int64{},
		Starting: vectors(r.Starting), Budgets: r.Budgets,
	}
	for queue, owners := range r.Owners {
		out.Owners[queue] = vectors(owners)
	}
	for queue, owners := range r.StartingOwners {
		if out.StartingOwners == nil {
			out.StartingOwners = map[string]map[string][]int64{}
		}
		out.StartingOwners[queue] = vectors(owners)
	}
	return out
}

// digest is the same for equal rows of all ledgers.
func (r *Row) digest(l *Ledger) []byte {
	var w writer
	named := func(v []int64) {
		for _, d := range l.sorted {
			if at(v, d) != 0 {
				w.text(l.dimensions[d])
				w.signed(at(v, d))
			}
		}
		w.text("")
	}
	vectors := func(m map[string][]int64) {
		w.unsigned(uint64(len(m)))
		for _, name := range slices.Sorted(maps.Keys(m)) {
			w.text(name)
			named(m[name])
		}
	}
	w.signed(r.Epoch)
	named(r.Offered)
	vectors(r.Queues)
	for _, queue := range slices.Sorted(maps.Keys(r.Owners)) {
		w.text(queue)
		vectors(r.Owners[queue])
	}
	vectors(r.Starting)
	for _, queue := range slices.Sorted(maps.Keys(r.StartingOwners)) {
		w.text(queue)
		vectors(r.StartingOwners[queue])
	}
	w.allowances(r.Budgets)
	digest := sha256.Sum256(w.data)
	return digest[:]
}
