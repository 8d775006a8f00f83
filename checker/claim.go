package checker

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// blocks lists what the jobs of each leaf wait for: the rest of a gang, then single tasks.
func (c *check) blocks() map[int][][][]*task {
	jobs := slices.DeleteFunc(slices.Clone(c.jobs), func(j *job) bool { return j.leaf == aside })
	slices.SortFunc(jobs, func(l, r *job) int {
		return cmp.Or(cmp.Compare(r.message.GetPriority(), l.message.GetPriority()),
			cmp.Compare(l.message.GetCreateTime(), r.message.GetCreateTime()), cmp.Compare(nameOf(l.message), nameOf(r.message)))
	})
	out := map[int][][][]*task{}
	for _, j := range jobs {
		rest := max(0, int64(j.message.GetMinAvailable())-j.held)
		if rest > int64(len(j.waiting)) {
			continue
		}
		var list [][]*task
		if rest > 0 {
			list = append(list, j.waiting[:rest])
		}
		for _, t := range j.waiting[rest:] {
			list = append(list, []*task{t})
		}
		out[j.leaf] = append(out[j.leaf], list)
	}
	return out
}

func nameOf(j *apportionv1.Job) string {
	if j.GetUid() != "" || j.GetNamespace() == "" {
		return cmp.Or(j.GetUid(), j.GetName())
	}
	return j.GetNamespace() + "/" + j.GetName()
}

// entitled reports whether a queue holds no more than a line with a request and what it has claimed.
func (c *check) entitled(q, line int, request, claimed []int64) bool {
	for d, x := range request {
		if x > 0 && c.held[q][d]+x+claimed[d] > c.lines[q][d][line]*c.unit[d] {
			return false
		}
	}
	return true
}

func (c *check) aboveLimit(q int, request, claimed []int64) bool {
	for _, a := range c.path(q) {
		if a == root {
			continue
		}
		limit := c.row(c.GetQueues()[a].GetCapability(), func(x float64) float64 { return float64(int64(x)) }, unlimited)
		for d, x := range request {
			if x > 0 && c.held[a][d]+x+claimed[d] > limit[d] {
				return true
			}
		}
	}
	return false
}

// claims checks what each leaf claims and leaves aside, and whether it wants.
func (c *check) claims() {
	width, blocks := len(c.dims), c.blocks()
	none := make([]int64, width)
	wants := map[int]bool{}
	for _, q := range slices.Backward(c.order) {
		for _, j := range blocks[q] {
			for _, b := range j {
				r := sum(b, width)
				wants[q] = wants[q] || !within(r, none) && c.entitled(q, 2, r, none)
			}
		}
		wants[q] = wants[q] || slices.ContainsFunc(c.kids[q], func(k int) bool { return wants[k] })
	}
	claimed := c.claimed(blocks, wants)
	withheld := map[int][]int64{}
	for _, q := range slices.Backward(c.order) {
		withheld[q] = slices.Clone(claimed[q])
		for _, k := range c.kids[q] {
			add(withheld[q], withheld[k], 1)
		}
		for d := range width {
			if c.settings.GetReserveGuarantee() {
				withheld[q][d] = max(withheld[q][d], c.bounds[d][q].lo*c.unit[d]-c.held[q][d])
			}
		}
	}
	at := 0
	for q := range c.GetQueues() {
		if !slices.Contains(c.order, q) || len(c.kids[q]) > 0 {
			continue
		}
		path := fmt.Sprintf("queues[%d]", at)
		if at++; at > len(c.fair.GetQueues()) {
			c.wrong("%s is missing", path)
			return
		}
		left := make([]int64, width)
		for a := q; a != c.top; a = c.parent[a] {
			for _, k := range c.kids[c.parent[a]] {
				if k != a {
					add(left, withheld[k], 1)
				}
			}
		}
		x := c.fair.GetQueues()[at-1]
		expect(c, path+".queue", int(x.GetQueue()), q)
		expect(c, path+".wants", x.GetWants(), wants[q])
		c.amounts(path+".claimed", x.GetClaimed(), claimed[q])
		c.amounts(path+".aside", x.GetAside(), left)
	}
	expect(c, "queues: number", len(c.fair.GetQueues()), at)
}

// amounts compares a resource with a row; cpu and memory are named always, others where they are not 0.
func (c *check) amounts(path string, got *apportionv1.Resource, want []int64) {
	expected := &apportionv1.Resource{}
	for d, x := range want {
		if x != 0 || c.dims[d] == "cpu" || c.dims[d] == "memory" {
			expected.Dimension, expected.Amount = append(expected.Dimension, uint32(d)), append(expected.Amount, float64(x))
		}
	}
	expect(c, path, fmt.Sprint(got.GetDimension(), got.GetAmount()), fmt.Sprint(expected.GetDimension(), expected.GetAmount()))
}

// claimed lets the leaves claim in queue order, block by block, what fits.
func (c *check) claimed(blocks map[int][][][]*task, wants map[int]bool) map[int][]int64 {
	rooms, claimed := copyRooms(c.free), map[int][]int64{}
	for _, q := range c.order {
		claimed[q] = make([]int64, len(c.dims))
	}
	for _, q := range c.served(c.top, wants) {
		for _, j := range blocks[q] {
			for i, b := range j {
				r := sum(b, len(c.dims))
				if within(r, make([]int64, len(r))) || !c.open[q] {
					continue
				}
				after := copyRooms(rooms)
				if within(r, rooms[root]) && c.entitled(q, 2, r, claimed[q]) && !c.aboveLimit(q, r, claimed[q]) && c.place(after, b) {
					rooms = after
					add(claimed[q], r, 1)
				} else if i == 0 && int64(j[0][0].jobOf(c).message.GetMinAvailable()) > j[0][0].jobOf(c).held {
					break
				}
			}
		}
	}
	return claimed
}

func (t *task) jobOf(c *check) *job { return c.jobs[t.job] }

// place takes the room of each task on the first node that has it, in order of names.
func (c *check) place(rooms map[int][]int64, tasks []*task) bool {
	nodes := make([]int, len(c.GetNodes()))
	for i := range nodes {
		nodes[i] = i
	}
	slices.SortFunc(nodes, func(l, r int) int { return cmp.Compare(c.GetNodes()[l].GetName(), c.GetNodes()[r].GetName()) })
	for _, t := range tasks {
		add(rooms[root], t.request, -1)
		at := slices.IndexFunc(nodes, func(i int) bool { return c.takes(i, t.set) && within(t.request, rooms[i]) })
		if at < 0 && len(nodes) > 0 {
			return false
		}
		if at >= 0 {
			add(rooms[nodes[at]], t.request, -1)
		}
	}
	return true
}

// served lists the leaves below a queue in the order of section 6.
func (c *check) served(q int, wants map[int]bool) []int {
	if len(c.kids[q]) == 0 {
		return []int{q}
	}
	load := func(q int) *big.Rat {
		most := new(big.Rat)
		for d, x := range c.held[q] {
			if all := c.all[d] / c.unit[d] * c.unit[d]; all > 0 && big.NewRat(x, all).Cmp(most) > 0 {
				most = big.NewRat(x, all)
			}
		}
		_, _, _, weight := c.terms(apportionv1.FairCase_FAIR_CASE_WEIGHT, bound{}, q)
		return most.Mul(most, big.NewRat(1, max(weight, 1)))
	}
	weightless := func(q int) bool { return c.GetQueues()[q].Weight != nil && c.GetQueues()[q].GetWeight() == 0 }
	kids := slices.Clone(c.kids[q])
	slices.SortStableFunc(kids, func(l, r int) int {
		return cmp.Or(cmp.Compare(c.GetQueues()[r].GetPriority(), c.GetQueues()[l].GetPriority()), falseFirst(!wants[l], !wants[r]),
			falseFirst(weightless(l), weightless(r)), load(l).Cmp(load(r)), cmp.Compare(c.age(l), c.age(r)))
	})
	var list []int
	for _, k := range kids {
		list = append(list, c.served(k, wants)...)
	}
	return list
}

func falseFirst(l, r bool) int {
	switch {
	case l == r:
		return 0
	case r:
		return -1
	}
	return 1
}
