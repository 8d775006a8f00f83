package checker

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// waiting lists what the jobs of each leaf wait for: the rest of a gang, then single tasks.
func (c *check) waiting() map[int][][][]*task {
	jobs := slices.DeleteFunc(slices.Clone(c.jobs), func(j *job) bool { return j.leaf == aside })
	slices.SortFunc(jobs, func(l, r *job) int {
		return cmp.Or(cmp.Compare(r.message.GetPriority(), l.message.GetPriority()),
			cmp.Compare(l.message.GetCreateTime(), r.message.GetCreateTime()), cmp.Compare(nameOf(l.message), nameOf(r.message)))
	})
	if c.GetMemory() != nil && c.settings.GetMemory().GetOwners() {
		jobs = c.byOwners(jobs)
	}
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
		for d, x := range request {
			if x > 0 && c.held[a][d]+x+claimed[d] > c.capability[a][d] {
				return true
			}
		}
	}
	return false
}

// claims are what the verdicts rest on beside the lines.
type claims struct {
	blocks map[int][][][]*task
	wants  map[int]bool
	// claimed and aside are what a leaf claims, and what it leaves to others.
	claimed, left map[int][]int64
	// saved is the part of what a leaf claims that waits for tasks to end.
	saved map[int][]int64
	// serving lists the leaves in the order in which they are served.
	serving []int
}

// form finds out what each leaf waits for, claims and leaves aside, whether it wants, and the order of service.
func (c *check) form() {
	width := len(c.dims)
	c.blocks = c.waiting()
	none := make([]int64, width)
	c.wants = map[int]bool{}
	for _, q := range slices.Backward(c.order) {
		for _, j := range c.blocks[q] {
			for _, b := range j {
				r := sum(b, width)
				c.wants[q] = c.wants[q] || !within(r, none) && c.entitled(q, withMemory, r, none)
			}
		}
		c.wants[q] = c.wants[q] || slices.ContainsFunc(c.kids[q], func(k int) bool { return c.wants[k] })
	}
	c.serving = c.served(c.top)
	c.claimed = c.claim()
	withheld := map[int][]int64{}
	for _, q := range slices.Backward(c.order) {
		withheld[q] = slices.Clone(c.claimed[q])
		for _, k := range c.kids[q] {
			add(withheld[q], withheld[k], 1)
		}
		for d := range width {
			if c.settings.GetReserveGuarantee() {
				withheld[q][d] = max(withheld[q][d], c.bounds[d][q].lo*c.unit[d]-c.held[q][d])
			}
		}
	}
	c.left = map[int][]int64{}
	for _, q := range c.serving {
		c.left[q] = make([]int64, width)
		for a := q; a != c.top; a = c.parent[a] {
			for _, k := range c.kids[c.parent[a]] {
				if k != a {
					add(c.left[q], withheld[k], 1)
				}
			}
		}
	}
}

// leaves checks what the certificate says of each leaf.
func (c *check) leaves() {
	at := 0
	for q := range c.GetQueues() {
		if c.left[q] == nil {
			continue
		}
		path := fmt.Sprintf("queues[%d]", at)
		if at++; at > len(c.fair.GetQueues()) {
			c.wrong("%s is missing", path)
			return
		}
		want := &apportionv1.FairQueue{
			Queue: uint32(q), Claimed: c.resourceOf(c.claimed[q]), Aside: c.resourceOf(c.left[q]), Wants: c.wants[q],
		}
		if c.saved[q] != nil {
			want.Saved = c.resourceOf(c.saved[q])
		}
		c.compare(path, c.fair.GetQueues()[at-1], want, nil)
	}
	expect(c, "queues: number", len(c.fair.GetQueues()), at)
}

// resourceOf is a row as a resource that names every dimension.
func (c *check) resourceOf(row []int64) *apportionv1.Resource {
	r := &apportionv1.Resource{}
	for d, x := range row {
		r.Dimension, r.Amount = append(r.Dimension, uint32(d)), append(r.Amount, float64(x))
		if x == unlimited {
			r.Amount[d] = math.Inf(1)
		}
	}
	return r
}

// claim lets the leaves claim in queue order, block by block, what fits.
func (c *check) claim() map[int][]int64 {
	rooms, claimed := copyRooms(c.free), map[int][]int64{}
	c.saved = map[int][]int64{}
	for _, q := range c.order {
		claimed[q] = make([]int64, len(c.dims))
	}
	for _, q := range c.serving {
		for _, j := range c.blocks[q] {
		blocks:
			for i, b := range j {
				r := sum(b, len(c.dims))
				if within(r, make([]int64, len(r))) || !c.open[q] {
					continue
				}
				entitled := within(r, rooms[root]) && c.entitled(q, withMemory, r, claimed[q]) && !c.aboveLimit(q, r, claimed[q])
				switch {
				case entitled && c.place(rooms, b):
				case c.saved[q] == nil && c.savable(q, b, claimed[q], rooms):
					c.saved[q] = r
				case i == 0 && c.incomplete(j[0][0]):
					break blocks
				default:
					continue
				}
				add(claimed[q], r, 1)
			}
		}
	}
	return claimed
}

// incomplete tells whether the job of a task holds fewer tasks than its gang needs.
func (c *check) incomplete(t *task) bool {
	j := c.jobs[t.job]
	return int64(j.message.GetMinAvailable()) > j.held
}

// place takes the room of each task on the first node that has it, in order of names, or none if one of them finds no room.
func (c *check) place(rooms map[int][]int64, tasks []*task) bool {
	nodes := c.byName
	taken := make([]int, 0, len(tasks))
	for _, t := range tasks {
		at := slices.IndexFunc(nodes, func(i int) bool { return c.takes(i, t.set) && !c.reserved(i) && within(t.request, rooms[i]) })
		if at < 0 && len(nodes) > 0 {
			for i, n := range taken {
				add(rooms[root], tasks[i].request, 1)
				add(rooms[n], tasks[i].request, 1)
			}
			return false
		}
		add(rooms[root], t.request, -1)
		if at >= 0 {
			taken = append(taken, nodes[at])
			add(rooms[nodes[at]], t.request, -1)
		}
	}
	return true
}

// served lists the leaves below a queue in the order of service.
func (c *check) served(q int) []int {
	if len(c.kids[q]) == 0 {
		return []int{q}
	}
	load := c.loadByWeight
	ease := func(l, r int) int {
		if c.GetMemory() == nil {
			return 0
		}
		return c.eased(r).Cmp(c.eased(l))
	}
	kids := slices.Clone(c.kids[q])
	slices.SortStableFunc(kids, func(l, r int) int {
		return cmp.Or(cmp.Compare(c.GetQueues()[r].GetPriority(), c.GetQueues()[l].GetPriority()), falseFirst(!c.wants[l], !c.wants[r]),
			falseFirst(c.weight(l) == 0, c.weight(r) == 0), load(l).Cmp(load(r)), ease(l, r), cmp.Compare(c.age(l), c.age(r)))
	})
	var list []int
	for _, k := range kids {
		list = append(list, c.served(k)...)
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
