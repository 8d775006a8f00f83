package proportion

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/account"
	"github.com/apportion/apportion/engine/resource"
)

// course is the plugin in a model of the future: a State whose queues use and ask for what the model says.
type course struct {
	*State

	queues []model.QueueID
	places []policy.QueuePlace
}

// Course is policy.Foreseeable.Course.
func (s *State) Course(of *policy.Amounts) policy.Course {
	own, view, n, width := *s, *s.v, len(s.v.Queues), s.v.Dims.Len()
	view.Stop = nil
	own.v, own.deserved, own.realCapability = &view, resource.NewMatrix(n, width, resource.Base), s.realCapability.Clone()
	own.asked = make([]resource.Row, n)
	used, all, free := make([]resource.Row, n), ^resource.Mask(0)>>(resource.MaxDimensions-width), s.free()
	for i, q := range of.Queues {
		used[q], own.asked[q] = resource.Row{V: of.Used[i], Has: all}, resource.Row{V: of.Asked[i], Has: all}
		if of.Deserved[i] = own.deserved.Row(int(q)).V; !s.takesPart[q] {
			own.limit(q, free)
		}
	}
	own.changed.allocated = account.ChangingOf(used)
	return &course{State: &own, queues: of.Queues, places: make([]policy.QueuePlace, len(of.Queues))}
}

// Begin divides anew, among the queues that ask for something, if what they ask for has changed.
func (c *course) Begin(asked bool, most int64) int64 {
	if !asked {
		return 0
	}
	c.v.Work, c.State.queues = policy.NewWork(most), make([]model.QueueID, 0, len(c.queues))
	clear(c.deserved.Cells())
	for _, q := range c.v.QueueOrder {
		c.deserved.SetHas(int(q), resource.Base)
		if slices.ContainsFunc(c.asked[q].V, func(x float64) bool { return x > 0 }) {
			c.State.queues = append(c.State.queues, q)
		}
	}
	err := c.division().run()
	for i := range c.queues {
		c.Used(i)
	}
	if err != nil {
		return most + 1
	}
	return c.v.Work.Spent()
}

// Used finds the place of a queue in the order of service.
func (c *course) Used(i int) { c.places[i] = c.placeOf(c.queues[i]) }

// Compare goes by priority and share.
func (c *course) Compare(l, r int, _ []bool) int { return c.places[l].Compare(c.places[r]) }

// Excess is none: a queue is given nothing beyond what it deserves.
func (*course) Excess() policy.Excess { return policy.NoExcess }
