package proportion

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// How many rounds there are:
//
// Deserved never falls and remaining never rises. Take the heaviest of k queues that are not met; its weight is at least 1/k of all. In a
// round it either reaches a cap (request or real capability) in some dimension, which happens once per queue and dimension because a cap
// does not move; or it takes at least remaining/k in some dimension, so that remaining there falls by a factor of 1-1/k; or it takes
// nothing and is met, as its deserved did not change. After about k·(37 + ln k) rounds of the second kind what it takes is below half a
// unit in the last place of what it has (2^-53 is e^-37): adding it changes nothing, and the queue is met. With Q queues and D dimensions
// fewer than Q·D·Q·(37 + ln Q) rounds are possible.
//
// That bound is for adversaries; 10,000 queues with random weights in 8 dimensions take about 120 rounds, Volcano's recorded cases at
// most 47. Each round spends policy.Work before it runs, so that the worst input costs a known time and then fails.

// End says why the rounds ended; the values are those of the contract's ProportionEnd.
type End uint8

// The ends of the rounds.
const (
	NothingRemains End = 1
	NoWeight       End = 2
	Unchanged      End = 3
)

// Recorder follows a division. An error that it returns ends the division. Its arguments are valid during the call only.
type Recorder interface {
	// Round begins a pass over the queues that are not met: what there is to divide, and the sum of their weights.
	Round(remaining resource.Row, totalWeight int64) error
	// Step receives the effect of the round on one queue.
	Step(*Step) error
}

// Step records a round for one queue: its deserved amount after each of the four operations.
type Step struct {
	Queue                                 model.QueueID
	Weight                                int32
	Weighted, Capped, Requested, Deserved resource.Row
	Met                                   bool
}

// Derivation records the input of a division and the reason for its end.
type Derivation struct {
	End                   End
	Total, TotalGuarantee resource.Row
}

// division finds deserved by water-filling. Of the session it changes nothing but deserved.
type division struct {
	*State

	work                           *policy.Work
	deserved                       *resource.Matrix
	remaining, increased, previous resource.Row
	rounds                         int
	end                            End
	// polled counts the queues raised, to ask at intervals whether to stop.
	polled int
	// trace, if not nil, records the rounds, and the steps of the queues in only, or of all if only is nil.
	trace Recorder
	only  []bool
	step  Step
}

// division returns a division of the session's inputs that fills the session's deserved.
func (s *State) division() *division {
	width := s.v.Dims.Len()
	d := &division{
		State: s, work: s.v.Work, deserved: &s.deserved,
		remaining: s.v.Total.Clone(), increased: resource.NewRow(width), previous: resource.NewRow(width),
	}
	if d.work == nil {
		d.work = policy.NewWork(policy.DefaultWork)
	}
	return d
}

// Derive reports every round of the division to a recorder, with the steps of the queues given (nil: all). It divides again, so that
// sessions without derivations keep nothing for them.
func (s *State) Derive(queues []model.QueueID, to Recorder) (Derivation, error) {
	d, width := s.division(), s.v.Dims.Len()
	deserved := resource.NewMatrix(len(s.v.Queues), width, resource.Base)
	d.trace, d.deserved = to, &deserved
	for _, row := range [...]*resource.Row{&d.step.Weighted, &d.step.Capped, &d.step.Requested, &d.step.Deserved} {
		*row = resource.NewRow(width)
	}
	if queues != nil {
		d.only = make([]bool, len(s.v.Queues))
		for _, q := range queues {
			d.only[q] = true
		}
	}
	if err := d.run(); err != nil {
		return Derivation{}, err
	}
	return Derivation{End: d.end, Total: s.v.Total, TotalGuarantee: s.totalGuarantee}, nil
}

// run divides what remains in rounds, by weight, among the queues that are not met, until nothing remains, no queue has a weight, or a
// round changes nothing (proportion.go, OnSessionOpen). It returns policy.ErrStopped if asked to stop, and a *policy.WorkError for a
// division that costs more than may be spent.
func (d *division) run() error {
	if d.trace == nil && d.remaining.IsFinite() {
		return d.fill()
	}
	unmet := append([]model.QueueID(nil), d.queues...)
	for {
		total := d.weigh(unmet)
		if total == 0 {
			return nil
		}
		if err := d.work.Spend(len(unmet), d.v.Dims.Len()); err != nil {
			return err
		}
		if d.trace != nil {
			if err := d.trace.Round(d.remaining, total); err != nil {
				return err
			}
		}
		d.increased.Clear(0)
		still := unmet[:0]
		for _, q := range unmet {
			if d.polled++; d.v.Stopped(d.polled) {
				return policy.ErrStopped
			}
			met, err := d.raise(q, float64(d.v.Queues[q].Weight)/float64(total))
			if err != nil {
				return err
			}
			if !met {
				still = append(still, q)
			}
		}
		unmet = still
		if d.settle() {
			return nil
		}
	}
}

// weigh returns the sum of the weights of the queues that are not met. If it is 0 the division ends.
func (d *division) weigh(unmet []model.QueueID) int64 {
	total := int64(0)
	for _, q := range unmet {
		total += int64(d.v.Queues[q].Weight)
	}
	if total == 0 {
		d.end = NoWeight
	}
	return total
}

// raise gives a queue its part of the round and reports whether it is met: its request is covered, or the round changed nothing for it, by
// exact comparison (without that half of the rule rounds would go on for as long as floats keep shrinking).
func (d *division) raise(q model.QueueID, part float64) (met bool, err error) {
	deserved := d.deserved.Row(int(q))
	d.previous.CopyFrom(deserved)
	told := d.trace != nil && (d.only == nil || d.only[q])
	record := func(row *resource.Row) {
		if told {
			row.CopyFrom(deserved)
		}
	}
	deserved.AddTimes(d.remaining, part)
	record(&d.step.Weighted)
	deserved.Min(d.realCapability.Row(int(q)), resource.Infinity)
	record(&d.step.Capped)
	request := d.request(q)
	deserved.Min(request, resource.Zero)
	record(&d.step.Requested)
	deserved.Max(d.guarantee(q))
	d.deserved.SetHas(int(q), deserved.Has)
	record(&d.step.Deserved)
	met = resource.Covers(deserved, request) || resource.Equal(deserved, d.previous)
	for i, x := range deserved.V {
		if x > d.previous.V[i] {
			d.increased.V[i] += x - d.previous.V[i]
		}
	}
	if told {
		d.step.Queue, d.step.Weight, d.step.Met = q, d.v.Queues[q].Weight, met
		err = d.trace.Step(&d.step)
	}
	return met, err
}

// settle takes what the round gave off what remains and reports whether the rounds end with it. What remains never gains a dimension.
func (d *division) settle() bool {
	d.rounds++
	d.previous.CopyFrom(d.remaining)
	d.remaining.SetExceeded(d.remaining, d.increased)
	switch {
	case d.remaining.IsEmpty(d.v.Dims.Pods()):
		d.end = NothingRemains
	case resource.Equal(d.remaining, d.previous):
		d.end = Unchanged
	default:
		return false
	}
	return true
}
