package checker

import (
	"fmt"
	"math/big"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// plan checks the line, the fall and the rise of a reclaim plan, and that the claimant is within the line and each victim's queue above it.
func (c *check) plan(path string, step *apportionv1.ReclaimStep, answer *apportionv1.VictimsAnswer) {
	plan := answer.GetPlan()
	if !plan.GetMade() {
		return
	}
	line := int(plan.GetLine()) - 1
	if line < 0 || line > 2 {
		c.wrong("%s.plan.line is %v", path, plan.GetLine())
		return
	}
	width := len(c.dims)
	claim := c.named(step.GetClaimant())
	q, request := claim[0].leaf, sum(claim, width)
	after := map[int][]int64{}
	for _, p := range c.order {
		after[p] = slices.Clone(c.held[p])
	}
	victims := make([]*task, 0, len(answer.GetVictims()))
	for _, v := range answer.GetVictims() {
		t := c.tasks[v.GetTask()]
		victims = append(victims, t)
		for _, a := range c.path(t.leaf) {
			add(after[a], t.request, -1)
		}
	}
	with := slices.Clone(c.held[q])
	add(with, request, 1)
	var fall, rise [3]*big.Rat
	for i := range fall {
		fall[i], rise[i] = new(big.Rat).Sub(c.lack(q, c.held[q], i), c.lack(q, with, i)), new(big.Rat)
		for _, p := range c.order {
			if len(c.kids[p]) == 0 {
				rise[i].Add(rise[i], new(big.Rat).Sub(c.lack(p, after[p], i), c.lack(p, c.held[p], i)))
			}
		}
	}
	c.fractions(path+".plan.fall", plan.GetFall(), fall)
	c.fractions(path+".plan.rise", plan.GetRise(), rise)
	less := slices.CompareFunc(rise[:], fall[:], (*big.Rat).Cmp) < 0
	expect(c, path+".plan: rise is less than fall", less || len(victims) == 0, true)
	expect(c, path+".plan.line holds the claimant", c.entitled(q, line, request, make([]int64, width)), true)
	for i, v := range victims {
		expect(c, fmt.Sprintf("%s.victims[%d] is above the line", path, i), c.above(v, q, line, request), true)
	}
}

// above reports whether a victim's queue, and all above it that are not the claimant's, hold more than a line of something that both use.
func (c *check) above(v *task, q, line int, request []int64) bool {
	mine := c.path(q)
	for d, x := range request {
		over := x > 0 && v.request[d] > 0
		for _, a := range c.path(v.leaf) {
			over = over && (slices.Contains(mine, a) || c.held[a][d] > c.lines[a][d][line]*c.unit[d])
		}
		if over {
			return true
		}
	}
	return false
}

// lack returns the amount by which held is below a line of a queue, as a share of the cluster summed over the dimensions.
func (c *check) lack(q int, held []int64, line int) *big.Rat {
	all := new(big.Rat)
	for d, x := range held {
		if total := c.all[d] / c.unit[d] * c.unit[d]; total > 0 {
			all.Add(all, big.NewRat(max(0, c.lines[q][d][line]*c.unit[d]-x), total))
		}
	}
	return all
}

func (c *check) fractions(path string, got []*apportionv1.Fraction, want [3]*big.Rat) {
	expect(c, path+": number", len(got), len(want))
	for i := range min(len(got), len(want)) {
		expect(c, fmt.Sprintf("%s[%d]", path, i), fractionText(got[i]), want[i].String())
	}
}

// named returns the tasks of a selection by number or uid.
func (c *check) named(tasks *apportionv1.Tasks) []*task {
	var list []*task
	for _, i := range tasks.GetIndex() {
		list = append(list, c.tasks[i])
	}
	for _, uid := range tasks.GetUid() {
		list = append(list, c.tasks[slices.IndexFunc(c.tasks, func(t *task) bool { return t.uid == uid })])
	}
	return list
}
