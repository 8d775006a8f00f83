package fair

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
)

// recalling draws a cluster of queues with demands alone, and with a memory.
func (d draw) recalling() *cluster {
	c := d.demanding()
	c.memory = &model.MemorySpec{
		EpochSeconds: 1 + d.Int64N(20), HalfLife: uint32(1 + d.IntN(40)), Epoch: 100, Offered: integers(d.row(c.width, 3000, 15)),
	}
	c.plugin.Memory = Memory{Gain: []int64{0, one, 3 * one}[d.IntN(3)], Power: 1 + d.IntN(MaxPower)}
	for i := range c.queues {
		c.queues[i].memory = &model.QueueMemorySpec{}
		d.budget(c, c.queues[i].memory)
	}
	d.use(c)
	return c
}

// TestDividingAQueueBelowItMovesNoOther makes a leaf an inner queue with its demand, usage and bounds divided among children of any weight and
// usage. Both lines of every other queue stay, and so do those of the queue itself.
func TestDividingAQueueBelowItMovesNoOther(t *testing.T) {
	divided := 0
	eachCluster(t, *runs, draw.recalling, func(t require.TestingT, d draw, c *cluster) int {
		at := slices.IndexFunc(c.queues, func(q queue) bool {
			return q.demand != nil && q.name != "root" && q.deserved == nil && q.state == model.Open
		})
		if at < 0 || c.plugin.Base == OnDeserved {
			return 1
		}
		before := c.open(t)
		before.settle()
		if before.tree.at[at] == none {
			return 1
		}
		// Amounts are in whole quanta: others are rounded for each child.
		for i := range c.queues[at].demand {
			c.queues[at].demand[i] = max(0, c.queues[at].demand[i]) / c.plugin.Quanta[i].Amount * c.plugin.Quanta[i].Amount
		}
		before = c.open(t)
		before.settle()
		after := *c
		after.queues = slices.Clone(c.queues)
		parent := &after.queues[at]
		left := slices.Clone(parent.demand)
		children := 1 + d.IntN(3)
		for k := range children {
			child := queue{name: fmt.Sprintf("child%d", k), parent: parent.name, weight: uint32(1 + d.IntN(5)), demand: make([]int64, c.width)}
			for i, amount := range left {
				quantum := c.plugin.Quanta[i].Amount
				child.demand[i] = amount
				if k < children-1 {
					child.demand[i] = d.Int64N(amount/quantum+1) * quantum
				}
				left[i] -= child.demand[i]
			}
			child.memory = &model.QueueMemorySpec{Usage: integers(d.row(c.width, 900, 15))}
			after.queues = append(after.queues, child)
		}
		after.queues[at].demand = nil
		then := after.open(t)
		then.settle()
		divided++
		for q := range c.queues {
			p, now := before.tree.at[q], then.tree.at[q]
			if p == none {
				continue
			}
			for dim := range before.width {
				require.Equal(t, before.line(2, p, dim), then.line(2, now, dim), "entitlement of %s", c.queues[q].name)
				require.Equal(t, before.lineWithMemory(p, dim), then.lineWithMemory(now, dim), "line with memory of %s", c.queues[q].name)
			}
		}
		return 1
	})
	require.Greater(t, divided, *runs/4)
}
