package check

import (
	"fmt"
	"math/big"
	"slices"

	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// one is the unit of gains and factors.
const one = 1 << 16

// charged is what usage counts in a dimension.
func (c *cluster) charged(u *apportionv1.Usage, d int) *big.Int {
	prices := c.settings.GetMemory().GetPrices()
	sum := new(big.Int)
	for i, at := range u.GetDimensions() {
		price := int64(0)
		switch {
		case prices != nil:
			for _, p := range prices.GetPrices() {
				if p.GetDimension() == c.dims[at] {
					price = int64(p.GetAmount())
				}
			}
		case int(at) == d:
			price = 1
		}
		sum.Add(sum, product(big.NewInt(price), big.NewInt(u.GetQuantumSeconds()[i])))
	}
	return sum
}

// cost is what a queue is charged in a dimension: what it used, and what was kept idle for its gangs; nil if its usage is not known.
func (c *cluster) cost(q, d int) *big.Int {
	queue := c.GetQueues()[q]
	if queue.GetUsage() == nil {
		return nil
	}
	sum := c.charged(queue.GetUsage(), d)
	return sum.Add(sum, c.charged(queue.GetReserved(), d))
}

// quanta is the amount of a dimension that a usage states; ok is false if it states none.
func quanta(u *apportionv1.Usage, d int) (amount int64, ok bool) {
	i := slices.Index(u.GetDimensions(), uint32(d))
	if i < 0 {
		return 0, false
	}
	return u.GetQuantumSeconds()[i], true
}

// left is the part of a budget that is not spent.
func left(b *apportionv1.Budget, d int) (amount, rest int64, ok bool) {
	amount, ok = quanta(b.GetAmount(), d)
	spent, _ := quanta(b.GetSpent(), d)
	return amount, max(0, amount-spent), ok
}

// budgets lowers the capability of a queue to what its hard budget pays for during one epoch.
func (c *cluster) budgets(q int) {
	if c.GetMemory() == nil || c.settings == nil || q == root {
		return
	}
	budget := c.GetQueues()[q].GetBudget()
	for d := range c.dims {
		if _, rest, ok := left(budget, d); ok && budget.GetKind() == apportionv1.BudgetKind_BUDGET_KIND_HARD {
			most := new(big.Int).Mul(big.NewInt(rest/c.GetMemory().GetEpochSeconds()), big.NewInt(c.unit[d]))
			if most.Cmp(big.NewInt(largest)) <= 0 {
				c.capability[q][d] = min(c.capability[q][d], most.Int64())
			}
		}
	}
}

func floorOf(numerator, denominator *big.Int) *big.Int {
	return new(big.Int).Quo(numerator, denominator)
}

func product(factors ...*big.Int) *big.Int {
	p := big.NewInt(1)
	for _, f := range factors {
		p.Mul(p, f)
	}
	return p
}

// weights checks what the certificate takes as given when it forms the weights with memory: what was offered, and what each queue weighs,
// used, and may still spend. That sums, references and weights follow from it, package certificate checks.
func (c *check) weights() {
	c.effective = make([]map[int]int64, len(c.dims))
	for d := range c.dims {
		c.effective[d] = map[int]int64{c.top: c.weight(c.top)}
	}
	at, got := 0, c.fair.GetWeights()
	for _, q := range c.order {
		if q != c.top && len(c.kids[q]) == 0 {
			continue
		}
		for d := range c.dims {
			path := fmt.Sprintf("weights[%d]", at)
			if at++; at > len(got) {
				c.wrong("%s is missing", path)
				return
			}
			c.compare(path, got[at-1], c.weighed(q, d, got[at-1]), nil)
		}
	}
	expect(c.findings, "weights: number", len(got), at)
}

// weighed is how the children of a queue are weighed, with the numbers that follow from the snapshot, and the certificate's own elsewhere.
func (c *check) weighed(q, d int, got *apportionv1.MemoryDivision) *apportionv1.MemoryDivision {
	want := proto.CloneOf(got)
	want.Queue, want.Dimension, want.Children = indexOf(q), uint32(d), nil
	reference, usage, nominal := number(got.GetReference()), number(got.GetUsage()), number(got.GetNominal())
	known := new(big.Int).SetUint64(got.GetWeight())
	if q == c.top {
		nominal = c.charged(c.GetMemory().GetOffered(), d)
	}
	want.Reference, want.Usage, want.Nominal = reference.String(), usage.String(), nominal.String()
	for i, k := range c.kids[q] {
		own, weight := c.cost(k, d), big.NewInt(c.weight(k))
		child := &apportionv1.MemoryChild{Queue: new(uint32(k)), Weight: uint64(c.weight(k)), IsNew: own == nil}
		used, of := usage, known
		if own != nil {
			used, of = own, weight
			child.Usage = used.String()
		}
		if weight.Sign() > 0 {
			child.Factor, child.BudgetFactor = uint32(c.factor(reference, used, of, known)), uint32(c.softened(k, d))
		}
		if i < len(got.GetChildren()) {
			child.EffectiveWeight = got.GetChildren()[i].GetEffectiveWeight()
		}
		c.effective[d][k] = int64(child.GetEffectiveWeight())
		want.Children = append(want.Children, child)
	}
	return want
}

// number is a number of the certificate; 0 for what is none, which the certificate is refused for.
func number(written string) *big.Int {
	if n, ok := new(big.Int).SetString(written, 10); ok {
		return n
	}
	return new(big.Int)
}

// factor is the factor of a child with some usage and weight, where the children whose usage is known have the weight `known`.
func (c *check) factor(reference, used, weight, known *big.Int) int64 {
	gain, power := int64(3*one), uint32(2)
	if m := c.settings.GetMemory(); m != nil {
		if m.Gain != nil {
			gain = int64(m.GetGain())
		}
		if m.Power != nil {
			power = m.GetPower()
		}
	}
	if reference.Sign() == 0 || known.Sign() == 0 {
		return one
	}
	part := product(big.NewInt(one), weight, reference)
	first := floorOf(product(big.NewInt(one+gain), part), new(big.Int).Add(part, product(big.NewInt(gain), used, known)))
	f := max(1, first.Int64())
	each := f
	for range power - 1 {
		f = max(1, f*each/one)
	}
	return f
}

// softened is the factor of a soft budget.
func (c *check) softened(q, d int) int64 {
	budget := c.GetQueues()[q].GetBudget()
	amount, rest, ok := left(budget, d)
	switch {
	case !ok || budget.GetKind() != apportionv1.BudgetKind_BUDGET_KIND_SOFT:
		return one
	case amount == 0:
		return 1
	}
	return max(1, min(one, floorOf(product(big.NewInt(4*one), big.NewInt(rest)), big.NewInt(amount)).Int64()))
}
