package wire

import (
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

func (d derivation) View() *policy.View { return d.session.engine.View() }
func (d derivation) Resource(row resource.Row) *apportionv1.Resource {
	return d.session.out.resource(row)
}
func (d derivation) Optional(n int) *uint32                    { return d.session.out.optional(n) }
func (d derivation) Fraction(f *big.Rat) *apportionv1.Fraction { return d.session.out.fraction(f) }
func (d derivation) Room(n int) error                          { return d.session.out.room(n, "explain.queues") }
func (d derivation) Count(n int)                               { d.session.out.left -= n * messageBytes }
func (d derivation) Check() error                              { return d.session.out.check("explain.queues") }
func (d derivation) Stopped(i int) bool                        { return d.session.stopped(i) }
