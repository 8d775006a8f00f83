package wire

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/engine/policy/proportion"
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
	// The rounds alone are few numbers; they tell how large the rest would be.
	outline, err := p.Derivation([]model.QueueID{})
	if err != nil {
		return nil, err
	}
	v := s.engine.View()
	wanted := len(queues)
	if queues == nil {
		wanted = len(v.Queues)
	}
	steps := int64(len(outline.Rounds)) * int64(wanted)
	if steps > int64(s.out.left)/(5*messageBytes) {
		return nil, s.out.tooLarge("explain.queues")
	}
	d, err := p.Derivation(queues)
	if err != nil {
		return nil, err
	}
	out := &apportionv1.ProportionDerivation{
		End: apportionv1.ProportionEnd(d.End), Total: s.out.resource(d.Total), TotalGuarantee: s.out.resource(d.TotalGuarantee),
	}
	for _, round := range d.Rounds {
		r := &apportionv1.ProportionRound{
			Remaining: s.out.resource(round.Remaining), TotalWeight: uint64(round.TotalWeight),
			Shares: make([]*apportionv1.ProportionShare, len(round.Steps)),
		}
		for i := range round.Steps {
			step := &round.Steps[i]
			r.Shares[i] = &apportionv1.ProportionShare{
				Queue: uint32(step.Queue), Weight: uint32(step.Weight), Weighted: s.out.resource(step.Weighted),
				Capped: s.out.resource(step.Capped), Requested: s.out.resource(step.Requested), Deserved: s.out.resource(step.Deserved),
				Met: step.Met,
			}
		}
		out.Rounds = append(out.Rounds, r)
		if s.out.left -= messageBytes * (2 + len(round.Steps)); s.out.left < 0 {
			return nil, s.out.tooLarge("explain.queues")
		}
	}
	return out, nil
}
