package check

import (
	"fmt"
	"math/big"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// one is the unit of gains and factors.
const one = 1 << 16

// charged is what usage counts in a dimension.
func (c *cluster) charged(u *apportionv1.Usage, d int) *big.Int {
	prices := c.settings.GetMemory().GetPrices()
	sum := new(big.Int)
	for i, at := range u.GetDimension() {
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
	i := slices.Index(u.GetDimension(), uint32(d))
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

// weights forms the weights with memory from the usage that the snapshot states, and checks how the certificate says that they follow.
func (c *check) weights() {
	c.effective = make([]map[int]int64, len(c.dims))
	nominal := make([]map[int]*big.Int, len(c.dims))
	for d := range c.dims {
		c.effective[d] = map[int]int64{c.top: c.weight(c.top)}
		nominal[d] = map[int]*big.Int{c.top: c.charged(c.GetMemory().GetOffered(), d)}
	}
	at, got := 0, c.fair.GetWeights()
	for _, q := range c.order {
		if q != c.top && len(c.kids[q]) == 0 {
			continue
		}
		for d := range c.dims {
			want := c.weigh(q, d, nominal[d])
			path := fmt.Sprintf("weights[%d]", at)
			if at++; at > len(got) {
				c.wrong("%s is missing", path)
				return
			}
			c.compare(path, got[at-1], want, nil)
		}
	}
	expect(c.findings, "weights: number", len(got), at)
}

// weigh weighs the children of a queue.
func (c *check) weigh(q, d int, nominal map[int]*big.Int) *apportionv1.MemoryDivision {
	usage, reference := new(big.Int), new(big.Int)
	out := &apportionv1.MemoryDivision{Queue: indexOf(q), Dimension: uint32(d), Nominal: nominal[q].String()}
	for _, k := range c.kids[q] {
		out.WeightAll += uint64(c.weight(k))
		if own := c.cost(k, d); own != nil && c.weight(k) > 0 {
			out.Weight += uint64(c.weight(k))
			usage.Add(usage, own)
		}
	}
	all, known := new(big.Int).SetUint64(out.WeightAll), new(big.Int).SetUint64(out.Weight)
	if out.Weight > 0 {
		if reference = floorOf(product(nominal[q], known), all); usage.Cmp(reference) > 0 {
			reference = usage
		}
	}
	out.Usage, out.Reference = usage.String(), reference.String()
	for _, k := range c.kids[q] {
		own, weight := c.cost(k, d), big.NewInt(c.weight(k))
		child := &apportionv1.MemoryChild{Queue: new(uint32(k)), Weight: uint64(c.weight(k)), IsNew: own == nil}
		c.effective[d][k], nominal[k] = 0, new(big.Int)
		used, of := usage, known
		if own != nil {
			used, of = own, weight
			child.Usage = used.String()
		}
		if weight.Sign() > 0 {
			nominal[k] = floorOf(product(nominal[q], weight), all)
			child.Factor = uint32(c.factor(reference, used, of, known))
			child.BudgetFactor = uint32(c.softened(k, d))
			product := product(weight, big.NewInt(int64(child.GetFactor())), big.NewInt(int64(child.GetBudgetFactor())))
			c.effective[d][k] = max(1, floorOf(product, big.NewInt(one)).Int64())
		}
		child.EffectiveWeight = uint64(c.effective[d][k])
		out.Children = append(out.Children, child)
	}
	return out
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
	if reference.Sign() == 0 {
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
