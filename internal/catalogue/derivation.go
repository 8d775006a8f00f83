package catalogue

import (
	"math/big"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Derivation adds to the shares of a plugin the derivation for the given queues, nil for all.
type Derivation func(shares *apportionv1.PluginShares, state policy.State, queues []model.QueueID, answer Answer) error

// Answer makes the parts of an answer and keeps its size within the limit. Sizes are in messages of a few numbers.
type Answer interface {
	// View is the state that the answer is about.
	View() *policy.View
	// Resource returns nil for an absent row.
	Resource(row resource.Row) *apportionv1.Resource
	// Optional returns nil for -1.
	Optional(n int) *uint32
	// Fraction returns nil for nil.
	Fraction(f *big.Rat) *apportionv1.Fraction
	// Reservation returns nil if the reader may not see its job.
	Reservation(r policy.Reservation) *apportionv1.Reservation
	// Room returns an error if n more messages are too many.
	Room(n int) error
	// Count counts n messages that were made, without their resources.
	Count(n int)
	// Check returns an error if what was made is too large.
	Check() error
	// Stopped is called for every row i of a loop, and returns true if the caller no longer waits.
	Stopped(i int) bool
}

// Derive adds the derivation of the shares of the plugin with a name, if it has one.
func Derive(shares *apportionv1.PluginShares, state policy.State, queues []model.QueueID, answer Answer) error {
	for i := range Policies {
		if row := &Policies[i]; row.Name == shares.GetPlugin() && row.Derive != nil {
			return row.Derive(shares, state, queues, answer)
		}
	}
	return nil
}

// DerivationOf returns the derivation of a plugin with states of type S; states of other types have none.
func DerivationOf[S policy.State](derive func(*apportionv1.PluginShares, S, []model.QueueID, Answer) error) Derivation {
	return func(shares *apportionv1.PluginShares, state policy.State, queues []model.QueueID, answer Answer) error {
		if within, ok := state.(interface{ Unwrap() policy.State }); ok {
			state = within.Unwrap()
		}
		if own, ok := state.(S); ok {
			return derive(shares, own, queues, answer)
		}
		return nil
	}
}

// capacityLevels is a state of capacity, flat or hierarchical.
type capacityLevels interface {
	Derivation(queues []model.QueueID) []capacity.Level
}

func deriveCapacity(shares *apportionv1.PluginShares, state capacityLevels, queues []model.QueueID, answer Answer) error {
	wanted := len(queues)
	if queues == nil {
		wanted = len(answer.View().Queues)
	}
	if err := answer.Room(8 * wanted); err != nil {
		return err
	}
	out := &apportionv1.CapacityDerivation{}
	for _, l := range state.Derivation(queues) {
		out.Levels = append(out.Levels, &apportionv1.CapacityLevel{
			Queue: uint32(l.Queue), Parent: answer.Optional(int(l.Parent)), Depth: uint32(l.Depth),
			Capability:         answer.Resource(l.Capability),
			ResolvedCapability: answer.Resource(l.ResolvedCapability), ParentRealCapability: answer.Resource(l.ParentRealCapability),
			SiblingGuarantee: answer.Resource(l.SiblingGuarantee), RealCapability: answer.Resource(l.RealCapability),
			WrittenDeserved: answer.Resource(l.WrittenDeserved), Deserved: answer.Resource(l.Deserved),
		})
		answer.Count(1)
		if err := answer.Check(); err != nil {
			return err
		}
	}
	shares.Capacity = out
	return nil
}

func deriveProportion(shares *apportionv1.PluginShares, state *proportion.State, queues []model.QueueID, answer Answer) error {
	r := rounds{answer: answer, out: &apportionv1.ProportionDerivation{}}
	d, err := state.Derive(queues, &r)
	if err != nil {
		return err
	}
	r.out.End = apportionv1.ProportionEnd(d.End)
	r.out.Total, r.out.TotalGuarantee = answer.Resource(d.Total), answer.Resource(d.TotalGuarantee)
	shares.Proportion = r.out
	return nil
}

// rounds makes the derivation of a division while it divides, and ends it where the answer is too large.
type rounds struct {
	answer Answer
	out    *apportionv1.ProportionDerivation
}

// Round adds a round.
func (r *rounds) Round(remaining resource.Row, totalWeight int64) error {
	r.out.Rounds = append(r.out.Rounds, &apportionv1.ProportionRound{
		Remaining: r.answer.Resource(remaining), TotalWeight: uint64(totalWeight),
	})
	r.answer.Count(2)
	return r.answer.Check()
}

// Step adds the result of the last round for a queue.
func (r *rounds) Step(step *proportion.Step) error {
	answer, round := r.answer, r.out.Rounds[len(r.out.Rounds)-1]
	round.Shares = append(round.Shares, &apportionv1.ProportionShare{
		Queue: uint32(step.Queue), Weight: uint32(step.Weight), Weighted: answer.Resource(step.Weighted),
		Capped:    answer.Resource(step.Capped),
		Requested: answer.Resource(step.Requested), Deserved: answer.Resource(step.Deserved), Met: step.Met,
	})
	answer.Count(1)
	return answer.Check()
}
