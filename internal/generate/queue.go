package generate

import (
	"fmt"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// addQueues adds queues that divide the cluster among them: what children are promised never exceeds what their parent is.
func (c *cluster) addQueues() {
	n, r := c.shape.Queues, c.random(queuePart)
	parents := tree(n, c.shape.Depth)
	inner := make([]bool, n)
	for _, p := range parents {
		if p >= 0 {
			inner[p] = true
		}
	}
	plans := c.plan(parents, inner, r)
	c.out.Queues = make([]*apportionv1.Queue, n)
	for i := range n {
		q := &apportionv1.Queue{Name: fmt.Sprintf("queue-%05d", i), CreateTime: asOf - int64(r.between(1, 1e7))*second}
		c.out.Queues[i] = q
		if !inner[i] {
			c.leaves = append(c.leaves, i)
		}
		if c.shape.Depth > 0 && i == 0 {
			q.Name = "root"
			continue
		}
		if p := parents[i]; p > 0 {
			q.Parent = c.out.Queues[p].Name
		}
		decorate(q, r)
		q.Guarantee, q.Deserved, q.Capability = plans[i].guarantee.resource(), plans[i].deserved.resource(), plans[i].capability.resource()
	}
	for _, leaf := range c.leaves {
		c.out.Queues[leaf].FairShareHierarchy = c.path(parents, leaf)
	}
}

// tree returns the parent of each of n queues, -1 for none. With a depth the first is the root of a tree of exactly that depth, or of a
// chain if there are too few queues, whose levels grow as slowly as that allows.
func tree(n, depth int) []int {
	parents := make([]int, n)
	for i := range parents {
		parents[i] = -1
	}
	width := 1
	for depth > 0 && capacity(width, depth, n) < n {
		width++
	}
	above, size := 0, 1
	for next := 1; depth > 0 && next < n; depth-- {
		// Each level below this one gets a queue at least.
		level := max(min(size*width, n-next-(depth-1)), 1)
		for k := range level {
			parents[next+k] = above + k*size/level
		}
		above, size, next = next, level, next+level
	}
	return parents
}

// capacity returns how many queues a tree of that width and depth has, the root included; n stands for n and more.
func capacity(width, depth, n int) int {
	sum, level := 1, 1
	for range depth {
		level *= width
		if sum += level; sum >= n {
			return n
		}
	}
	return sum
}

// decorate draws the properties that are no resources.
func decorate(q *apportionv1.Queue, r *source) {
	if r.chance(900) {
		weight := uint32(r.between(1, 10))
		if r.chance(20) {
			weight = uint32(r.below(2) * 100)
		}
		q.Weight = &weight
	}
	if r.chance(50) {
		q.Priority = int32(r.between(1, 3))
	}
	if r.chance(50) {
		reclaimable := false
		q.Reclaimable = &reclaimable
	}
	q.State = apportionv1.QueueState_QUEUE_STATE_OPEN
	if r.chance(30) {
		q.State = apportionv1.QueueState(r.between(2, 4))
	}
	if r.chance(100) {
		preferred := r.below(zones)
		q.NodeGroupAffinity = &apportionv1.NodeGroupAffinity{
			Affinity: &apportionv1.NodeGroupTerms{
				RequiredGroups: []string{zone(r.below(zones))}, PreferredGroups: []string{zone(preferred), zone((preferred + 1) % zones)},
			},
		}
		if r.chance(300) {
			q.NodeGroupAffinity.AntiAffinity = &apportionv1.NodeGroupTerms{PreferredGroups: []string{zone(r.below(zones))}}
		}
	}
}

// promise contains the amounts that a queue is promised; it is empty without a promise.
type promise struct{ guarantee, deserved, capability vector }

// plan divides the cluster among the leaves, and gives their parents the sums. A guarantee is less than half, and a capability at least
// twice, what the queue deserves.
func (c *cluster) plan(parents []int, inner []bool, r *source) []promise {
	n := len(parents)
	plans, portions, sum := make([]promise, n), make([]int64, n), int64(0)
	for i := range n {
		width := c.shape.Dimensions
		plans[i] = promise{none(width), none(width), none(width)}
		if !inner[i] {
			portions[i] = int64(r.between(1, 10))
			sum += portions[i]
		}
	}
	for i := n - 1; i >= 0; i-- {
		p := &plans[i]
		if !inner[i] {
			c.promise(p, portions[i]*1_000_000/sum, r)
		} else if r.chance(300) {
			p.capability.add(p.deserved, 4)
		}
		if parent := parents[i]; parent >= 0 {
			plans[parent].guarantee.add(p.guarantee, 1)
			plans[parent].deserved.add(p.deserved, 1)
		}
	}
	return plans
}

// promise draws what a leaf with so many millionths of the cluster is promised.
func (c *cluster) promise(p *promise, millionths int64, r *source) {
	deserves, guaranteed, capped := r.chance(600), r.chance(250), r.chance(400)
	for d, x := range c.total {
		if x == absent || d > memory && !r.chance(shown(d)) {
			continue
		}
		amount := part(d, x, millionths)
		if deserves || guaranteed {
			p.deserved[d] = amount
		}
		if guaranteed {
			p.guarantee[d] = part(d, amount, 300_000)
		}
		if capped {
			p.capability[d] = amount*2 + grain(d)
		}
	}
}

// shown returns the number of times in a thousand that a scalar is promised.
func shown(d int) int {
	switch d {
	case pods:
		return 50
	case gpu:
		return 400
	default:
		return 200
	}
}

// path returns a leaf's place in the tree of hierarchical DRF: the tree of the queues, or if there is none a tree of teams. An inner node
// has the same weight in all paths.
func (c *cluster) path(parents []int, leaf int) *apportionv1.FairShareHierarchy {
	names, weights := []string{c.out.Queues[leaf].Name}, []string{nodeWeight(leaf)}
	if c.shape.Depth == 0 {
		team := leaf % 32
		names, weights = append(names, fmt.Sprintf("team-%02d", team)), append(weights, nodeWeight(team))
	}
	for at := parents[leaf]; at > 0; at = parents[at] {
		names, weights = append(names, c.out.Queues[at].Name), append(weights, nodeWeight(at))
	}
	var path, weight strings.Builder
	path.WriteString("root")
	weight.WriteString("1")
	for i, name := range slices.Backward(names) {
		path.WriteString("/" + name)
		weight.WriteString("/" + weights[i])
	}
	return &apportionv1.FairShareHierarchy{Path: path.String(), Weights: weight.String()}
}

func nodeWeight(i int) string { return string(rune('1' + i%9)) }
