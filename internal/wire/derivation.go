package wire

import (
	"math"
	"math/big"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// explained returns the queues whose derivation is wanted; nil: all.
func (s *Session) explained(e *apportionv1.Explain, faults *model.Error) []model.QueueID {
	if e.GetQueues() == nil {
		return nil
	}
	return s.selectQueues(e.GetQueues(), "explain.queues", faults)
}

// derivation is the part of an answer in which plugins tell how they came by their shares; see catalogue.Answer.
type derivation struct{ session *Session }

// View returns the state of the session.
func (d derivation) View() *policy.View { return d.session.engine.View() }

// Resource returns the amounts of a row.
func (d derivation) Resource(row resource.Row) *apportionv1.Resource {
	return d.session.out.resource(row)
}

// Optional returns a number, nil below 0.
func (d derivation) Optional(n int) *uint32 { return d.session.out.optional(n) }

// Fraction returns a ratio in its exact form.
func (d derivation) Fraction(f *big.Rat) *apportionv1.Fraction { return d.session.out.fraction(f) }

// Room returns an error if n more messages exceed the size of an answer.
func (d derivation) Room(n int) error { return d.session.out.room(n, "explain.queues") }

// Count counts n messages of the answer.
func (d derivation) Count(n int) { d.session.out.left -= n * messageBytes }

// Check returns an error if the answer is too large.
func (d derivation) Check() error { return d.session.out.check("explain.queues") }

// Stopped reports at step i of a loop whether the answer is no longer needed.
func (d derivation) Stopped(i int) bool { return d.session.stopped(i) }

// Reservation returns the room that is kept for a gang; nil if the reader may not see its queue.
func (d derivation) Reservation(r policy.Reservation) *apportionv1.Reservation {
	s := d.session
	queue := s.engine.View().Jobs.At(r.Job).Queue
	if !s.audience.Owns(queue) {
		return nil
	}
	d.Count(1)
	out := &apportionv1.Reservation{
		Job: uint32(r.Job), Queue: uint32(queue), StartTime: r.From, Tasks: indices(&s.out, r.Tasks), Nodes: indices(&s.out, r.Nodes),
	}
	if r.Until != math.MaxInt64 {
		out.EndTime = &r.Until
	}
	return out
}
