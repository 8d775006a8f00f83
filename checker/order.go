package checker

import (
	"cmp"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// inOrder sorts queues as fair serves them. Those that serve no jobs come last, by their create time and name.
func (c *check) inOrder(queues []int) []int {
	list := slices.Clone(queues)
	slices.SortFunc(list, func(l, r int) int {
		at, other := slices.Index(c.serving, l), slices.Index(c.serving, r)
		if at >= 0 && other >= 0 {
			return cmp.Compare(at, other)
		}
		return cmp.Or(falseFirst(at < 0, other < 0), cmp.Compare(c.GetQueues()[l].GetCreateTime(), c.GetQueues()[r].GetCreateTime()),
			cmp.Compare(c.GetQueues()[l].GetName(), c.GetQueues()[r].GetName()))
	})
	return list
}

// orders checks an order of queues that fair alone decides; false if it is another order. No two queues that serve jobs are tied.
func (c *check) orders(path string, step *apportionv1.OrderStep, got *apportionv1.OrderAnswer) bool {
	subject, isQueues := step.GetSubject().(*apportionv1.OrderStep_Queues)
	if !isQueues || step.GetClaimant() != nil || !c.alone("proportion", "capacity", "hierarchical_drf") {
		return false
	}
	queues, ok := c.chosen(subject.Queues)
	if len(queues) == 0 {
		queues = c.busy()
	}
	if !ok {
		c.wrong("%s answers a question about queues that the snapshot does not have", path)
		return true
	}
	want := &apportionv1.OrderAnswer{}
	sorted := c.inOrder(queues)
	aside := func(q int) bool { return c.left[q] == nil }
	for i, q := range sorted {
		want.Sorted = append(want.Sorted, uint32(q))
		if i == 0 || !aside(q) || !aside(sorted[i-1]) {
			want.Ties = append(want.Ties, 0)
		}
		want.Ties[len(want.Ties)-1]++
	}
	for i, l := range queues {
		for _, r := range queues[i+1:] {
			if !step.GetPairs() {
				break
			}
			less := slices.Index(sorted, l) < slices.Index(sorted, r)
			pair := &apportionv1.Pair{Left: uint32(l), Right: uint32(r), Less: less}
			switch {
			case aside(l) && aside(r):
			case less:
				pair.Compare = -1
			default:
				pair.Compare = 1
			}
			want.Pairs = append(want.Pairs, pair)
		}
	}
	c.compare(path, got, want, nil)
	return true
}
