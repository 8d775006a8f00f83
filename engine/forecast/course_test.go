package forecast_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// TestACourseDividesAndOrdersAsTheSessionDoes tells a course of each policy what queues use and ask for, first twice as much. Then it has to
// answer what the session answers.
func TestACourseDividesAndOrdersAsTheSessionDoes(t *testing.T) {
	compared := map[string]int{}
	for i := range *enginetest.Runs / 2 {
		seed := *enginetest.Seed + uint64(i)
		for name, p := range enginetest.Policies() {
			host, err := engine.OpenHost(enginetest.LimitedCluster(t, seed, name == "tree"), p, nil, nil)
			require.NoError(t, err)
			for _, divider := range host.Dividers() {
				if of, foreseeable := divider.Queues.(policy.Foreseeable); foreseeable {
					c := courseOf(of, host.View())
					compared[name] += c.compare(t, fmt.Sprint(name, " ", seed))
				}
			}
		}
	}
	for _, name := range []string{"proportion", "capacity", "tree", "fair"} {
		require.Greater(t, compared[name], 100, name)
	}
}

// coursed is a course of a session's policy, with what the session says of the queues that take part.
type coursed struct {
	course policy.Course
	policy.Amounts

	of       policy.Foreseeable
	deserved [][]float64
	wants    []bool
}

func courseOf(of policy.Foreseeable, v *policy.View) *coursed {
	c := &coursed{of: of}
	for _, q := range v.QueueOrder {
		share, part := of.Share(q)
		if !part {
			continue
		}
		asked := slices.Clone(share.Request.V)
		if len(share.Children) > 0 {
			clear(asked)
		}
		c.Queues, c.Used, c.Asked = append(c.Queues, q), append(c.Used, slices.Clone(share.Allocated.V)), append(c.Asked, asked)
		c.deserved, c.Deserved = append(c.deserved, slices.Clone(share.Deserved.V)), append(c.Deserved, make([]float64, v.Dims.Len()))
		c.wants = append(c.wants, c.wantsAny(q))
	}
	c.course = of.Course(&c.Amounts)
	return c
}

// wantsAny reports whether a queue, or one below it, has something waiting that it is entitled to.
func (c *coursed) wantsAny(q model.QueueID) bool {
	of, entitles := c.of.(interface {
		Wants(q model.QueueID) bool
		Children(q model.QueueID) []model.QueueID
	})
	return entitles && (of.Wants(q) || slices.ContainsFunc(of.Children(q), c.wantsAny))
}

// tell multiplies what queues use and ask for.
func (c *coursed) tell(t *testing.T, times float64) {
	t.Helper()
	for i := range c.Queues {
		for d := range c.Used[i] {
			c.Used[i][d] *= times
			c.Asked[i][d] *= times
		}
	}
	for i := range c.Queues {
		c.course.Used(i)
	}
	const most = math.MaxInt64 / 2
	require.Less(t, c.course.Begin(true, most), int64(most))
}

// compare returns how many pairs of queues were compared.
func (c *coursed) compare(t *testing.T, story string) (pairs int) {
	t.Helper()
	c.tell(t, 2)
	c.tell(t, 0.5)
	orderer := c.of.(policy.QueueOrderer)
	for l := range c.Queues {
		// A queue with jobs that ask for nothing has its guarantee in a session, and in a model is as one without jobs.
		if c.course.Excess() != policy.AllExcess && !slices.ContainsFunc(c.Asked, isNothing) {
			require.Equal(t, c.deserved[l], c.Deserved[l], "%s: queue %d", story, l)
		}
		for r := range c.Queues {
			by := orderer.CompareQueues(c.Queues[l], c.Queues[r])
			require.Equal(t, cmp.Compare(by, 0), cmp.Compare(c.course.Compare(l, r, c.wants), 0), "%s: queues %d and %d", story, l, r)
			pairs++
		}
	}
	return pairs
}

func isNothing(amount []float64) bool { return slices.Max(amount) == 0 }

// TestACourseThatMayDoTooLittleSaysSo gives the division of proportion one unit of work.
func TestACourseThatMayDoTooLittleSaysSo(t *testing.T) {
	host, err := engine.OpenHost(enginetest.LimitedCluster(t, 1, false), enginetest.Policies()["proportion"], nil, nil)
	require.NoError(t, err)
	for _, divider := range host.Dividers() {
		if of, foreseeable := divider.Queues.(policy.Foreseeable); foreseeable {
			require.Equal(t, int64(2), courseOf(of, host.View()).course.Begin(true, 1))
		}
	}
}
