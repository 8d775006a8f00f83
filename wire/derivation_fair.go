package wire

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// portionBytes is at least what a queue's part of a division takes.
const portionBytes = 32

// fair tells how the cluster was divided; queues are those wanted, nil for all.
func (s *Session) fair(p *fair.State, queues []model.QueueID) (*apportionv1.FairDerivation, error) {
	v := s.engine.View()
	wanted := s.fairWanted(p, queues)
	if err := s.fairRoom(p, wanted); err != nil {
		return nil, err
	}
	width := v.Dims.Len()
	total := resource.NewAccount(width)
	out := &apportionv1.FairDerivation{Quanta: make([]uint64, width)}
	for at, d := range v.Dims.Order() {
		out.Quanta[at] = uint64(p.Quantum(d))
		total.Set(d, float64(p.Total(d)))
	}
	out.Total = s.out.resource(total)
	for i, q := range p.Inner() {
		if q != model.None && !wanted[q] {
			continue
		}
		for _, d := range v.Dims.Order() {
			if s.stopped(i) {
				return nil, policy.ErrStopped
			}
			division := s.fairDivision(p.Division(q, d, false))
			if i == 0 {
				root := p.Root(d)
				division.Root = s.fairPortion(&root)
			}
			out.Divisions = append(out.Divisions, division)
			out.Sated = append(out.Sated, s.fairDivision(p.Division(q, d, true)))
			if s.out.left < 0 {
				return nil, s.out.tooLarge("explain.queues")
			}
		}
	}
	out.Queues = s.fairQueues(p, wanted)
	return out, s.out.check("explain.queues")
}

// fairWanted returns which queues are wanted: those selected and all above them.
func (s *Session) fairWanted(p *fair.State, queues []model.QueueID) []bool {
	wanted := make([]bool, len(s.engine.View().Queues))
	for q := range wanted {
		wanted[q] = queues == nil
	}
	for _, q := range queues {
		for q != model.None && !wanted[q] {
			wanted[q] = true
			q = p.Parent(q)
		}
	}
	return wanted
}

// fairRoom returns a *Fault if the divisions could not be sent.
func (s *Session) fairRoom(p *fair.State, wanted []bool) error {
	portions := 1
	for _, q := range p.Inner() {
		if q == model.None || wanted[q] {
			portions += len(p.Children(q))
		}
	}
	if cells := int64(portions) * int64(s.engine.View().Dims.Len()); cells > int64(s.out.left)/(2*portionBytes) {
		return s.out.tooLarge("explain.queues")
	}
	return nil
}

func (s *Session) fairDivision(division fair.Division) *apportionv1.FairDivision {
	out := &apportionv1.FairDivision{
		Queue: s.out.optional(int(division.Queue)), Dimension: uint32(s.engine.View().Dims.Position(division.Dimension)),
		Amount: uint64(division.Amount),
		Case:   apportionv1.FairCase(division.Stage), Level: s.out.fraction(division.Level),
		Children: make([]*apportionv1.FairPortion, len(division.Children)),
	}
	for i := range division.Children {
		out.Children[i] = s.fairPortion(&division.Children[i])
	}
	s.out.left -= messageBytes
	return out
}

func (s *Session) fairPortion(p *fair.Portion) *apportionv1.FairPortion {
	s.out.left -= portionBytes
	return &apportionv1.FairPortion{
		Queue: s.out.optional(int(p.Queue)), Guaranteed: uint64(p.Guaranteed), Begin: uint64(p.Begin), Useful: uint64(p.Useful),
		Weight: uint64(p.Weight), Start: uint64(p.Start), Ceiling: uint64(p.Ceiling), Base: uint64(p.Base), Share: uint64(p.Share),
		Bound: apportionv1.FairBound(p.Bound), GuaranteeLine: uint64(p.Lines[0]), FairLine: uint64(p.Lines[1]),
	}
}

// fairQueues tells what queues without children claim and leave.
func (s *Session) fairQueues(p *fair.State, wanted []bool) []*apportionv1.FairQueue {
	v := s.engine.View()
	claimed, aside := make([]int64, v.Dims.Len()), make([]int64, v.Dims.Len())
	row := resource.NewAccount(v.Dims.Len())
	resourceOf := func(amounts []int64) *apportionv1.Resource {
		row.Clear(resource.Base)
		for d, x := range amounts {
			if x != 0 {
				row.Set(d, float64(x))
			}
		}
		return s.out.resource(row)
	}
	var list []*apportionv1.FairQueue
	for q := range v.Queues {
		id := model.QueueID(q)
		if !wanted[q] || !p.Claims(id, claimed, aside) {
			continue
		}
		list = append(list, &apportionv1.FairQueue{
			Queue: uint32(q), Claimed: resourceOf(claimed), Aside: resourceOf(aside), Wants: p.Wants(id),
		})
		s.out.left -= messageBytes
	}
	return list
}
