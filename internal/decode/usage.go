package decode

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

var (
	memoryFields = tableOf[apportionv1.Memory]()
	ownerFields  = tableOf[apportionv1.OwnerUsage]()
)

// integersOf lends a Usage to a Builder, which copies it; nil for nil.
func integersOf(u *apportionv1.Usage) *model.Integers {
	if u == nil {
		return nil
	}
	return &model.Integers{Dimension: u.GetDimensions(), Amount: u.GetQuantumSeconds()}
}

// memory feeds the memory of a snapshot or a change, if it has one.
func (c *compiler) memory(m *apportionv1.Memory) {
	if m != nil {
		c.b.Memory(&model.MemorySpec{
			EpochSeconds: m.GetEpochSeconds(), HalfLife: m.GetHalfLifeEpochs(), Epoch: m.GetEpoch(), Offered: integersOf(m.GetOffered()),
		})
	}
}

// queueMemory returns what a queue used and may use, nil if it says nothing of it.
func (c *compiler) queueMemory(q *apportionv1.Queue) *model.QueueMemorySpec {
	if q.GetUsage() == nil && q.GetEntitled() == nil && q.GetReserved() == nil && q.GetBudget() == nil && len(q.GetOwners()) == 0 {
		return nil
	}
	spec := &model.QueueMemorySpec{
		Usage: integersOf(q.GetUsage()), Entitled: integersOf(q.GetEntitled()), Reserved: integersOf(q.GetReserved()),
	}
	if b := q.GetBudget(); b != nil {
		spec.Budget = &model.BudgetSpec{
			Kind:   model.BudgetKind(min(max(b.GetKind(), 0), math.MaxUint8)),
			Amount: integersOf(b.GetAmount()), Spent: integersOf(b.GetSpent()),
		}
	}
	for _, o := range q.GetOwners() {
		c.text(o.GetOwner())
		owner := model.OwnerSpec{Owner: o.GetOwner(), Usage: integersOf(o.GetUsage()), Weight: 1}
		if o != nil && o.Weight != nil {
			owner.Weight = *o.Weight
		}
		spec.Owners = append(spec.Owners, owner)
	}
	return spec
}

// usageOf is the Usage of integers.
func usageOf(m *model.Model, u *model.Usage) *apportionv1.Usage {
	out := &apportionv1.Usage{}
	for position, d := range m.Dims.Order() {
		if u.Has.Has(d) {
			out.Dimensions, out.QuantumSeconds = append(out.Dimensions, uint32(position)), append(out.QuantumSeconds, u.At(d))
		}
	}
	return out
}

// MemoryOf describes the memory of a model, nil if it has none.
func MemoryOf(m *model.Model) *apportionv1.Memory {
	of := m.Memory
	if of == nil {
		return nil
	}
	return &apportionv1.Memory{
		EpochSeconds: of.EpochSeconds, HalfLifeEpochs: uint32(of.HalfLife), Epoch: of.Epoch, Offered: usageOf(m, &of.Offered),
	}
}

// describeMemory sets what a queue used and may use.
func describeMemory(m *model.Model, of *model.QueueMemory, out *apportionv1.Queue) {
	if of == nil {
		return
	}
	if of.Usage != nil {
		out.Usage = usageOf(m, of.Usage)
	}
	if of.Entitled != nil {
		out.Entitled = usageOf(m, of.Entitled)
	}
	if of.Reserved != nil {
		out.Reserved = usageOf(m, of.Reserved)
	}
	if b := of.Budget; b != nil {
		out.Budget = &apportionv1.Budget{
			Kind: apportionv1.BudgetKind(b.Kind), Amount: usageOf(m, &b.Amount), Spent: usageOf(m, &b.Spent),
		}
	}
	for i := range of.Owners {
		o := &of.Owners[i]
		out.Owners = append(out.Owners, &apportionv1.OwnerUsage{
			Owner: o.Owner, Usage: usageOf(m, &o.Usage), Weight: new(uint32(o.Weight)),
		})
	}
}
