// Package generate generates snapshots of any size for benchmarks and tests. They resemble a busy cluster, and equal shapes give the same
// bytes.
package generate

import (
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Shape defines the size and the contents of a snapshot. Negative numbers count as 0.
type Shape struct {
	// Queues includes the root of a tree. Jobs need a queue and tasks need a job: if there is none, one is added.
	Queues, Jobs, Tasks, Nodes int
	// Seed chooses among the snapshots of one shape.
	Seed uint64
	// Depth is the number of levels below the root of a tree of queues. 0: no tree.
	Depth int
	// Dimensions is the number of resource dimensions: cpu, memory, pods, nvidia.com/gpu, ephemeral-storage and then devices. 0: 4; else
	// at least 2 and at most 64.
	Dimensions int
	// UIDs gives every task a UUID. Without, tasks are known by their number.
	UIDs bool
	// Counted gives identical pending tasks as counts.
	Counted bool
	// NodeSets is the number of node sets. If it is above 0, some groups and tasks are restricted to a set, and some nodes take no tasks.
	NodeSets int
}

// Standard is the shape that figures are quoted for.
func Standard() Shape {
	return Shape{Queues: 1000, Jobs: 10_000, Tasks: 100_000, Nodes: 5000, Seed: 1, UIDs: true}
}

// asOf is the time of every snapshot: 2026-01-02 03:10:00 UTC.
const asOf int64 = 1_767_323_400_000_000_000

const second int64 = 1_000_000_000

// Snapshot returns the snapshot of a shape. It has no violations.
func Snapshot(shape Shape) *apportionv1.Snapshot {
	shape = shape.completed()
	c := &cluster{shape: shape, total: none(shape.Dimensions)}
	c.out = &apportionv1.Snapshot{AsOf: asOf, Cluster: "generated", Dimensions: dimensions(shape.Dimensions)}
	c.addNodes()
	c.addQueues()
	c.addJobs()
	if shape.NodeSets > 0 {
		c.restrictTasks()
	}
	return c.out
}

func (s Shape) completed() Shape {
	if s.Dimensions == 0 {
		s.Dimensions = 4
	}
	s.Dimensions = min(max(s.Dimensions, 2), 64)
	s.Nodes, s.Tasks, s.Depth = max(s.Nodes, 0), max(s.Tasks, 0), max(s.Depth, 0)
	s.Jobs = max(s.Jobs, min(s.Tasks, 1))
	s.Queues = max(s.Queues, min(s.Jobs, 1))
	return s
}

// cluster is a snapshot in the making.
type cluster struct {
	shape Shape
	out   *apportionv1.Snapshot
	// left is the idle amount of each node, total the sum of the allocatable amounts, and largest the largest request that still fits well
	// anywhere.
	left    []vector
	total   vector
	largest vector
	// accelerated are the nodes with GPUs.
	accelerated []uint32
	// leaves are the queues that may have jobs.
	leaves []int
}

// The sources of randomness, one for each part, so that the size of one part does not change the others.
const (
	nodePart uint64 = iota + 1
	queuePart
	jobPart
	sizePart
	taskPart
	uidPart
	nodeSetPart
)

func (c *cluster) random(part uint64) *source { return newSource(c.shape.Seed, part) }
