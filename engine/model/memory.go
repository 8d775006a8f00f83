package model

import (
	"fmt"
	"math"

	"github.com/apportion/apportion/engine/resource"
)

// Integers is a sparse vector of integers as in a snapshot: Amount[i] belongs to dimension Dimension[i] of the names given to
// Builder.Dimensions. A nil *Integers means that no vector is given.
type Integers struct {
	Dimension []uint32
	Amount    []int64
}

// Usage is amounts in quantum-seconds, by dimension. A dimension that it does not have is 0.
type Usage struct {
	Has resource.Mask
	v   []int64
}

// At returns the amount of a dimension.
func (u *Usage) At(d int) int64 {
	if !u.Has.Has(d) {
		return 0
	}
	return u.v[d]
}

// Memory says at what time, and with what decay, the usage of a snapshot is stated.
type Memory struct {
	// EpochSeconds is the length of an epoch. Epoch n begins n of them after 1970.
	EpochSeconds int64
	// HalfLife is the number of epochs after which usage counts half.
	HalfLife int32
	// Epoch is that at whose beginning usage is stated.
	Epoch int64
	// Offered is what the cluster offered, decayed as usage is.
	Offered Usage
}

// MemorySpec is the description of a Memory in a snapshot.
type MemorySpec struct {
	EpochSeconds int64
	HalfLife     uint32
	Epoch        int64
	Offered      *Integers
}

// QueueMemory is what a queue used, and what it may use.
type QueueMemory struct {
	// Usage is nil if it is not known.
	Usage *Usage
	// Entitled is what it was entitled to, decayed as usage is; nil if it is not known.
	Entitled *Usage
	// Reserved is the room that reservations of its gangs kept idle, decayed as usage is; nil: none.
	Reserved *Usage
	Budget   *Budget
	// Owners are in the order of the snapshot.
	Owners []OwnerUsage
	// faulty says that amounts could not be read, which matters once the model has a memory.
	faulty bool
}

// Bytes returns about what it takes without its texts.
func (q *QueueMemory) Bytes() int {
	if q == nil {
		return 0
	}
	const own, usage, budget, owner = 72, 32, 80, 56
	bytes := own + owner*cap(q.Owners)
	for _, u := range [...]*Usage{q.Usage, q.Entitled, q.Reserved} {
		if u != nil {
			bytes += usage + 8*len(u.v)
		}
	}
	if of := q.Budget; of != nil {
		bytes += budget + 8*(len(of.Amount.v)+len(of.Spent.v))
	}
	for i := range q.Owners {
		bytes += 8 * len(q.Owners[i].Usage.v)
	}
	return bytes
}

// BudgetKind says what a budget does.
type BudgetKind uint8

// The kinds of budgets. The values are those of the contract's BudgetKind.
const (
	HardBudget BudgetKind = iota + 1
	SoftBudget
)

// Budget is an amount of usage for a period, in the dimensions of Amount.
type Budget struct {
	Kind          BudgetKind
	Amount, Spent Usage
}

// OwnerUsage is what the jobs of one owner used in a queue.
type OwnerUsage struct {
	Owner  string
	Usage  Usage
	Weight int64
}

// QueueMemorySpec is the description of a QueueMemory in a snapshot. Nil pointers mean absent values.
type QueueMemorySpec struct {
	Usage, Entitled, Reserved *Integers
	Budget                    *BudgetSpec
	Owners                    []OwnerSpec
}

// BudgetSpec is the description of a Budget in a snapshot. Any Kind but those listed is a violation.
type BudgetSpec struct {
	Kind          BudgetKind
	Amount, Spent *Integers
}

// OwnerSpec is the description of an OwnerUsage in a snapshot.
type OwnerSpec struct {
	Owner  string
	Usage  *Integers
	Weight uint32
}

// maxHalfLife bounds the half-life of usage, in epochs.
const maxHalfLife = 512

// Memory sets the memory of the snapshot, without which usage, budgets and owners are ignored. Call it before Queue. nil: none.
func (b *Builder) Memory(s *MemorySpec) {
	if s == nil {
		return
	}
	if s.EpochSeconds <= 0 {
		b.faults.Add("memory.epoch_seconds", "%d is below 1", s.EpochSeconds)
	}
	if s.HalfLife < 1 || s.HalfLife > maxHalfLife {
		b.faults.Add("memory.half_life_epochs", "%d is not from 1 to %d", s.HalfLife, maxHalfLife)
	}
	if s.Epoch < 0 {
		b.faults.Add("memory.epoch", "%d is negative", s.Epoch)
	}
	m := &Memory{EpochSeconds: s.EpochSeconds, HalfLife: int32(min(s.HalfLife, maxHalfLife)), Epoch: s.Epoch}
	m.Offered = b.usage(s.Offered, func(fault string, args ...any) { b.faults.Add("memory.offered", fault, args...) })
	if b.change != nil && b.m.Memory == nil {
		b.checkMemories()
	}
	b.m.Memory = m
}

// Forget removes the memory of the base of a change.
func (b *ChangeBuilder) Forget() { b.m.Memory = nil }

// checkMemories records the queues of the base of a change whose usage could not be read.
func (b *Builder) checkMemories() {
	for i := range b.m.Queues {
		if of := b.m.Queues[i].Memory; of != nil && of.faulty {
			b.faults.Add("memory", "the usage, the budget or the owners of the queue %q are not valid", b.m.Queues[i].Name)
		}
	}
}

// queueMemory returns what a queue used and may use, nil if that is not given. What is wrong with it matters only with a memory.
func (b *Builder) queueMemory(s *QueueMemorySpec, queue int) *QueueMemory {
	if s == nil || s.Usage == nil && s.Entitled == nil && s.Reserved == nil && s.Budget == nil && len(s.Owners) == 0 {
		return nil
	}
	out := &QueueMemory{}
	at := func(field string) func(string, ...any) {
		return func(fault string, args ...any) {
			out.faulty = true
			if b.m.Memory != nil {
				b.faults.Add(queuePath(queue, field), fault, args...)
			}
		}
	}
	known := func(a *Integers, field string) *Usage {
		if a == nil {
			return nil
		}
		amounts := b.usage(a, at(field))
		return &amounts
	}
	out.Usage, out.Entitled, out.Reserved = known(s.Usage, "usage"), known(s.Entitled, "entitled"), known(s.Reserved, "reserved")
	if of := s.Budget; of != nil {
		if of.Kind != HardBudget && of.Kind != SoftBudget {
			at("budget.kind")("no kind %d", of.Kind)
		}
		out.Budget = &Budget{
			Kind: of.Kind, Amount: b.usage(of.Amount, at("budget.amount")), Spent: b.usage(of.Spent, at("budget.spent")),
		}
	}
	b.owners(out, s.Owners, at)
	return out
}

func (b *Builder) owners(out *QueueMemory, owners []OwnerSpec, at func(field string) func(string, ...any)) {
	if len(owners) == 0 {
		return
	}
	seen := make(map[string]int, len(owners))
	out.Owners = make([]OwnerUsage, 0, len(owners))
	for i, o := range owners {
		if first, twice := seen[o.Owner]; twice {
			at(fmt.Sprintf("owners[%d].owner", i))("owner %q is owners[%d] already", o.Owner, first)
		}
		owner := b.text.keep(o.Owner)
		seen[owner] = i
		out.Owners = append(out.Owners, OwnerUsage{
			Owner: owner, Usage: b.usage(o.Usage, at(fmt.Sprintf("owners[%d].usage", i))), Weight: int64(max(o.Weight, 1)),
		})
	}
}

// usage returns the dense form of integers; nil is zeros.
func (b *Builder) usage(a *Integers, fault func(format string, args ...any)) Usage {
	out := Usage{}
	switch {
	case a == nil:
		return out
	case len(a.Dimension) != len(a.Amount):
		fault("%d dimensions but %d amounts", len(a.Dimension), len(a.Amount))
		return out
	}
	out.v = make([]int64, b.width)
	for i, given := range a.Dimension {
		if int64(given) >= int64(len(b.index)) {
			if !b.undimensioned {
				fault("no dimension %d, there are %d", given, b.known)
			}
			continue
		}
		d := b.index[given]
		switch {
		case out.Has.Has(d):
			fault("dimension %q is given twice", b.m.Dims.Name(d))
		case a.Amount[i] < 0:
			fault("%s is not from 0 to %d: %d", b.m.Dims.Name(d), int64(math.MaxInt64), a.Amount[i])
		default:
			out.Has, out.v[d] = out.Has.With(d), a.Amount[i]
		}
	}
	return out
}

// wider returns the usage in more dimensions, of which at names the earlier ones.
func (u *Usage) wider(at []int, width int) Usage {
	out := Usage{}
	if u.v == nil {
		return out
	}
	out.v = make([]int64, width)
	for m := u.Has; m != 0; m = m.Rest() {
		d := at[m.First()]
		out.Has, out.v[d] = out.Has.With(d), u.v[m.First()]
	}
	return out
}

// wider returns what a queue used in more dimensions.
func (q *QueueMemory) wider(at []int, width int) *QueueMemory {
	if q == nil {
		return nil
	}
	out := &QueueMemory{faulty: q.faulty}
	known := func(u *Usage) *Usage {
		if u == nil {
			return nil
		}
		amounts := u.wider(at, width)
		return &amounts
	}
	out.Usage, out.Entitled, out.Reserved = known(q.Usage), known(q.Entitled), known(q.Reserved)
	if of := q.Budget; of != nil {
		out.Budget = &Budget{Kind: of.Kind, Amount: of.Amount.wider(at, width), Spent: of.Spent.wider(at, width)}
	}
	for _, o := range q.Owners {
		out.Owners = append(out.Owners, OwnerUsage{Owner: o.Owner, Usage: o.Usage.wider(at, width), Weight: o.Weight})
	}
	return out
}

// wider returns the memory in more dimensions.
func (m *Memory) wider(at []int, width int) *Memory {
	if m == nil {
		return nil
	}
	out := *m
	out.Offered = m.Offered.wider(at, width)
	return &out
}
