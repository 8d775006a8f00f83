package generate

import (
	"fmt"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// zones is the number of node groups.
const zones = 8

func zone(i int) string { return fmt.Sprintf("zone-%d", i) }

// addNodes adds general nodes, nodes with GPUs and nodes with much memory. Some are in no group.
func (c *cluster) addNodes() {
	n, r := c.shape.Nodes, c.random(nodePart)
	c.out.Nodes, c.left = make([]*apportionv1.Node, n), make([]vector, n)
	for i := range n {
		offered, used := c.offer(r), none(c.shape.Dimensions)
		if offered.amount(gpu) > 0 {
			c.accelerated = append(c.accelerated, uint32(i))
		}
		used.set(cpu, int64(r.between(1, 10)*50))
		used.set(memory, int64(r.between(2, 20)*64*mebibyte))
		used.set(pods, int64(r.between(2, 8)))
		node := &apportionv1.Node{Name: fmt.Sprintf("node-%05d", i), Allocatable: offered.resource(), UsedByOthers: used.resource()}
		if r.chance(800) {
			group := zone(r.below(zones))
			node.Group = &group
		}
		c.total.add(offered, 1)
		c.restrict(offered)
		offered.take(used)
		c.out.Nodes[i], c.left[i] = node, offered
	}
}

func (v vector) amount(d int) int64 {
	if d < len(v) {
		return v[d]
	}
	return absent
}

// offer returns what a node has.
func (c *cluster) offer(r *source) vector {
	v := none(c.shape.Dimensions)
	cores, perCore := int64(16<<r.below(4)), int64(4)
	switch kind := r.below(10); {
	case kind < 2:
		cores = 96
		v.set(gpu, int64(4<<r.below(2))*1000)
	case kind < 3:
		perCore = 16
	}
	v.set(cpu, cores*1000)
	v.set(memory, cores*perCore*1024*mebibyte)
	v.set(pods, int64(max(110, c.shape.Tasks/c.shape.Nodes*2+16)))
	v.set(storage, int64(r.between(2, 20))*100*1024*mebibyte)
	for d := device; d < len(v); d++ {
		if r.chance(125) {
			v[d] = int64(r.between(1, 16)) * 1000
		}
	}
	return v
}

// restrict keeps the largest request to a quarter of what every node has of cpu and memory.
func (c *cluster) restrict(offered vector) {
	if c.largest == nil {
		c.largest = vector{offered[cpu] / 4, offered[memory] / 4}
		return
	}
	c.largest[cpu], c.largest[memory] = min(c.largest[cpu], offered[cpu]/4), min(c.largest[memory], offered[memory]/4)
}

// place returns a node that has room for a request, and takes the room. It tries only a few, as a full cluster is full almost everywhere.
func (c *cluster) place(request vector, r *source) (uint32, bool) {
	const tries = 16
	if request.amount(gpu) > 0 {
		at := r.below(len(c.accelerated))
		for i := range min(tries, len(c.accelerated)) {
			if n := c.accelerated[(at+i)%len(c.accelerated)]; c.take(n, request) {
				return n, true
			}
		}
		return 0, false
	}
	at := r.below(len(c.left))
	for i := range min(tries, len(c.left)) {
		if n := uint32((at + i) % len(c.left)); c.take(n, request) {
			return n, true
		}
	}
	return 0, false
}

func (c *cluster) take(n uint32, request vector) bool {
	if !c.left[n].covers(request) {
		return false
	}
	c.left[n].take(request)
	return true
}
