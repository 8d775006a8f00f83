package fair

import (
	"math/big"

	"github.com/apportion/apportion/engine/model"
)

// Bound says what a share is held by.
type Bound uint8

// The bounds.
const (
	// AtUpper: the share is at its ceiling.
	AtUpper Bound = iota + 1
	// AtLower: the share is at its start.
	AtLower
	// AtLevel: the share is what the level gives.
	AtLevel
	// AtRoot: nothing divides to the root.
	AtRoot
)

// Division is the division of one dimension among the children of one queue, with what proves it.
type Division struct {
	// Queue is model.None for a root that is no queue.
	Queue     model.QueueID
	Dimension int
	// Amount is what was divided, Given what the children were given of it, in raw amounts.
	Amount, Given int64
	Stage         Stage
	// Level is the last signpost awarded, in quanta by weight; nil if no child was given more than its start.
	Level *big.Rat
	// Children in order of rank.
	Children []Portion
}

// Portion is one queue's part of a division. Amounts are raw, whole numbers of quanta.
type Portion struct {
	Queue model.QueueID
	// Guaranteed, Begin and Useful are the bounds: the guarantee as far as there is a use for it, where weights begin, and what there is a
	// use for.
	Guaranteed, Begin, Useful int64
	// Weight is the one that counts in the division's stage. In the first two stages it is an amount in quanta.
	Weight int64
	// Start and Ceiling bound the share, Base is what it is counted from.
	Start, Ceiling, Base int64
	Share                int64
	Bound                Bound
	// Lines are guarantee, fair share and entitlement.
	Lines [lines]int64
}

// Inner lists the queues that divide, the root first even if it is no queue or divides nothing.
func (s *State) Inner() []model.QueueID {
	list := []model.QueueID{s.tree.queue[0]}
	for p := place(1); int(p) < s.tree.len(); p++ {
		if !s.tree.isLeaf(p) {
			list = append(list, s.tree.queue[p])
		}
	}
	return list
}

// Division returns how a queue, or model.None for a root that is no queue, divides dimension d; false if it does not take part.
func (s *State) Division(q model.QueueID, d int) (Division, bool) {
	p := place(0)
	if q != model.None {
		p = s.tree.at[q]
	}
	if p == none {
		return Division{}, false
	}
	s.settle()
	c := &s.division.columns[d]
	pr := s.problem(c, &c.bounds, p)
	u := s.quantum[d]
	out := Division{Queue: s.tree.queue[p], Dimension: d, Amount: pr.amount * u, Stage: pr.stage}
	for i := range pr.share {
		k := s.tree.first[p] + place(i)
		portion := s.portion(k, d)
		portion.Weight, portion.Start, portion.Ceiling, portion.Base = pr.weight[i], pr.from(i)*u, pr.ceiling[i]*u, pr.zero(i)*u
		switch pr.share[i] {
		case pr.ceiling[i]:
			portion.Bound = AtUpper
		case pr.from(i):
			portion.Bound = AtLower
		default:
			portion.Bound = AtLevel
		}
		if pr.share[i] > pr.from(i) {
			last := big.NewRat(2*(pr.share[i]-pr.zero(i))-1, 2)
			last.Quo(last, new(big.Rat).SetInt64(pr.weight[i]))
			if out.Level == nil || last.Cmp(out.Level) > 0 {
				out.Level = last
			}
		}
		out.Given += portion.Share
		out.Children = append(out.Children, portion)
	}
	return out, true
}

// Root returns the root's own numbers of dimension d.
func (s *State) Root(d int) Portion {
	s.settle()
	portion := s.portion(0, d)
	portion.Bound = AtRoot
	portion.Weight = s.weights()[0]
	return portion
}

// portion returns the numbers of a place that do not depend on how its parent divides.
func (s *State) portion(p place, d int) Portion {
	c, u := &s.division.columns[d], s.quantum[d]
	out := Portion{
		Queue: s.tree.queue[p], Guaranteed: c.lo[p] * u, Begin: c.m[p] * u, Useful: c.hi[p] * u, Share: c.share[p] * u,
	}
	for i := range out.Lines {
		out.Lines[i] = s.line(i, p, d)
	}
	return out
}
