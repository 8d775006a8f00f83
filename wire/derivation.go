package wire

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/engine/policy/proportion"
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

// derive adds how a plugin came by its numbers.
func (s *Session) derive(plugin *apportionv1.PluginShares, state policy.State, queues []model.QueueID) error {
	var err error
	switch p := state.(type) {
	case *proportion.State:
		plugin.Proportion, err = s.proportion(p, queues)
	case capacityLevels:
		plugin.Capacity, err = s.capacity(p, queues)
	case *fair.State:
		plugin.Fair, err = s.fair(p, queues)
	}
	return err
}

// capacityLevels is a state of capacity, flat or hierarchical.
type capacityLevels interface {
	Derivation(queues []model.QueueID) []capacity.Level
}

func (s *Session) capacity(p capacityLevels, queues []model.QueueID) (*apportionv1.CapacityDerivation, error) {
	wanted := len(queues)
	if queues == nil {
		wanted = len(s.engine.View().Queues)
	}
	if err := s.out.room(8*wanted, "explain.queues"); err != nil {
		return nil, err
	}
	out := &apportionv1.CapacityDerivation{}
	for _, l := range p.Derivation(queues) {
		out.Levels = append(out.Levels, &apportionv1.CapacityLevel{
			Queue: uint32(l.Queue), Parent: s.out.optional(int(l.Parent)), Depth: uint32(l.Depth), Capability: s.out.resource(l.Capability),
			ResolvedCapability: s.out.resource(l.ResolvedCapability), ParentRealCapability: s.out.resource(l.ParentRealCapability),
			SiblingGuarantee: s.out.resource(l.SiblingGuarantee), RealCapability: s.out.resource(l.RealCapability),
			WrittenDeserved: s.out.resource(l.WrittenDeserved), Deserved: s.out.resource(l.Deserved),
		})
		if s.out.left -= messageBytes; s.out.left < 0 {
			return nil, s.out.tooLarge("explain.queues")
		}
	}
	return out, nil
}

func (s *Session) proportion(p *proportion.State, queues []model.QueueID) (*apportionv1.ProportionDerivation, error) {
	r := rounds{session: s, out: &apportionv1.ProportionDerivation{}}
	d, err := p.Derive(queues, &r)
	if err != nil {
		return nil, err
	}
	r.out.End = apportionv1.ProportionEnd(d.End)
	r.out.Total, r.out.TotalGuarantee = s.out.resource(d.Total), s.out.resource(d.TotalGuarantee)
	return r.out, nil
}

// rounds makes the derivation of a division while it divides, and ends it where the answer is too large.
type rounds struct {
	session *Session
	out     *apportionv1.ProportionDerivation
}

// Round adds a round.
func (r *rounds) Round(remaining resource.Row, totalWeight int64) error {
	out := &r.session.out
	r.out.Rounds = append(r.out.Rounds, &apportionv1.ProportionRound{Remaining: out.resource(remaining), TotalWeight: uint64(totalWeight)})
	out.left -= 2 * messageBytes
	return out.check("explain.queues")
}

// Step adds the result of the last round for a queue.
func (r *rounds) Step(step *proportion.Step) error {
	out, round := &r.session.out, r.out.Rounds[len(r.out.Rounds)-1]
	round.Shares = append(round.Shares, &apportionv1.ProportionShare{
		Queue: uint32(step.Queue), Weight: uint32(step.Weight), Weighted: out.resource(step.Weighted), Capped: out.resource(step.Capped),
		Requested: out.resource(step.Requested), Deserved: out.resource(step.Deserved), Met: step.Met,
	})
	out.left -= messageBytes
	return out.check("explain.queues")
}
