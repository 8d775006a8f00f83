package catalogue

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// portionSize is at least what a queue's part of a division takes, in messages of a few numbers.
const portionSize = 2

// division makes the derivation of fair.
type division struct {
	Answer
	state *fair.State
	// wanted are the queues to tell of: those selected and all above them.
	wanted []bool
}

func deriveFair(shares *apportionv1.PluginShares, p *fair.State, queues []model.QueueID, answer Answer) error {
	s := division{Answer: answer, state: p, wanted: wantedOf(p, queues, len(answer.View().Queues))}
	var err error
	shares.Fair, err = s.derivation()
	return err
}

// derivation returns how the cluster was divided.
func (s *division) derivation() (*apportionv1.FairDerivation, error) {
	p, v := s.state, s.View()
	if err := s.fits(); err != nil {
		return nil, err
	}
	width := v.Dims.Len()
	total := resource.NewAccount(width)
	out := &apportionv1.FairDerivation{Quanta: make([]uint64, width)}
	for at, d := range v.Dims.Order() {
		out.Quanta[at] = uint64(p.Quantum(d))
		total.Set(d, float64(p.Total(d)))
	}
	out.Total = s.Resource(total)
	for i, q := range p.Inner() {
		if q != model.None && !s.wanted[q] {
			continue
		}
		for _, d := range v.Dims.Order() {
			if s.Stopped(i) {
				return nil, policy.ErrStopped
			}
			divided := s.divided(p.Division(q, d, false))
			if i == 0 {
				root := p.Root(d)
				divided.Root = s.portion(&root)
			}
			out.Divisions = append(out.Divisions, divided)
			out.SatedDivisions = append(out.SatedDivisions, s.divided(p.Division(q, d, true)))
			if p.HasMemory() {
				s.remember(out, q, d, i == 0)
			}
			if err := s.Check(); err != nil {
				return nil, err
			}
		}
	}
	out.Queues = s.queues()
	if kept, ok := p.Reservation(); ok && s.wanted[s.View().Jobs.At(kept.Job).Queue] {
		out.Reservation = s.Reservation(kept)
	}
	return out, s.Check()
}

// remember adds the division with memory of a queue in a dimension, and how its weights follow from usage.
func (s *division) remember(out *apportionv1.FairDerivation, q model.QueueID, d int, isRoot bool) {
	divided := s.divided(s.state.DivisionWithMemory(q, d))
	if isRoot {
		root := s.state.RootWithMemory(d)
		divided.Root = s.portion(&root)
	}
	out.RememberedDivisions = append(out.RememberedDivisions, divided)
	w := s.state.Weighing(q, d)
	weights := &apportionv1.MemoryDivision{
		Queue: s.Optional(int(q)), Dimension: divided.GetDimension(), Reference: w.Reference.String(), Usage: w.Usage.String(),
		Nominal: w.Nominal.String(), Weight: uint64(w.Weight), WeightAll: uint64(w.All),
		Children: make([]*apportionv1.MemoryChild, len(w.Children)),
	}
	for i := range w.Children {
		c := &w.Children[i]
		child := &apportionv1.MemoryChild{
			Queue: s.Optional(int(c.Queue)), Weight: uint64(c.Weight), IsNew: c.Usage == nil, Factor: uint32(c.Factor),
			BudgetFactor: uint32(c.Soft), EffectiveWeight: uint64(c.Effective),
		}
		if c.Usage != nil {
			child.Usage = c.Usage.String()
		}
		weights.Children[i] = child
		s.Count(portionSize)
	}
	out.Weights = append(out.Weights, weights)
	s.Count(1)
}

// wantedOf returns which of n queues are selected or are ancestors of selected ones.
func wantedOf(p *fair.State, queues []model.QueueID, n int) []bool {
	wanted := make([]bool, n)
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

// fits returns an error if the divisions could not be sent.
func (s *division) fits() error {
	portions := 1
	for _, q := range s.state.Inner() {
		if q == model.None || s.wanted[q] {
			portions += len(s.state.Children(q))
		}
	}
	divisions := 2
	if s.state.HasMemory() {
		divisions = 4
	}
	return s.Room(divisions * portionSize * portions * s.View().Dims.Len())
}

func (s *division) divided(division fair.Division) *apportionv1.FairDivision {
	out := &apportionv1.FairDivision{
		Queue: s.Optional(int(division.Queue)), Dimension: uint32(s.View().Dims.Position(division.Dimension)),
		Amount: uint64(division.Amount),
		Rule:   apportionv1.FairCase(division.Stage), Level: s.Fraction(division.Level),
		Children: make([]*apportionv1.FairPortion, len(division.Children)),
	}
	for i := range division.Children {
		out.Children[i] = s.portion(&division.Children[i])
	}
	s.Count(1)
	return out
}

func (s *division) portion(p *fair.Portion) *apportionv1.FairPortion {
	s.Count(portionSize)
	return &apportionv1.FairPortion{
		Queue: s.Optional(int(p.Queue)), Guaranteed: uint64(p.Guaranteed), Begin: uint64(p.Begin), Useful: uint64(p.Useful),
		Weight: uint64(p.Weight), Start: uint64(p.Start), Ceiling: uint64(p.Ceiling), Base: uint64(p.Base), Share: uint64(p.Share),
		Bound: apportionv1.FairBound(p.Bound), GuaranteeLine: uint64(p.Lines[0]), FairLine: uint64(p.Lines[1]),
	}
}

// queues returns what queues without children claim and leave.
func (s *division) queues() []*apportionv1.FairQueue {
	v := s.View()
	claimed, aside := make([]int64, v.Dims.Len()), make([]int64, v.Dims.Len())
	row := resource.NewAccount(v.Dims.Len())
	resourceOf := func(amounts []int64) *apportionv1.Resource {
		row.Clear(resource.Base)
		for d, x := range amounts {
			if x != 0 {
				row.Set(d, float64(x))
			}
		}
		return s.Resource(row)
	}
	var list []*apportionv1.FairQueue
	for q := range v.Queues {
		id := model.QueueID(q)
		if !s.wanted[q] || !s.state.Claims(id, claimed, aside) {
			continue
		}
		list = append(list, &apportionv1.FairQueue{
			Queue: uint32(q), Claimed: resourceOf(claimed), Aside: resourceOf(aside), Wants: s.state.Wants(id),
		})
		if s.state.Saved(id, aside) {
			list[len(list)-1].Saved = resourceOf(aside)
		}
		s.Count(1)
	}
	return list
}
