package proportion

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// A division that is not recorded is done in dense form. In the first round queues rise from zeros. After it most dimensions of most queues
// are settled: a queue has reached its cap there, or nothing remains. In the rounds that follow only the others can change, by the same
// operations in the same order as raise has them, so that every number is the same to the last bit. The guarantee plays no part any more:
// deserved was raised to it in the first round and never falls.
//
// What differs from queue to queue is computed as a number, and copied field by field: a branch that the processor predicts wrongly, and a
// copy of a struct of which a field was just written, each cost about as much as raising a queue in a dimension.

// rising is one dimension of a queue that has not reached its cap. Its amount is in a cell of deserved.
type rising struct {
	cell, dimension  int
	ceiling, request float64
}

// waiting is a queue that is not met.
type waiting struct {
	queue  model.QueueID
	weight int32
	// end is where the dimensions of the queue end in the list of all; they begin where the dimensions of the previous queue end.
	end int
	// found is the state of the queue before a round.
	found uint
}

// What a round finds about a queue, as bits of a number.
const (
	// short: in some dimension it has less than it requests.
	short uint = 1 << iota
	// changed: the round raised it in some dimension.
	changed
	// settled: it is short in a dimension in which it cannot rise any more.
	settled
	// A queue that is not both is met.
	unmet = short | changed
)

// column is one dimension in a round: what remains of it, and what the round gives away.
type column struct{ remaining, increased float64 }

// filling is a division in dense form.
type filling struct {
	*division

	columns []column
	waiting []waiting
	rising  []rising
}

// fill does all rounds.
func (d *division) fill() error {
	total := d.weigh(d.queues)
	if total == 0 {
		return nil
	}
	if err := d.work.Spend(len(d.queues), d.v.Dims.Len()); err != nil {
		return err
	}
	f := filling{
		division: d, columns: make([]column, d.v.Dims.Len()),
		waiting: make([]waiting, 0, len(d.queues)), rising: make([]rising, 0, 2*len(d.queues)),
	}
	f.open()
	for i, q := range f.queues {
		if f.v.Stopped(i) {
			return policy.ErrStopped
		}
		f.begin(q, float64(total))
	}
	if f.close() {
		return nil
	}
	if slices.Contains(f.remaining.V, 0) {
		f.drop()
	}
	return f.run()
}

// open begins a round.
func (f *filling) open() {
	for d, x := range f.remaining.V {
		f.columns[d] = column{remaining: x}
	}
}

// close ends a round and reports whether it was the last.
func (f *filling) close() bool {
	for d := range f.columns {
		f.increased.V[d] = f.columns[d].increased
	}
	return f.settle()
}

// begin is raise of a queue that has nothing yet. An amount that a row does not name is 0, so that it matters only for scalars whether real
// capability names them: a dimension that it does not name is unlimited.
func (f *filling) begin(q model.QueueID, total float64) {
	queue, width := &f.v.Queues[q], len(f.columns)
	n, at := len(f.rising), int(q)*width
	if cap(f.rising)-n < width {
		f.rising = slices.Grow(f.rising, width)
	}
	row, limit, list := f.deserved.Row(int(q)), f.realCapability.Row(int(q)), f.rising[n:n+width]
	has := row.Has | f.remaining.Has | queue.Guarantee.Has
	f.deserved.SetHas(int(q), has)
	part, named, guarantee := float64(queue.Weight)/total, limit.Has|resource.Base, queue.Guarantee.V
	found, k := changed*one(has != row.Has), uint(0)
	deserved, requests, limits := row.V[:width], f.request(q).V[:width], limit.V[:width]
	for d := range f.columns {
		c, asked := &f.columns[d], requests[d]
		most := asked
		if named.Has(d) {
			most = min(most, limits[d])
		}
		x := min(float64(c.remaining*part), most)
		if guarantee != nil {
			x = max(x, guarantee[d])
		}
		deserved[d] = x
		c.increased += x
		lacks, rises := one(asked-x >= resource.Threshold), one(x < most)
		found |= changed*one(x > 0) | lacks | settled*(lacks&^rises)
		r := &list[k]
		r.cell, r.dimension, r.ceiling, r.request = at+d, d, most, asked
		k += rises
	}
	if found&unmet == unmet {
		f.waiting = append(f.waiting, waiting{q, queue.Weight, n + int(k), found / settled * (settled | short)})
		f.rising = f.rising[:n+int(k)]
	}
}

// one returns 1 for true and 0 for false.
func one(b bool) uint {
	n := uint(0)
	if b {
		n = 1
	}
	return n
}

// drop drops the dimensions of which nothing remains.
func (f *filling) drop() {
	cells, at, n := f.deserved.Cells(), 0, 0
	for i := range f.waiting {
		w := &f.waiting[i]
		for ; at < w.end; at++ {
			r := f.rising[at]
			if f.remaining.V[r.dimension] > 0 {
				f.rising[n] = r
				n++
			} else if r.request-cells[r.cell] >= resource.Threshold {
				w.found = settled | short
			}
		}
		w.end = n
	}
	f.rising = f.rising[:n]
}

// run does all rounds but the first.
func (f *filling) run() error {
	for {
		total := int64(0)
		for i := range f.waiting {
			total += int64(f.waiting[i].weight)
		}
		if total == 0 {
			f.end = NoWeight
			return nil
		}
		if err := f.work.Spend(len(f.waiting)+len(f.rising), 1); err != nil {
			return err
		}
		if err := f.round(float64(total)); err != nil {
			return err
		}
		if f.close() {
			return nil
		}
	}
}

// stopEach is the number of queues that are raised between two checks whether to stop.
const stopEach = 1024

// extent is the length of the lists that is kept, and the number of dimensions that were raised to determine it.
type extent struct{ waiting, rising, raised int }

// round raises all queues that are not met, and drops those that are, and the dimensions that have risen as far as they may.
func (f *filling) round(total float64) error {
	f.open()
	kept := extent{}
	for rest := f.waiting; len(rest) > 0; {
		n := min(len(rest), stopEach)
		if f.v.Stopped(stopEach - 1) {
			return policy.ErrStopped
		}
		kept = f.raiseAll(rest[:n], total, kept)
		rest = rest[n:]
	}
	f.waiting, f.rising = f.waiting[:kept.waiting], f.rising[:kept.rising]
	return nil
}

// raiseAll is raise of some queues.
func (f *filling) raiseAll(waiting []waiting, total float64, kept extent) extent {
	list, columns, cells := f.rising, f.columns, f.deserved.Cells()
	n, at := kept.rising, kept.raised
	for i := range waiting {
		w := &waiting[i]
		part, found, begin := float64(w.weight)/total, w.found, n
		entries := list[at:w.end]
		at = w.end
		for k := range entries {
			r := &entries[k]
			cell, d, most, asked := r.cell, r.dimension, r.ceiling, r.request
			c, before := &columns[d], cells[cell]
			x := min(before+float64(c.remaining*part), most)
			cells[cell] = x
			c.increased += x - before
			lacks, rises := one(asked-x >= resource.Threshold), one(x < most)
			found |= changed*one(x > before) | lacks | settled*(lacks&^rises)
			r = &list[n]
			r.cell, r.dimension, r.ceiling, r.request = cell, d, most, asked
			n += int(rises)
		}
		if found&unmet != unmet {
			n = begin
			continue
		}
		to := &f.waiting[kept.waiting]
		to.queue, to.weight, to.end, to.found = w.queue, w.weight, n, found/settled*(settled|short)
		kept.waiting++
	}
	kept.rising, kept.raised = n, at
	return kept
}
