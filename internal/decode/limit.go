package decode

import (
	"slices"
	"strconv"

	"github.com/apportion/apportion/engine/hierarchy"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/internal/setting"
)

// Limits limits the contents of a snapshot; 0 is no limit. Errors contain the names by which an operator sets them.
type Limits struct {
	Dimensions, Nodes, NodeSets, Queues, QueueDepth, Jobs, Groups, Tasks int64
	// TextBytes limits each name and uid. Below 128 it counts as 128.
	TextBytes int64
}

// LimitsOf returns those of the settings that limit one snapshot.
func LimitsOf(l *setting.Limit) Limits {
	return Limits{
		Dimensions: l.Dimensions, Nodes: l.Nodes, NodeSets: l.NodeSets, Queues: l.Queues, QueueDepth: l.QueueDepth,
		Jobs: l.Jobs, Groups: l.Groups, Tasks: l.Tasks, TextBytes: int64(l.TextBytes),
	}
}

// Guard contains the limits for compiling a snapshot. The zero value has none.
type Guard struct {
	Limits Limits
	// Size is the result of Measure for the snapshot, if it is already known.
	Size *Size
	// Sums is true if only sums of tasks are needed; see OnlySums. The model then need not have the tasks.
	Sums bool
	// Parts is in how many parts the jobs are read; 0: in as many as their number is worth.
	Parts int
	// Stop is called periodically; it returns true if the caller no longer waits. nil: never.
	Stop func() bool
}

// Within returns a *Fault with the first exceeded limit.
func (z Size) Within(l Limits) error {
	for _, one := range [...]struct {
		limit          string
		value, maximum int64
	}{
		{"dimensions", z.Dimensions, l.Dimensions},
		{"nodes", z.Nodes, l.Nodes},
		{"node_sets", z.NodeSets, l.NodeSets},
		{"queues", z.Queues, l.Queues},
		{"jobs", z.Jobs, l.Jobs},
		{"groups", z.Groups, l.Groups},
		{"tasks", z.Tasks, l.Tasks},
	} {
		if one.maximum > 0 && one.value > one.maximum {
			return Exceeded(one.limit, one.value, one.maximum,
				"the snapshot has "+strconv.FormatInt(one.value, 10)+" "+one.limit+
					", at most "+strconv.FormatInt(one.maximum, 10)+" are taken")
		}
	}
	return nil
}

// Depth returns a *Fault if queues are nested too deeply. A queue that is its own ancestor has no depth.
func Depth(m *model.Model, maximum int64) error {
	if maximum <= 0 || int64(len(m.Queues)) <= maximum {
		return nil
	}
	if level := LevelsOf(m); level > maximum {
		return Exceeded("queue_depth", level, maximum,
			"queues are nested "+strconv.FormatInt(level, 10)+" deep, at most "+strconv.FormatInt(maximum, 10)+" levels are taken")
	}
	return nil
}

// LevelsOf returns how many levels of queues there are. The parent of the root counts for nothing, as in every policy.
func LevelsOf(m *model.Model) int64 {
	levels := Levels(len(m.Queues), func(q int) (int, bool) {
		if m.Queues[q].Name == hierarchy.Root {
			return 0, false
		}
		parent, ok := m.Queue(m.Queues[q].Parent)
		return int(parent), ok
	})
	return int64(slices.Max(append(levels, 0)))
}

// Levels returns the level of each of n queues, 1 for one without a parent. It is negative for a queue that is its own ancestor, and for
// those below it.
func Levels(n int, parent func(int) (int, bool)) []int {
	// Each queue is visited about twice. The level is 0 until it is known.
	const circular = -1
	levels := make([]int, n)
	var path []int
	for q := range levels {
		path = path[:0]
		at, ok := q, true
		for ok && levels[at] == 0 {
			levels[at] = circular
			path = append(path, at)
			at, ok = parent(at)
		}
		level := 0
		if ok && levels[at] == circular {
			continue
		}
		if ok {
			level = levels[at]
		}
		for _, q := range slices.Backward(path) {
			level++
			levels[q] = level
		}
	}
	return levels
}

// Accept returns a *Fault for a model beyond the limits.
func (l Limits) Accept(m *model.Model) error {
	if err := sizeOfModel(m).Within(l); err != nil {
		return err
	}
	return Depth(m, l.QueueDepth)
}
