package kueue

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/policy/kueue"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Unit returns how many units of the contract one of Kueue's units of a resource is. Kueue counts thousandths of cores and whole units of
// all else, the contract thousandths of all but memory and pods.
func Unit(resource string) float64 {
	switch resource {
	case "cpu", "memory", "pods":
		return 1
	}
	return 1000
}

// Amount returns an amount of the contract in Kueue's units, rounded up; infinite is unlimited. exact is false for one that is too large to
// be exact, or that is no amount.
func Amount(resource string, amount float64) (in kueue.Amount, exact bool) {
	const wholes, thousandths = 1 << 53, 1000 << 51
	most, unit := float64(wholes), Unit(resource)
	if unit > 1 {
		most = thousandths
	}
	switch {
	case math.IsInf(amount, 1):
		return kueue.Unlimited, true
	case math.IsNaN(amount) || amount < 0 || amount > most:
		return 0, false
	case amount > wholes:
		// What is not a multiple of a thousand here was one before it was rounded.
		return kueue.Amount(math.Round(amount / unit)), true
	}
	return kueue.Amount(math.Ceil(amount / unit)), true
}

// Wire returns an amount in the contract's units; infinite for an unlimited one.
func Wire(resource string, amount kueue.Amount) float64 {
	if amount == kueue.Unlimited {
		return math.Inf(1)
	}
	return float64(amount) * Unit(resource)
}

// standard is how many units of the contract one of Kueue's standard units is: a whole core, or one of all else.
func standard(resource string) float64 {
	if resource == "cpu" {
		return 1000
	}
	return Unit(resource)
}

// Lists returns all lists of dimensions in the message of a queue, a local queue or a workload; none of nil.
func Lists(m proto.Message) (lists [][]uint32) {
	add := func(resources ...*apportionv1.Resource) {
		for _, r := range resources {
			if len(r.GetDimensions()) > 0 {
				lists = append(lists, r.GetDimensions())
			}
		}
	}
	switch m := m.(type) {
	case *apportionv1.KueueQueue:
		for _, q := range m.GetQuotas() {
			add(q.GetNominal(), q.GetBorrowingLimit(), q.GetLendingLimit())
		}
		for _, l := range m.GetLocalQueues() {
			add(l.GetConsumed(), l.GetPenalty())
		}
	case *apportionv1.KueueLocalQueue:
		add(m.GetConsumed(), m.GetPenalty())
	case *apportionv1.KueueWorkload:
		for _, p := range m.GetPodSets() {
			add(p.GetRequest())
			for _, u := range p.GetUses() {
				add(u.GetUsed())
				lists = append(lists, u.GetUnusedDimensions())
			}
		}
	}
	return lists
}

// Renumber gives all dimensions of such a message other numbers.
func Renumber(m proto.Message, number func(uint32) uint32) {
	for _, list := range Lists(m) {
		for i, d := range list {
			list[i] = number(d)
		}
	}
}

// each calls do with the position, the name and the amount of each resource of a Resource.
func (r *reader) each(m *apportionv1.Resource, path string, do func(i int, resource string, amount float64)) {
	if len(m.GetDimensions()) != len(m.GetAmounts()) {
		r.fault(path, "%d dimensions and %d amounts", len(m.GetDimensions()), len(m.GetAmounts()))
		return
	}
	var seen uint64
	for i, d := range m.GetDimensions() {
		name, ok := r.dimension(d, path, "dimensions", i)
		if ok && seen>>d&1 != 0 {
			r.fault(fmt.Sprintf("%s.dimensions[%d]", path, i), "%q is there twice", name)
		} else if ok {
			seen |= 1 << d
			do(i, name, m.GetAmounts()[i])
		}
	}
}

// dimension returns the name of the i-th dimension of a list, and whether there is one.
func (r *reader) dimension(d uint32, path, list string, i int) (string, bool) {
	if int64(d) >= int64(len(r.names)) {
		r.fault(fmt.Sprintf("%s.%s[%d]", path, list, i), "there is no such dimension")
		return "", false
	}
	return r.names[d], true
}

// eachAmount is each with amounts in Kueue's units.
func (r *reader) eachAmount(m *apportionv1.Resource, path string, do func(resource string, amount kueue.Amount)) {
	r.each(m, path, func(i int, resource string, amount float64) {
		in, exact := Amount(resource, amount)
		if !exact {
			r.fault(fmt.Sprintf("%s.amounts[%d]", path, i),
				"%v is not an amount from 0 to 2^53 of cpu, memory and pods, or to 2^51 whole units of another resource", amount)
		}
		do(resource, in)
	})
}

// UseOf returns the use of a flavor by a pod set, which is added if there is none.
func UseOf(p *apportionv1.KueuePodSet, flavor string) *apportionv1.FlavorUse {
	for _, u := range p.GetUses() {
		if u.GetNodeSet() == flavor {
			return u
		}
	}
	u := &apportionv1.FlavorUse{NodeSet: flavor, Used: &apportionv1.Resource{}}
	p.Uses = append(p.Uses, u)
	return u
}
