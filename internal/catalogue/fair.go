package catalogue

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/engine/policy/fair"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// maxQuantum bounds quanta: amounts above are no exact numbers in a snapshot.
const maxQuantum = 1 << 53

func readFair(m *apportionv1.Fair, fault Fault) fair.Plugin {
	p := fair.Plugin{ReserveGuarantee: m.GetReserveGuarantee()}
	switch m.GetBase() {
	case apportionv1.FairBase_FAIR_BASE_UNSPECIFIED, apportionv1.FairBase_FAIR_BASE_NONE:
	case apportionv1.FairBase_FAIR_BASE_GUARANTEE:
		p.Base = fair.OnGuarantee
	case apportionv1.FairBase_FAIR_BASE_DESERVED:
		p.Base = fair.OnDeserved
	default:
		fault("base", "no base %d", m.GetBase())
	}
	seen := map[string]bool{}
	for i, q := range m.GetQuanta() {
		path := fmt.Sprintf("quanta[%d].", i)
		switch {
		case q.GetName() == "":
			fault(path+"name", "a quantum needs the name of a dimension")
		case seen[q.GetName()]:
			fault(path+"name", "%q is named twice", q.GetName())
		}
		if q.GetAmount() < 1 || q.GetAmount() > maxQuantum {
			fault(path+"amount", "%d is not from 1 to %d", q.GetAmount(), maxQuantum)
		}
		seen[q.GetName()] = true
		p.Quanta = append(p.Quanta, fair.Quantum{Dimension: q.GetName(), Amount: int64(min(q.GetAmount(), maxQuantum))})
	}
	p.Memory = readFairMemory(m.GetMemory(), fault)
	if turns := m.GetTurns(); turns != nil {
		p.Turns = &fair.Turns{
			Wait: int64(turns.GetWaitSeconds()) * int64(time.Second), SingleWait: int64(turns.GetSingleWaitSeconds()) * int64(time.Second),
		}
	}
	return p
}

// readFairMemory returns the settings of memory, with their defaults.
func readFairMemory(m *apportionv1.FairMemory, fault Fault) fair.Memory {
	p := fair.DefaultMemory()
	if m == nil {
		return p
	}
	if m.Gain != nil {
		p.Gain = int64(m.GetGain())
	}
	if m.Power != nil {
		p.Power = int(m.GetPower())
	}
	if p.Power < 1 || p.Power > fair.MaxPower {
		fault("memory.power", "%d is not from 1 to %d", m.GetPower(), fair.MaxPower)
	} else if !p.Bounded() {
		fault("memory.gain", "%d is too great: (1 + gain/65536)^power exceeds %d", p.Gain, fair.MaxFactor)
	}
	p.Owners, p.NoSaving = m.GetOwners(), m.GetNoSaving()
	if m.GetPrices() == nil {
		return p
	}
	p.Prices = []fair.Price{}
	seen := map[string]bool{}
	for i, price := range m.GetPrices().GetPrices() {
		path := fmt.Sprintf("memory.prices.prices[%d].dimension", i)
		switch {
		case price.GetDimension() == "":
			fault(path, "a price needs the name of a dimension")
		case seen[price.GetDimension()]:
			fault(path, "%q is named twice", price.GetDimension())
		}
		seen[price.GetDimension()] = true
		p.Prices = append(p.Prices, fair.Price{Dimension: price.GetDimension(), Amount: int64(price.GetAmount())})
	}
	return p
}

// writeFair lists quanta by name: their order says nothing.
func writeFair(p fair.Plugin) *apportionv1.Fair {
	m := &apportionv1.Fair{Base: apportionv1.FairBase(p.Base + 1), ReserveGuarantee: p.ReserveGuarantee}
	for _, q := range p.Quanta {
		m.Quanta = append(m.Quanta, &apportionv1.Quantum{Name: q.Dimension, Amount: uint64(q.Amount)})
	}
	slices.SortStableFunc(m.Quanta, func(l, r *apportionv1.Quantum) int { return strings.Compare(l.GetName(), r.GetName()) })
	m.Memory = writeFairMemory(p.Memory)
	if p.Turns != nil {
		m.Turns = &apportionv1.FairTurns{
			WaitSeconds: uint32(p.Turns.Wait / int64(time.Second)), SingleWaitSeconds: uint32(p.Turns.SingleWait / int64(time.Second)),
		}
	}
	return m
}

// writeFairMemory returns nil for the defaults. They are the same policy as absent settings, so that its digest stays the same as in
// earlier versions.
func writeFairMemory(p fair.Memory) *apportionv1.FairMemory {
	if p.IsDefault() {
		return nil
	}
	m := &apportionv1.FairMemory{Gain: new(uint32(p.Gain)), Power: new(uint32(p.Power)), Owners: p.Owners, NoSaving: p.NoSaving}
	if p.Prices != nil {
		m.Prices = &apportionv1.Prices{}
	}
	for _, price := range p.Prices {
		if price.Amount > 0 {
			m.Prices.Prices = append(m.Prices.Prices, &apportionv1.Price{Dimension: price.Dimension, Amount: uint32(price.Amount)})
		}
	}
	if m.Prices != nil {
		slices.SortStableFunc(m.Prices.Prices, func(l, r *apportionv1.Price) int {
			return strings.Compare(l.GetDimension(), r.GetDimension())
		})
	}
	return m
}
