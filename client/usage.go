package client

import (
	"bytes"
	"maps"
	"slices"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Usage is quantum-seconds by name of dimension: the use of one quantum (a milli-core, a MiB of memory, a pod, a device) for one second is
// 1. A dimension that is not listed has an amount of 0.
type Usage map[string]int64

// Memory says at what time, and with what decay, the usage in a snapshot is stated. Only the policy `fair` uses it.
type Memory struct {
	// Epoch is the length of an epoch, in whole seconds. Usage is stated at the beginning of the epoch Number, counted from 1970.
	Epoch  time.Duration
	Number int64
	// HalfLife is the number of epochs after which usage counts half.
	HalfLife uint32
	// Offered is what the cluster offered, decayed as usage is.
	Offered Usage
}

// Budget bounds or slows what a queue may use in a period.
type Budget struct {
	Kind apportionv1.BudgetKind
	// Amount is for the whole period, Spent the part of it that is used up.
	Amount, Spent Usage
}

// OwnerUsage is the decayed usage of the jobs of one owner in a queue.
type OwnerUsage struct {
	Owner string
	Usage Usage
	// Weight nil stands for the default of 1.
	Weight *uint32
}

// Memory sets the memory, without which usage, budgets and owners are ignored.
func (s *Snapshot) Memory(m Memory) *Snapshot {
	s.message.Memory = &apportionv1.Memory{
		EpochSeconds: int64(m.Epoch / time.Second), HalfLifeEpochs: m.HalfLife, Epoch: m.Number, Offered: s.usage(m.Offered),
	}
	return s
}

// usage encodes a usage; nil stays nil.
func (s *Snapshot) usage(u Usage) *apportionv1.Usage {
	if u == nil {
		return nil
	}
	message := &apportionv1.Usage{}
	for _, name := range inOrder(slices.Collect(maps.Keys(u))) {
		message.Dimensions = append(message.Dimensions, s.dimensions.of(name))
		message.QuantumSeconds = append(message.QuantumSeconds, u[name])
	}
	s.dimensions.written = append(s.dimensions.written, message.Dimensions)
	return message
}

func (s *Snapshot) budget(b *Budget) *apportionv1.Budget {
	if b == nil {
		return nil
	}
	return &apportionv1.Budget{Kind: b.Kind, Amount: s.usage(b.Amount), Spent: s.usage(b.Spent)}
}

func (s *Snapshot) owners(list []OwnerUsage) []*apportionv1.OwnerUsage {
	var out []*apportionv1.OwnerUsage
	for _, o := range list {
		out = append(out, &apportionv1.OwnerUsage{Owner: o.Owner, Usage: s.usage(o.Usage), Weight: o.Weight})
	}
	return out
}

// SetMemory sets the memory of the cluster; nil: none. The usage of a queue is part of the queue.
func (m *Mirror) SetMemory(memory *Memory) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if memory == nil {
		return m.setMemory(nil)
	}
	built, err := m.build(func(s *Snapshot) { s.Memory(*memory) })
	if err != nil {
		return err
	}
	return m.setMemory(built.message.GetMemory())
}

func (m *Mirror) setMemory(memory *apportionv1.Memory) error {
	if memory == nil {
		m.changed, m.memory = m.changed || m.memory != nil, nil
		return nil
	}
	data, err := encode(memory)
	if err != nil {
		return err
	}
	if m.memory == nil || !bytes.Equal(m.memory, data) {
		m.memory, m.changed = data, true
	}
	return nil
}
