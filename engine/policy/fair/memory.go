package fair

import (
	"math/big"
	"math/bits"

	"github.com/apportion/apportion/engine/model"
)

// one is the unit of gains and factors, and nanoseconds are those of a second.
const (
	one         = 1 << 16
	nanoseconds = 1_000_000_000
)

const (
	// MaxPower bounds Memory.Power.
	MaxPower = 4
	// MaxFactor bounds the factor of the weight of a queue without any usage.
	MaxFactor = 256
)

// Memory says how past usage counts.
type Memory struct {
	// Gain says how strongly, in units of 1/65536; not negative. The weight of a queue without usage is multiplied by
	// (1 + Gain/65536)^Power, which is at most MaxFactor.
	Gain int64
	// Power is from 1 to MaxPower.
	Power int
	// Prices charge one price for all dimensions together. nil: each dimension is charged by itself. No dimension is named twice.
	Prices []Price
	// Owners serves jobs of equal priority by the usage of their owners.
	Owners bool
	// NoSaving keeps no free room for blocks that can only start once enough tasks have ended.
	NoSaving bool
}

// Price is what the use of one quantum of a dimension for one second costs.
type Price struct {
	Dimension string
	Amount    int64
}

// DefaultMemory returns the settings that count if none are given.
func DefaultMemory() Memory { return Memory{Gain: 3 * one, Power: 2} }

// IsDefault reports whether the settings are the default ones.
func (m *Memory) IsDefault() bool {
	d := DefaultMemory()
	return m.Gain == d.Gain && m.Power == d.Power && m.Prices == nil && !m.Owners && !m.NoSaving
}

// Bounded reports whether the factor of a queue without usage is at most MaxFactor.
func (m *Memory) Bounded() bool {
	if m.Gain > MaxFactor*one {
		return false
	}
	factor, most := wideOf(1), wideOf(MaxFactor)
	for range m.Power {
		factor, most = factor.times(one+m.Gain), most.times(one)
	}
	return factor.compare(most) <= 0
}

// memory is what past usage means in a session.
type memory struct {
	*model.Memory
	// columns are by dimension, nil until they are needed.
	columns []*weighed
	// prices are by dimension; nil if each dimension is charged by itself.
	prices []int64
	// queues are by place what the snapshot says of queues, usage is of it what they used, and reserved what was kept idle for them. They
	// are read for each dimension.
	queues          []*model.QueueMemory
	usage, reserved []*model.Usage
}

// weighed are the weights with memory in one dimension, by place. They depend on configuration and usage, never on demand or on what is
// held, so they stay the same for a session.
type weighed struct {
	// weight is 0 for a queue without a weight, else at least 1, in units of 1/65536; that of the root is its own.
	weight []int64
	// factor and soft are those of usage and of a soft budget; 0 for the root and for queues without a weight.
	factor, soft []int64
	// nominal is the part of what the cluster offered, of places up to the last with children.
	nominal []wide
}

// openMemory reads the memory of the snapshot, if it has one.
func (s *State) openMemory() {
	if s.v.Memory == nil {
		return
	}
	n := s.tree.len()
	s.memory = &memory{
		Memory: s.v.Memory, columns: make([]*weighed, s.width), queues: make([]*model.QueueMemory, n), usage: make([]*model.Usage, n),
		reserved: make([]*model.Usage, n),
	}
	for p := range s.memory.queues {
		if of := s.memoryOf(place(p)); of != nil {
			s.memory.queues[p], s.memory.usage[p], s.memory.reserved[p] = of, of.Usage, of.Reserved
		}
	}
	if s.plugin.Memory.Prices == nil {
		return
	}
	s.memory.prices = make([]int64, s.width)
	for _, p := range s.plugin.Memory.Prices {
		if d, ok := s.v.Dims.Index(p.Dimension); ok {
			s.memory.prices[d] = p.Amount
		}
	}
}

// HasMemory reports whether past usage counts.
func (s *State) HasMemory() bool { return s.memory != nil }

// charge returns what usage counts in dimension d: its own amount or, with prices, the price of all together.
func (m *memory) charge(u *model.Usage, d int) wide {
	if m.prices == nil {
		return wideOf(u.At(d))
	}
	sum := wide{}
	for has := u.Has; has != 0; has = has.Rest() {
		sum = sum.plus(wideOf(u.At(has.First())).times(m.prices[has.First()]))
	}
	return sum
}

// memoryOf returns what the queue of a place used and may use; nil if nothing is said of it.
func (s *State) memoryOf(p place) *model.QueueMemory {
	if q := s.tree.queue[p]; q != model.None {
		return s.v.Queues[q].Memory
	}
	return nil
}

// charged returns what a place is charged in dimension d: what it used, and what was kept idle for its gangs; false if its usage is not
// known. The session has a memory.
func (s *State) charged(p place, d int) (wide, bool) {
	m := s.memory
	if m.usage[p] == nil {
		return wide{}, false
	}
	sum := m.charge(m.usage[p], d)
	if m.reserved[p] != nil {
		sum = sum.plus(m.charge(m.reserved[p], d))
	}
	return sum, true
}

// weighed returns the weights with memory of dimension d.
func (s *State) weighed(d int) *weighed {
	if w := s.memory.columns[d]; w != nil {
		return w
	}
	n := s.tree.len()
	inner := n
	for inner > 1 && s.tree.isLeaf(place(inner-1)) {
		inner--
	}
	cells := make([]int64, 3*n)
	w := &weighed{weight: cells[:n:n], factor: cells[n : 2*n : 2*n], soft: cells[2*n:], nominal: make([]wide, inner)}
	s.memory.columns[d] = w
	if q := s.tree.queue[0]; q != model.None {
		w.weight[0] = int64(s.v.Queues[q].Weight)
	}
	w.nominal[0] = s.memory.charge(&s.memory.Offered, d)
	for p := place(0); int(p) < n; p++ {
		s.v.Yield(int(p))
		if !s.tree.isLeaf(p) {
			s.weigh(w, p, d)
		}
	}
	return w
}

// siblings are the sums over the children of a place that the usage of each is compared with.
type siblings struct {
	// usage and weight are those of the children with a weight whose usage is known, all is the weight of all.
	usage       wide
	weight, all int64
	// reference is the usage that they are compared with: at least their nominal part, so that a quiet week does not decide.
	reference wide
}

func (s *State) sumSiblings(w *weighed, p place, d int) siblings {
	sum := siblings{}
	for k := s.tree.first[p]; k < s.tree.end[p]; k++ {
		weight := s.weights()[k]
		sum.all += weight
		if used, known := s.charged(k, d); known && weight > 0 {
			sum.usage, sum.weight = sum.usage.plus(used), sum.weight+weight
		}
	}
	if sum.weight > 0 {
		sum.reference = w.nominal[p].times(sum.weight).over(sum.all)
		if sum.usage.compare(sum.reference) > 0 {
			sum.reference = sum.usage
		}
	}
	return sum
}

// weigh weighs the children of a place.
func (s *State) weigh(w *weighed, p place, d int) {
	sum := s.sumSiblings(w, p, d)
	for k := s.tree.first[p]; k < s.tree.end[p]; k++ {
		weight := s.weights()[k]
		if weight == 0 {
			continue
		}
		if !s.tree.isLeaf(k) {
			w.nominal[k] = w.nominal[p].times(weight).over(sum.all)
		}
		used, of := sum.usage, sum.weight
		if own, known := s.charged(k, d); known {
			used, of = own, weight
		}
		w.factor[k], w.soft[k] = s.plugin.Memory.factor(&sum, used, of), s.softFactor(k, d)
		high, low := bits.Mul64(uint64(weight*w.factor[k]), uint64(w.soft[k]))
		w.weight[k] = max(1, int64(high<<48|low>>16))
	}
}

// factor returns the factor of a child that used so much at a weight.
func (m *Memory) factor(sum *siblings, used wide, weight int64) int64 {
	if sum.reference.isZero() {
		return one
	}
	part := sum.reference.times(one * weight)
	first := max(1, part.times(one+m.Gain).quotient(part.plus(used.times(sum.weight).times(m.Gain))))
	f := first
	for range m.Power - 1 {
		f = max(1, f*first/one)
	}
	return f
}

// softFactor returns the factor of a soft budget: full weight until a quarter of it is left, then in proportion to almost nothing.
func (s *State) softFactor(p place, d int) int64 {
	b := s.budgetOf(p, model.SoftBudget, d)
	if b == nil {
		return one
	}
	amount := b.Amount.At(d)
	if amount == 0 {
		return 1
	}
	high, low := bits.Mul64(4*one, uint64(left(b, d)))
	q, _ := bits.Div64(high, low, uint64(amount))
	return max(1, min(one, int64(q)))
}

// budgetOf returns the budget of a place if it is of a kind and bounds dimension d, else nil. The session has a memory.
func (s *State) budgetOf(p place, kind model.BudgetKind, d int) *model.Budget {
	if of := s.memory.queues[p]; of != nil && of.Budget != nil && of.Budget.Kind == kind && of.Budget.Amount.Has.Has(d) {
		return of.Budget
	}
	return nil
}

// left returns what is left of a budget.
func left(b *model.Budget, d int) int64 { return max(0, b.Amount.At(d)-b.Spent.At(d)) }

// applyBudgets lowers capabilities to what hard budgets pay for during one epoch.
func (s *State) applyBudgets(list []limit) {
	for p := range list {
		of := s.memoryOf(place(p))
		if of == nil || of.Budget == nil || of.Budget.Kind != model.HardBudget {
			continue
		}
		l := &list[p]
		for m := of.Budget.Amount.Has; m != 0; m = m.Rest() {
			d := m.First()
			most := left(of.Budget, d) / s.memory.EpochSeconds
			if most > maxSum/s.quantum[d] {
				continue
			}
			l.capability[d], l.limited = min(l.capability[d], most*s.quantum[d]), l.limited.With(d)
		}
	}
}

// swings reports whether, at this half-life, the parts of saturated queues swing around their weights: λ (1+k) < (1-λ) p k, where λ is what
// usage is multiplied by at each epoch, k the gain and p the power. λ is ⌊2^62 2^(-1/h)⌋ / 2^62, so 2 x^h > 2^62h for the least integer x
// that is not below the bound on it.
func (m *Memory) swings(halfLife int32) bool {
	more := int64(m.Power) * m.Gain
	if more == 0 {
		return false
	}
	sum := big.NewInt(one + m.Gain + more)
	x := new(big.Int).Lsh(big.NewInt(more), 62)
	x.Add(x, sum).Sub(x, big.NewInt(1)).Quo(x, sum)
	x.Exp(x, big.NewInt(int64(halfLife)), nil)
	return x.Lsh(x, 1).Cmp(new(big.Int).Lsh(big.NewInt(1), uint(62*halfLife))) > 0
}

// Weighing is how the weights with memory of the children of one queue follow from usage, in one dimension.
type Weighing struct {
	// Queue is model.None for a root that is no queue.
	Queue     model.QueueID
	Dimension int
	// Reference, Usage and Nominal are amounts of usage as they are charged.
	Reference, Usage, Nominal *big.Int
	// Weight is that of the children whose usage is known, All that of all.
	Weight, All int64
	// Children in order of rank.
	Children []Weighed
}

// Weighed is the weight with memory of one queue.
type Weighed struct {
	Queue  model.QueueID
	Weight int64
	// Usage is nil if it is not known.
	Usage *big.Int
	// Factor and Soft, in units of 1/65536, are 0 for a queue without a weight.
	Factor, Soft int64
	Effective    int64
}

// Weighing returns how the weights with memory of the children of a queue of Inner follow from usage. The session has a memory.
func (s *State) Weighing(q model.QueueID, d int) Weighing {
	p := place(0)
	if q != model.None {
		p = s.tree.at[q]
	}
	w := s.weighed(d)
	sum := s.sumSiblings(w, p, d)
	out := Weighing{
		Queue: q, Dimension: d, Reference: sum.reference.Integer(), Usage: sum.usage.Integer(), Nominal: w.nominal[p].Integer(),
		Weight: sum.weight, All: sum.all,
	}
	for k := s.tree.first[p]; k < s.tree.end[p]; k++ {
		child := Weighed{
			Queue: s.tree.queue[k], Weight: s.weights()[k], Factor: w.factor[k], Soft: w.soft[k], Effective: w.weight[k],
		}
		if used, known := s.charged(k, d); known {
			child.Usage = used.Integer()
		}
		out.Children = append(out.Children, child)
	}
	return out
}
