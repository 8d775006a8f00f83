package checker

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// one is the unit of gains and factors, and withMemory the line that follows from past usage: that of the entitlement without a memory.
const (
	one        = 1 << 16
	withMemory = 3
)

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
		sum.Add(sum, new(big.Int).Mul(big.NewInt(price), big.NewInt(u.GetQuantumSeconds()[i])))
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
	expect(c, "weights: number", len(got), at)
}

// weigh weighs the children of a queue.
func (c *check) weigh(q, d int, nominal map[int]*big.Int) *apportionv1.MemoryDivision {
	usage, reference := new(big.Int), new(big.Int)
	out := &apportionv1.MemoryDivision{Dimension: uint32(d), Nominal: nominal[q].String()}
	if q != root {
		out.Queue = new(uint32(q))
	}
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

// taking is the line up to which a queue may take from others.
func (c *check) taking(q, d int) int64 { return min(c.lines[q][d][2], c.lines[q][d][withMemory]) }

// keeps is the amount of a queue from which nothing is taken under a line; a candidate of so much more must be beyond it. With a memory,
// the queue must exceed the lines even without the candidate.
func (s *search) keeps(q, d int, amount int64) (limit, more int64) {
	limit = s.lines[q][d][s.line] * s.unit[d]
	if s.GetMemory() == nil || s.line == 0 {
		return limit, 0
	}
	return max(limit, s.lines[q][d][withMemory]*s.unit[d]), amount
}

// eased is the least weight with memory over the queue's own, in the dimensions that there is something of.
func (c *check) eased(q int) *big.Rat {
	least, found := int64(0), false
	for d := range c.dims {
		if w := c.effective[d][q]; c.all[d]/c.unit[d] > 0 && (!found || w < least) {
			least, found = w, true
		}
	}
	switch {
	case !found:
		return big.NewRat(1, 1)
	case c.weight(q) == 0:
		return new(big.Rat)
	}
	return big.NewRat(least, c.weight(q))
}

// loadByWeight is the greatest part of a queue over its weight; with a memory, over the weight with memory of the dimension.
func (c *check) loadByWeight(q int) *big.Rat {
	if c.GetMemory() == nil {
		return new(big.Rat).Mul(c.load(q), big.NewRat(1, max(c.weight(q), 1)))
	}
	most := new(big.Rat)
	for d := range c.dims {
		if x := new(big.Rat).Mul(c.part(q, d), big.NewRat(1, max(c.effective[d][q], 1))); x.Cmp(most) > 0 {
			most = x
		}
	}
	return most
}

// savable reports whether room may be saved for a block: it is next by memory and within the limits, it is not entitled by weight, the
// cluster has too little left, and it fits if nothing runs.
func (c *check) savable(q int, block []*task, claimed []int64, rooms map[int][]int64) bool {
	r := sum(block, len(c.dims))
	if c.GetMemory() == nil || c.settings.GetMemory().GetNoSaving() || !c.entitled(q, withMemory, r, claimed) ||
		c.entitled(q, 2, r, claimed) || c.aboveLimit(q, r, claimed) || within(r, rooms[root]) {
		return false
	}
	empty := map[int][]int64{root: slices.Clone(c.all)}
	for i, n := range c.GetNodes() {
		empty[i] = c.nodeRow(n)
	}
	return within(r, c.all) && c.place(empty, block)
}

// owned sorts the jobs of one queue, which are in order of priority and age, by the usage of their owners.
func (c *check) owned(q int, jobs []*job) []*job {
	usage, weight, held := map[string][]*big.Int{}, map[string]int64{}, map[string][]int64{}
	c.owners(q, jobs, usage, weight)
	for _, j := range jobs {
		owner := j.message.GetOwner()
		if held[owner] == nil {
			held[owner] = make([]int64, len(c.dims))
		}
		add(held[owner], j.heldRow, 1)
	}
	level := func(owner string) *big.Rat {
		sum := new(big.Int)
		prices := c.settings.GetMemory().GetPrices()
		for d := range c.dims {
			v := new(big.Int).Add(usage[owner][d],
				floorOf(product(big.NewInt(c.GetMemory().GetEpochSeconds()), big.NewInt(held[owner][d])), big.NewInt(c.unit[d])))
			x := c.all[d] / c.unit[d]
			switch {
			case prices != nil:
				for _, p := range prices.GetPrices() {
					if p.GetDimension() == c.dims[d] {
						sum.Add(sum, product(big.NewInt(int64(p.GetAmount())), v))
					}
				}
			case x > 0:
				sum.Add(sum, floorOf(product(v, big.NewInt(1<<20)), big.NewInt(x)))
			}
		}
		return new(big.Rat).SetFrac(sum, big.NewInt(weight[owner]))
	}
	var sorted []*job
	for left := slices.Clone(jobs); len(left) > 0; {
		best := 0
		for i, j := range left {
			equal := j.message.GetPriority() == left[0].message.GetPriority()
			if equal && level(j.message.GetOwner()).Cmp(level(left[best].message.GetOwner())) < 0 {
				best = i
			}
		}
		add(held[left[best].message.GetOwner()], left[best].asks, 1)
		sorted = append(sorted, left[best])
		left = slices.Delete(left, best, best+1)
	}
	return sorted
}

// owners fills in the usage and the weight of each owner of jobs: the average of those that are listed for one that is not.
func (c *check) owners(q int, jobs []*job, usage map[string][]*big.Int, weight map[string]int64) {
	all, weights := make([]*big.Int, len(c.dims)), int64(0)
	for d := range all {
		all[d] = new(big.Int)
	}
	for _, o := range c.GetQueues()[q].GetOwners() {
		weight[o.GetOwner()] = 1
		if o.Weight != nil {
			weight[o.GetOwner()] = max(1, int64(o.GetWeight()))
		}
		weights += weight[o.GetOwner()]
		for d := range all {
			x, _ := quanta(o.GetUsage(), d)
			usage[o.GetOwner()] = append(usage[o.GetOwner()], big.NewInt(x))
			all[d].Add(all[d], big.NewInt(x))
		}
	}
	for d := range all {
		all[d] = floorOf(all[d], big.NewInt(cmp.Or(weights, 1)))
	}
	for _, j := range jobs {
		if owner := j.message.GetOwner(); weight[owner] == 0 {
			weight[owner], usage[owner] = 1, all
		}
	}
}

// byOwners sorts jobs, which are in order of priority and age, leaf by leaf by the usage of their owners.
func (c *check) byOwners(jobs []*job) []*job {
	leaves := map[int][]*job{}
	for _, j := range jobs {
		leaves[j.leaf] = append(leaves[j.leaf], j)
	}
	var sorted []*job
	for _, q := range c.order {
		if len(leaves[q]) > 0 {
			sorted = append(sorted, c.owned(q, leaves[q])...)
		}
	}
	return sorted
}
