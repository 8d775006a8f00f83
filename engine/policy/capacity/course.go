package capacity

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// course is the plugin in a model of the future: a State whose queues use what the model says.
type course struct {
	*State

	queues []model.QueueID
	// places are by queue if flat. tree compares queues else.
	places []policy.QueuePlace
	tree   *TreeState
}

// Course is policy.Foreseeable.Course.
func (s *State) Course(of *policy.Amounts) policy.Course { return s.course(of) }

// Course is policy.Foreseeable.Course.
func (s *TreeState) Course(of *policy.Amounts) policy.Course {
	c := s.course(of)
	c.tree = &TreeState{State: c.State}
	return c
}

func (s *State) course(of *policy.Amounts) *course {
	own := *s
	own.allocated, own.share, own.dominant = slices.Clone(s.allocated), slices.Clone(s.share), slices.Clone(s.dominant)
	c := &course{State: &own, queues: of.Queues, places: make([]policy.QueuePlace, len(of.Queues))}
	for i, q := range of.Queues {
		own.allocated[q] = resource.Row{V: of.Used[i], Has: ^resource.Mask(0) >> (resource.MaxDimensions - s.v.Dims.Len())}
		c.Used(i)
	}
	return c
}

// Begin finds the shares of the queues of a tree, as opening a session does: those with children keep them until the round ends.
func (c *course) Begin(bool, int64) int64 {
	if c.tree == nil {
		return 0
	}
	for i := range c.queues {
		c.Used(i)
	}
	return int64(len(c.queues))
}

// Used finds the share of a queue, not those of the queues above it, as events do.
func (c *course) Used(i int) {
	c.updateShare(c.queues[i])
	c.places[i] = c.placeOf(c.queues[i])
}

// Compare is CompareQueues.
func (c *course) Compare(l, r int, _ []bool) int {
	if c.tree == nil {
		return c.places[l].Compare(c.places[r])
	}
	return c.tree.CompareQueues(c.queues[l], c.queues[r])
}

// Excess is all: what a queue deserves orders it only.
func (*course) Excess() policy.Excess { return policy.AllExcess }
