package ledger

import (
	"maps"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Fill states in a snapshot what the ledger knows at a time, in Unix seconds: the memory of the snapshot, the usage of its queues and of
// the owners in them, and the budgets. It is the same for the whole epoch. Owners keep the weights that the snapshot gives them.
func (l *Ledger) Fill(s *apportionv1.Snapshot, at int64, budgets []Budget) {
	queues := queuesOf(s)
	row := l.Row(at, queues, budgets)
	index := indexOf(s)
	usage := func(v []int64) *apportionv1.Usage { return l.usage(v, index) }
	s.Memory = &apportionv1.Memory{
		EpochSeconds: l.seconds, HalfLifeEpochs: uint32(l.options.HalfLife), Epoch: row.Epoch, Offered: usage(row.Offered),
	}
	hard := map[string]bool{}
	for i := range budgets {
		hard[budgets[i].Queue] = budgets[i].Hard
	}
	inner := map[string]bool{}
	for i := range queues {
		inner[queues[i].Parent] = true
	}
	for _, q := range s.GetQueues() {
		q.Usage = nil
		if stated := row.Queues[q.GetName()]; stated != nil {
			q.Usage = usage(stated)
		}
		if !inner[q.GetName()] {
			q.Owners = owners(row.Owners[q.GetName()], q.GetOwners(), usage)
		}
		if a := row.Budgets[q.GetName()]; a != nil {
			q.Budget = a.message(hard[q.GetName()], index)
		}
	}
}

// FillEntitled states in a snapshot what queues were entitled to, and what room was kept idle for their gangs. It is for a ledger in
// which both are entered as if they were used, the latter under the dimensions that Reserved names, with the options of the ledger of
// what queues used: `fair` compares them.
func (l *Ledger) FillEntitled(s *apportionv1.Snapshot, at int64) {
	row, index := l.Row(at, queuesOf(s), nil), indexOf(s)
	reserved := make(map[string]uint32, len(index))
	for name, d := range index {
		reserved[Reserved(name)] = d
	}
	for _, q := range s.GetQueues() {
		q.Entitled, q.Reserved = nil, nil
		if stated := row.Queues[q.GetName()]; stated != nil {
			q.Entitled = l.usage(stated, index)
			if kept := l.usage(stated, reserved); len(kept.GetDimensions()) > 0 {
				q.Reserved = kept
			}
		}
	}
}

// UsageIn returns the usage that a snapshot states, in quantum-seconds by queue and name of dimension. Queues whose usage is not known are
// not in it.
func UsageIn(s *apportionv1.Snapshot) map[string]map[string]int64 {
	used := map[string]map[string]int64{}
	for _, q := range s.GetQueues() {
		if q.GetUsage() == nil {
			continue
		}
		of := map[string]int64{}
		for i, d := range q.GetUsage().GetDimensions() {
			of[s.GetDimensions()[d]] = q.GetUsage().GetQuantumSeconds()[i]
		}
		used[q.GetName()] = of
	}
	return used
}

// queuesOf returns the queues of a snapshot as rows read them.
func queuesOf(s *apportionv1.Snapshot) []Queue {
	queues := make([]Queue, len(s.GetQueues()))
	for i, q := range s.GetQueues() {
		queues[i] = Queue{Name: q.GetName(), Parent: parentOf(q), Weight: 1, Created: floorDiv(q.GetCreateTime(), nanos)}
		if q.Weight != nil {
			queues[i].Weight = q.GetWeight()
		}
	}
	return queues
}

func indexOf(s *apportionv1.Snapshot) map[string]uint32 {
	index := map[string]uint32{}
	for d, name := range s.GetDimensions() {
		index[name] = uint32(d)
	}
	return index
}

// usage returns a vector of the ledger as a message, by the dimensions of a snapshot.
func (l *Ledger) usage(v []int64, index map[string]uint32) *apportionv1.Usage {
	out := &apportionv1.Usage{}
	for d, n := range v {
		if to, is := index[l.dimensions[d]]; is && n > 0 {
			put(out, to, n)
		}
	}
	return out
}

// owners states the usage of owners in order of their names, with the weights that were given.
func owners(row map[string][]int64, given []*apportionv1.OwnerUsage, usage func([]int64) *apportionv1.Usage) []*apportionv1.OwnerUsage {
	by := map[string]*apportionv1.OwnerUsage{}
	for _, o := range given {
		by[o.GetOwner()] = &apportionv1.OwnerUsage{Owner: o.GetOwner(), Weight: o.Weight}
	}
	for name, used := range row {
		if by[name] == nil {
			by[name] = &apportionv1.OwnerUsage{Owner: name}
		}
		by[name].Usage = usage(used)
	}
	var out []*apportionv1.OwnerUsage
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[name])
	}
	return out
}

func (a *Allowance) message(hard bool, index map[string]uint32) *apportionv1.Budget {
	out := &apportionv1.Budget{Kind: apportionv1.BudgetKind_BUDGET_KIND_SOFT, Amount: &apportionv1.Usage{}, Spent: &apportionv1.Usage{}}
	if hard {
		out.Kind = apportionv1.BudgetKind_BUDGET_KIND_HARD
	}
	for _, name := range slices.Sorted(maps.Keys(a.Granted)) {
		d, is := index[name]
		if !is {
			continue
		}
		put(out.GetAmount(), d, a.Granted[name])
		if n := a.Spent[name]; n > 0 {
			put(out.GetSpent(), d, n)
		}
	}
	return out
}

func put(to *apportionv1.Usage, dimension uint32, amount int64) {
	to.Dimensions, to.QuantumSeconds = append(to.Dimensions, dimension), append(to.QuantumSeconds, amount)
}
