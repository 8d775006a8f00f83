package proportion

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// MaxRounds bounds the rounds of the division.
//
// That the rounds end at all: deserved never falls and remaining never rises. Take the heaviest of k queues that are not met; its weight is
// at least 1/k of all. In a round it either reaches a cap (request or real capability) in some dimension, which happens once per queue and
// dimension because a cap does not move; or it takes at least remaining/k in some dimension, so that remaining there falls by a factor
// of 1-1/k; or it takes nothing and is met, as its deserved did not change. After about k·(37 + ln k) rounds of the second kind what
// it takes is below half a unit in the last place of what it has (2^-53 is e^-37): adding it changes nothing, and the queue is met. With
// Q queues and D dimensions fewer than Q·D·Q·(37 + ln Q) rounds are possible.
//
// That bound is for adversaries; 10,000 queues with random weights in 8 dimensions take about 120 rounds, Volcano's recorded cases at
// most 47. MaxRounds keeps the cost of the worst input in hand: a division that reaches it ends with what is divided by then, and a
// warning says so.
const MaxRounds = 10_000

// End says why the rounds ended; the values are those of the contract's ProportionEnd.
type End uint8

// The ends of the rounds.
const (
	NothingRemains End = 1
	NoWeight       End = 2
	Unchanged      End = 3
	Bound          End = 4
)

// Round is one pass over the queues that are not met.
type Round struct {
	// Remaining is what there is to divide when the round begins.
	Remaining   resource.Row
	TotalWeight int64
	Steps       []Step
}

// Step is what a round did for one queue: its deserved after each of the four operations.
type Step struct {
	Queue                                 model.QueueID
	Weight                                int32
	Weighted, Capped, Requested, Deserved resource.Row
	Met                                   bool
}

// Derivation is the whole division.
type Derivation struct {
	Rounds                []Round
	End                   End
	Total, TotalGuarantee resource.Row
}

// division finds deserved by water-filling. All rows but deserved are read only.
type division struct {
	v                              *policy.View
	queues                         []model.QueueID
	guarantee, realCapability      []resource.Row
	request, deserved              []resource.Row
	remaining, increased, previous resource.Row
	rounds                         int
	end                            End
	// trace, if not nil, records the rounds; only of queues in only, if that is not nil.
	trace *Derivation
	only  []bool
}

// division returns a division of the session's inputs. With a trace it fills rows of its own; without, the session's deserved.
func (s *State) division(trace *Derivation) *division {
	width := s.v.Dims.Len()
	d := &division{
		v: s.v, queues: s.queues, guarantee: s.guarantee, realCapability: s.realCapability, request: s.request, deserved: s.deserved,
		remaining: s.v.Total.Clone(), increased: resource.NewRow(width), previous: resource.NewRow(width), trace: trace,
	}
	if trace != nil {
		d.deserved = resource.NewAccounts(len(s.v.Queues), width)
	}
	return d
}

// Derivation returns every round of the division, with the steps of the queues given (nil: all). It divides again, so that nothing is
// kept for those who do not ask.
func (s *State) Derivation(queues []model.QueueID) (Derivation, error) {
	trace := Derivation{Total: s.v.Total, TotalGuarantee: s.totalGuarantee}
	d := s.division(&trace)
	if queues != nil {
		d.only = make([]bool, len(s.v.Queues))
		for _, q := range queues {
			d.only[q] = true
		}
	}
	if err := d.run(); err != nil {
		return Derivation{}, err
	}
	trace.End = d.end
	return trace, nil
}

// run divides what remains in rounds, by weight, among the queues that are not met, until nothing remains, nobody has a weight, or a
// round changes nothing (proportion.go, OnSessionOpen). It returns policy.ErrStopped if asked to stop.
func (d *division) run() error {
	unmet := append([]model.QueueID(nil), d.queues...)
	polled := 0
	for d.rounds = 0; ; d.rounds++ {
		if d.rounds == MaxRounds {
			d.end = Bound
			return nil
		}
		total := int64(0)
		for _, q := range unmet {
			total += int64(d.v.Queues[q].Weight)
		}
		if total == 0 {
			d.end = NoWeight
			return nil
		}
		round := d.begin(total)
		d.increased.Clear(0)
		still := unmet[:0]
		for _, q := range unmet {
			if polled++; d.v.Stopped(polled) {
				return policy.ErrStopped
			}
			if !d.raise(q, float64(d.v.Queues[q].Weight)/float64(total), round) {
				still = append(still, q)
			}
		}
		unmet = still
		if d.settle() {
			return nil
		}
	}
}

func (d *division) begin(total int64) *Round {
	if d.trace == nil {
		return nil
	}
	d.trace.Rounds = append(d.trace.Rounds, Round{Remaining: d.remaining.Clone(), TotalWeight: total})
	return &d.trace.Rounds[len(d.trace.Rounds)-1]
}

// raise gives a queue its part of the round and reports whether it is met: its request is covered, or the round changed nothing for it, by
// exact comparison (without that half of the rule rounds would go on for as long as floats keep shrinking).
func (d *division) raise(q model.QueueID, part float64, round *Round) bool {
	deserved := &d.deserved[q]
	d.previous.CopyFrom(*deserved)
	var step *Step
	if round != nil && (d.only == nil || d.only[q]) {
		round.Steps = append(round.Steps, Step{Queue: q, Weight: d.v.Queues[q].Weight})
		step = &round.Steps[len(round.Steps)-1]
	}
	deserved.AddTimes(d.remaining, part)
	if step != nil {
		step.Weighted = deserved.Clone()
	}
	deserved.Min(d.realCapability[q], resource.Infinity)
	if step != nil {
		step.Capped = deserved.Clone()
	}
	deserved.Min(d.request[q], resource.Zero)
	if step != nil {
		step.Requested = deserved.Clone()
	}
	deserved.Max(d.guarantee[q])
	met := resource.Covers(*deserved, d.request[q]) || resource.Equal(*deserved, d.previous)
	for i, x := range deserved.V {
		if x > d.previous.V[i] {
			d.increased.V[i] += x - d.previous.V[i]
		}
	}
	if step != nil {
		step.Deserved, step.Met = deserved.Clone(), met
	}
	return met
}

// settle takes what the round gave off what remains and reports whether the rounds end with it. What remains never gains a dimension.
func (d *division) settle() bool {
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
	d.rounds++
	return true
}
