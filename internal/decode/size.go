package decode

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/apportion/apportion/engine/hierarchy"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/setting"
)

// Extent counts the entities that steps are about, the plugins, and those of them that choose victims.
type Extent struct {
	Dimensions, Nodes, Reservations, Queues, Jobs, Tasks, Plugins, Voters int64
	// Flavors is the most of them that a queue has for the policy kueue, Asked the most pod sets and requests that a job has; both are 0
	// under other policies.
	Flavors, Asked int64
}

// ExtentOf returns the extent of a model under a policy.
func ExtentOf(m *model.Model, p *apportionv1.Policy) Extent {
	e := Extent{
		Dimensions: int64(m.Dims.Len()), Nodes: int64(len(m.Nodes)), Reservations: int64(m.ReservationCount()),
		Queues: int64(len(m.Queues)), Jobs: int64(m.Jobs.Len()), Tasks: int64(m.Tasks.Len()),
	}
	flavors, asked := m.ExtraParts()
	e.Flavors, e.Asked = int64(flavors), int64(asked)
	e.ask(p)
	return e
}

// Extent returns the extent of a snapshot of this size under a policy.
func (z *Size) Extent(p *apportionv1.Policy) Extent {
	// cpu and memory are dimensions of every model.
	e := Extent{
		Dimensions: z.Dimensions + 2, Nodes: z.Nodes, Reservations: z.Reservations, Queues: z.Queues, Jobs: z.Jobs, Tasks: z.Tasks,
		Flavors: z.Flavors, Asked: z.Asked,
	}
	e.ask(p)
	return e
}

// With returns the extent of a snapshot after a change of a size.
func (e Extent) With(change *Size) Extent {
	e.Dimensions += change.Dimensions
	e.Nodes += change.Nodes
	e.Reservations += change.Reservations
	e.Queues += change.Queues
	e.Jobs += change.Jobs
	e.Tasks += change.Tasks
	e.Flavors, e.Asked = max(e.Flavors, change.Flavors), max(e.Asked, change.Asked)
	return e
}

// ask counts the plugins of a policy.
func (e *Extent) ask(p *apportionv1.Policy) {
	kueue := false
	for _, tier := range p.GetTiers() {
		for _, plugin := range tier.GetPlugins() {
			kueue = kueue || plugin.GetKueue() != nil
			e.Plugins++
			if row, ok := catalogue.Of(plugin); !ok || row.ChoosesVictims() {
				e.Voters++
			}
		}
	}
	if !kueue {
		e.Flavors, e.Asked = 0, 0
	}
}

// RowBytes is about what a row of this width takes.
func RowBytes(width int) int64 { return BytesOf[resource.Row](1) + 8*int64(width) }

// BytesOf is what n values of a type take.
func BytesOf[T any](n int) int64 { return int64(n) * int64(reflect.TypeFor[T]().Size()) }

// modelBytes is about what a model takes that has nothing in it, and changedBytes what a change takes that changes nothing.
const modelBytes, changedBytes = 6 << 10, 1 << 10

// ModelBytes estimates the memory of a model without its texts, which are part of the encoded snapshot.
func ModelBytes(m *model.Model) int64 {
	const indexEntry, pointers = 24, 16
	rows := int64(3*len(m.Queues)+2*len(m.Nodes)+m.Jobs.Len()+len(m.Requests)) + 4*int64(m.Jobs.Len())
	return modelBytes + rows*RowBytes(m.Dims.Len()) + sumBytes(m, len(m.Queues)) +
		BytesOf[model.Node](len(m.Nodes)) + BytesOf[model.NodeSet](len(m.NodeSets)) + members(m) + podBytes(m) +
		int64(m.ReservationBytes()) + termsOf(m) + usagesOf(m) +
		int64(m.ExtraBytes()) + BytesOf[model.LeftOut](cap(m.LeftOut)) +
		BytesOf[model.Queue](len(m.Queues)) + (BytesOf[model.Job](1)+pointers)*int64(m.Jobs.Len()) +
		BytesOf[model.Account](m.Jobs.Len()) + BytesOf[model.Group](m.Groups.Len()) + 48*int64(m.Groups.Len()) +
		BytesOf[model.Count](m.Counts.Len()) + BytesOf[model.Task](m.Tasks.Len()) + BytesOf[model.Detail](m.Details.Len()) +
		indexEntry*int64(len(m.Nodes)+len(m.Queues)+m.Jobs.Len()+m.Tasks.Len())
}

// sumBytes returns the memory of the sums of n queues.
func sumBytes(m *model.Model, n int) int64 {
	return int64(n) * (8 + BytesOf[model.QueueSum](1) + (8+4)*6*int64(m.Dims.Len()))
}

// OwnBytes estimates the memory of a model that it does not share with the base of its change; for a model without a base, its whole
// memory.
func OwnBytes(m *model.Model) int64 {
	o := m.Own
	if o == nil {
		return ModelBytes(m)
	}
	// A queue costs the table of its jobs and of its sum, whether or not they are shared.
	const page, indexEntry = 32, 32
	rows := int64(3*o.Queues + 2*o.Nodes + 5*o.Jobs + o.Requests)
	return changedBytes + rows*RowBytes(m.Dims.Len()) + sumBytes(m, o.Sums) +
		BytesOf[model.Node](o.Nodes) + BytesOf[model.NodeSet](o.NodeSets) + BytesOf[model.Queue](o.Queues) +
		(BytesOf[model.Job](1)+BytesOf[model.Account](1))*int64(o.Jobs) + (BytesOf[model.Group](1)+48)*int64(o.Groups) +
		BytesOf[model.Count](o.Counts) + BytesOf[model.Task](o.Tasks) + BytesOf[model.Detail](o.Details) +
		page*int64(o.Pages+len(m.QueueJobs)) + indexEntry*int64(o.Nodes+o.Queues) + 4*int64(o.Order) + int64(max(o.Bytes, 0))
}

// members returns the memory of the nodes of all node sets.
func members(m *model.Model) int64 {
	n, exclusions := 0, 0
	for i := range m.NodeSets {
		set := &m.NodeSets[i]
		n, exclusions = n+len(set.Nodes), exclusions+len(set.Exclusions)+len(set.Preferences)
		for k := range set.Exclusions {
			n += len(set.Exclusions[k].Nodes)
		}
		for k := range set.Preferences {
			n += len(set.Preferences[k].Nodes)
		}
	}
	return BytesOf[model.NodeID](n) + BytesOf[model.Exclusion](exclusions)
}

// termsOf returns the memory of the lists of node groups of all queues, and of their limits for groups.
func termsOf(m *model.Model) int64 {
	n, limits := 0, 0
	for i := range m.Queues {
		n += m.Queues[i].Affinity.Len()
		limits += m.Queues[i].NodeLimits.Len()
	}
	return BytesOf[string](n) + int64(limits)*(BytesOf[string](1)+RowBytes(m.Dims.Len()))
}

// usagesOf returns the memory of what queues say of usage.
func usagesOf(m *model.Model) int64 {
	bytes := 0
	for i := range m.Queues {
		bytes += m.Queues[i].Memory.Bytes()
	}
	return int64(bytes)
}

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
