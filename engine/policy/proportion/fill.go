package proportion

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// After the first round most dimensions of most queues are settled: a queue has reached its cap there, or nothing remains. In the rounds
// that follow only the others can change, by the same operations in the same order as raise has them, so that every number is the same to
// the last bit. The guarantee plays no part any more: deserved was raised to it in the first round and never falls.

// rising is one dimension of a queue that has not reached its cap.
type rising struct {
	dimension int32
	deserved  float64
	// ceiling is the lesser of real capability and request.
	ceiling float64
	// request is -Inf in a dimension that the request does not name.
	request float64
}

// waiting is a queue that is not met.
type waiting struct {
	queue model.QueueID
	// end is where the dimensions of the queue end in the list of all; they begin where those of the queue before it end.
	end int32
	// short: in a dimension that cannot rise any more the queue has less than it requests.
	short bool
}

// filling is a division after its first round.
type filling struct {
	*division

	waiting []waiting
	rising  []rising
}

// fill does all rounds but the first.
func (d *division) fill(unmet []model.QueueID) error {
	f := filling{division: d, waiting: make([]waiting, 0, len(unmet)), rising: make([]rising, 0, 2*len(unmet))}
	for _, q := range unmet {
		f.wait(q)
	}
	if err := f.run(); err != nil {
		return err
	}
	from := int32(0)
	for _, w := range f.waiting {
		f.put(w.queue, f.rising[from:w.end])
		from = w.end
	}
	return nil
}

// wait lists a queue with its dimensions that may rise.
func (f *filling) wait(q model.QueueID) {
	short := false
	deserved, request, limit := f.deserved.Row(int(q)), f.request(q), f.realCapability.Row(int(q))
	for m := f.remaining.Has | request.Has; m != 0; m = m.Rest() {
		d := m.First()
		r := rising{dimension: int32(d), deserved: deserved.V[d], ceiling: ceiling(limit, request, d), request: math.Inf(-1)}
		if request.Has.Has(d) {
			r.request = request.V[d]
		}
		if f.remaining.V[d] > 0 && r.deserved < r.ceiling {
			f.rising = append(f.rising, r)
		} else if r.isShort() {
			short = true
		}
	}
	f.waiting = append(f.waiting, waiting{q, int32(len(f.rising)), short})
}

// ceiling returns what deserved is capped at in a dimension, but for the guarantee: Row.Min with real capability, where a scalar that is
// not named is unlimited, and with the request, where it is 0.
func ceiling(limit, request resource.Row, d int) float64 {
	if d > resource.Memory && !limit.Has.Has(d) {
		return request.V[d]
	}
	return min(limit.V[d], request.V[d])
}

func (r *rising) isShort() bool { return r.request-r.deserved >= resource.Threshold }

// put writes back what a queue deserves.
func (f *filling) put(q model.QueueID, list []rising) {
	deserved := f.deserved.Row(int(q))
	for i := range list {
		deserved.V[list[i].dimension] = list[i].deserved
	}
}

func (f *filling) run() error {
	for {
		total := int64(0)
		for _, w := range f.waiting {
			total += int64(f.v.Queues[w.queue].Weight)
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
		if f.settle() {
			return nil
		}
	}
}

// round raises all queues that are not met, and drops those that are, and the dimensions that have risen as far as they may.
func (f *filling) round(total float64) error {
	f.increased.Clear(0)
	from := int32(0)
	queues, dimensions := 0, int32(0)
	for i := range f.waiting {
		if f.polled++; f.v.Stopped(f.polled) {
			return policy.ErrStopped
		}
		w := f.waiting[i]
		begin := dimensions
		part := float64(f.v.Queues[w.queue].Weight) / total
		short, changed := w.short, false
		for _, r := range f.rising[from:w.end] {
			before := r.deserved
			f.raiseIn(&r, part)
			changed = changed || r.deserved != before
			isShort := r.isShort()
			short = short || isShort
			if r.deserved < r.ceiling {
				f.rising[dimensions] = r
				dimensions++
				continue
			}
			w.short = w.short || isShort
			f.deserved.Row(int(w.queue)).V[r.dimension] = r.deserved
		}
		from = w.end
		if short && changed {
			f.waiting[queues] = waiting{w.queue, dimensions, w.short}
			queues++
			continue
		}
		f.put(w.queue, f.rising[begin:dimensions])
		dimensions = begin
	}
	f.waiting, f.rising = f.waiting[:queues], f.rising[:dimensions]
	return nil
}

// raiseIn is raise in one dimension.
func (f *filling) raiseIn(r *rising, part float64) {
	more := r.deserved + float64(f.remaining.V[r.dimension]*part)
	if r.ceiling < more {
		more = r.ceiling
	}
	if more > r.deserved {
		f.increased.V[r.dimension] += more - r.deserved
	}
	r.deserved = more
}
