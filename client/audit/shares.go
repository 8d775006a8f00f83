package audit

import (
	"math"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

// shares judges what queues deserve.
func (a *auditor) shares(answer *apportionv1.SharesAnswer) {
	a.queues = map[string]*apportionv1.QueueShare{}
	for _, p := range answer.GetPlugins() {
		if len(p.GetQueues()) == 0 {
			continue
		}
		a.divider = p.GetPlugin()
		for _, q := range p.GetQueues() {
			if q.GetParticipating() {
				a.queues[a.names.Queue(q.GetQueue())] = q
			}
		}
		break
	}
	a.sums()
	a.weights()
}

// leaves lists the queues that deserve for themselves, in order of the snapshot.
func (a *auditor) leaves() []*apportionv1.Queue {
	inner := map[string]bool{}
	for _, q := range a.queues {
		for _, above := range q.GetAncestors() {
			inner[a.names.Queue(above)] = true
		}
	}
	var list []*apportionv1.Queue
	for _, q := range a.snapshot.GetQueues() {
		if share := a.queues[q.GetName()]; share != nil && !inner[q.GetName()] && len(share.GetChildren()) == 0 {
			list = append(list, q)
		}
	}
	return list
}

// sums compares what queues deserve together with what there is.
func (a *auditor) sums() {
	sum := make([]float64, len(a.names.Dimensions))
	list := make([][]string, len(sum))
	for _, q := range a.leaves() {
		for d, x := range a.row(a.queues[q.GetName()].GetDeserved()) {
			if x > 0 {
				sum[d] += x
				list[d] = append(list[d], q.GetName()+" "+a.short(d, x))
			}
		}
	}
	for d, x := range sum {
		if total := a.total[d]; x > total*(1+rounding) && total > 0 && !math.IsInf(x, 1) {
			a.add(Breach{Property: NoMoreThanThereIs, Dimension: a.names.Dimensions[d], Given: x, Due: total},
				"the queues deserve %s %s together, and there are %s: %s", a.short(d, x), a.names.Dimensions[d], a.short(d, total),
				few(list[d]))
		}
	}
}

// weights compares queues that differ in nothing but what they ask for and in weight.
func (a *auditor) weights() {
	leaves := a.leaves()
	for d, name := range a.names.Dimensions {
		worst, gap := [2]*apportionv1.Queue{}, 0.0
		for _, less := range leaves {
			for _, more := range leaves {
				if by := a.envies(less, more, d); by > gap {
					worst, gap = [2]*apportionv1.Queue{less, more}, by
				}
			}
		}
		if gap == 0 {
			continue
		}
		l, m := worst[0], worst[1]
		given, due := a.deserved(l.GetName(), d), a.deserved(m.GetName(), d)
		a.add(Breach{Property: WeightsDecide, Queue: l.GetName(), Dimension: name, Given: given, Due: due},
			"queue %s (weight %d) deserves %s %s and wants %s; queue %s (weight %d), otherwise alike, deserves %s",
			l.GetName(), weight(l), a.short(d, given), name, a.short(d, a.row(a.queues[l.GetName()].GetRequest())[d]),
			m.GetName(), weight(m), a.short(d, due))
	}
}

// envies returns by how much more than its due another queue has: at least a unit more than a queue that is alike, has no smaller weight,
// and wants more; 0 if it has not.
func (a *auditor) envies(less, more *apportionv1.Queue, d int) float64 {
	if less == more || weight(less) < weight(more) || less.GetParent() != more.GetParent() {
		return 0
	}
	if a.snapshot.GetMemory() != nil && less.GetBudget().GetKind() == apportionv1.BudgetKind_BUDGET_KIND_HARD {
		return 0 // It lowers the capability.
	}
	if !a.alike(less.GetGuarantee(), more.GetGuarantee(), d) || !a.alike(less.GetCapability(), more.GetCapability(), d) ||
		!a.alike(less.GetDeserved(), more.GetDeserved(), d) {
		return 0
	}
	l, m := a.deserved(less.GetName(), d), a.deserved(more.GetName(), d)
	wanted := a.row(a.queues[less.GetName()].GetRequest())[d]
	if m-l <= unit(a.names.Dimensions[d]) || l >= wanted*(1-rounding) {
		return 0
	}
	return m - l
}

func (a *auditor) alike(l, r *apportionv1.Resource, d int) bool {
	x, y := a.written(l, d), a.written(r, d)
	return x == y || math.IsNaN(x) && math.IsNaN(y)
}

// written is an amount of the snapshot in a dimension of the answers; NaN if none is written. The two may number dimensions differently.
func (a *auditor) written(r *apportionv1.Resource, d int) float64 {
	for i, index := range r.GetDimensions() {
		if i < len(r.GetAmounts()) && int(index) < len(a.snapshot.GetDimensions()) &&
			a.snapshot.GetDimensions()[index] == a.names.Dimensions[d] {
			return r.GetAmounts()[i]
		}
	}
	return math.NaN()
}

func (a *auditor) deserved(queue string, d int) float64 {
	return a.row(a.queues[queue].GetDeserved())[d]
}

// short writes an amount in a text that add or say completes.
func (a *auditor) short(d int, x float64) string { return text.Figure(a.names.Dimensions[d], x) }

func weight(q *apportionv1.Queue) uint32 {
	if q.Weight == nil {
		return 1
	}
	return q.GetWeight()
}

// rounding is the relative difference that two sums of floating-point numbers may have.
const rounding = 1e-9

// unit is the least amount of a dimension that is worth a dispute: what a quantum of fair is by default.
func unit(dimension string) float64 {
	switch dimension {
	case "cpu", pods:
		return 1
	case "memory":
		return 1 << 20
	}
	return 1000
}
