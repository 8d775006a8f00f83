package fair

import (
	"math/big"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/division"
)

// Bound says what a share is held by.
type Bound uint8

// The bounds.
const (
	// AtUpper: the share is at its ceiling.
	AtUpper Bound = iota + 1
	// AtLower: the share is at its start.
	AtLower
	// AtLevel: the share follows from the level.
	AtLevel
)

// Division is the division of one dimension among the children of one queue, with what proves it. All amounts are whole quanta.
type Division struct {
	// Queue is model.None for a root that is no queue.
	Queue     model.QueueID
	Dimension int
	Amount    int64
	Stage     division.Stage
	// Level is the last signpost awarded; nil if no child was given more than its start.
	Level *big.Rat
	// Children in order of rank.
	Children []Portion
}

// Portion is one queue's part of a division, in quanta.
type Portion struct {
	Queue model.QueueID
	// Guaranteed, Begin and Useful are the bounds: the guarantee as far as there is a use for it, where weights begin, and what there is a
	// use for.
	Guaranteed, Begin, Useful int64
	// Weight is the one that counts in the division's stage.
	Weight int64
	// Start and Ceiling bound the share; weights count from Base.
	Start, Ceiling, Base int64
	Share                int64
	// Bound is 0 for the root, to which nothing divides.
	Bound Bound
	// Lines are guarantee, fair share and entitlement.
	Lines [lines]int64
}

// Inner lists the queues that divide, parents first. The root is the first, model.None if it is no queue, even if it divides nothing.
func (s *State) Inner() []model.QueueID {
	list := []model.QueueID{s.tree.queue[0]}
	for p := place(1); int(p) < s.tree.len(); p++ {
		if !s.tree.isLeaf(p) {
			list = append(list, s.tree.queue[p])
		}
	}
	return list
}

// Parent returns the queue above a queue; model.None if that is no queue, or the queue is set aside.
func (s *State) Parent(q model.QueueID) model.QueueID {
	p := s.tree.at[q]
	if p <= 0 {
		return model.None
	}
	return s.tree.queue[s.tree.parent[p]]
}

// Children lists the queues below a queue, or below a root that is no queue, in order of rank. Callers only read it.
func (s *State) Children(q model.QueueID) []model.QueueID {
	p := place(0)
	if q != model.None {
		p = s.tree.at[q]
	}
	if p == none {
		return nil
	}
	return s.tree.queue[s.tree.first[p]:s.tree.end[p]]
}

// Division returns how a queue of Inner divides dimension d; sated, how it would if every queue without children that wants any of it
// wanted the whole cluster.
func (s *State) Division(q model.QueueID, d int, sated bool) Division {
	s.settle()
	c := &s.division.columns[d]
	if sated {
		c = s.sated(d)
	}
	return s.divisionOf(c, q, d)
}

// DivisionWithMemory returns how a queue of Inner divides dimension d by the weights with memory. The session has a memory.
func (s *State) DivisionWithMemory(q model.QueueID, d int) Division {
	s.settle()
	return s.divisionOf(s.steered(d), q, d)
}

func (s *State) divisionOf(c *column, q model.QueueID, d int) Division {
	p := place(0)
	if q != model.None {
		p = s.tree.at[q]
	}
	pr := s.problem(c, p)
	out := Division{Queue: q, Dimension: d, Amount: pr.Amount, Stage: pr.Stage, Level: pr.Level(), Children: make([]Portion, len(pr.Share))}
	for i, share := range pr.Share {
		portion := &out.Children[i]
		*portion = s.portion(c, s.tree.first[p]+place(i), d)
		portion.Weight, portion.Start, portion.Ceiling, portion.Base = pr.Weight[i], pr.From(i), pr.Ceiling[i], pr.Zero(i)
		switch share {
		case portion.Ceiling:
			portion.Bound = AtUpper
		case portion.Start:
			portion.Bound = AtLower
		default:
			portion.Bound = AtLevel
		}
	}
	return out
}

// Root returns the root's own numbers of dimension d.
func (s *State) Root(d int) Portion {
	s.settle()
	return s.portion(&s.division.columns[d], 0, d)
}

// RootWithMemory returns the root's own numbers of dimension d in the division with memory.
func (s *State) RootWithMemory(d int) Portion {
	s.settle()
	return s.portion(s.steered(d), 0, d)
}

// portion returns the numbers of a place that do not depend on how its parent divides.
func (s *State) portion(c *column, p place, d int) Portion {
	out := Portion{Queue: s.tree.queue[p], Guaranteed: c.Low[p], Begin: c.Begin[p], Useful: c.High[p], Share: c.Share[p]}
	for i := range out.Lines {
		out.Lines[i] = s.line(i, p, d) / s.quantum[d]
	}
	return out
}

// Quantum returns the amount in which dimension d is given.
func (s *State) Quantum(d int) int64 { return s.quantum[d] }

// Total returns what there is of dimension d to divide.
func (s *State) Total(d int) int64 { return s.total(d) }
