package explain_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// TestWhatAQueueMayNeverHold lets a job wait in queue a, below p and beside b, on two nodes of 8 cores. It needs as many of its tasks as
// minimum says.
func TestWhatAQueueMayNeverHold(t *testing.T) {
	byProportion, byCapacity := engine.Entry{Plugin: proportion.Plugin{}}, engine.Entry{Plugin: capacity.Plugin{}}
	byTree, byFair := engine.Entry{Plugin: capacity.Plugin{Hierarchical: true}}, engine.Entry{Plugin: fair.Plugin{}}
	for name, c := range map[string]struct {
		plugin engine.Entry
		// asks are the cores of each task of the job, holds those of one that runs in its queue.
		asks           []int
		minimum, holds int
		// limit, above and others are the limit of a, that of p and the guarantee of b.
		limit, above, others int
		code                 policy.Code
		queue                string
	}{
		"the larger task above the limit, capacity": {plugin: byCapacity, asks: []int{4, 1}, minimum: 1, holds: 2, limit: 2},
		"the larger task above the limit, tree":     {plugin: byTree, asks: []int{4, 1}, minimum: 1, holds: 2, limit: 2},
		"the larger task above the limit, fair":     {plugin: byFair, asks: []int{4, 1}, minimum: 1, holds: 2, limit: 2},
		"each task above the limit, capacity": {
			plugin: byCapacity, asks: []int{4, 3}, minimum: 1, holds: 2, limit: 2, code: policy.AboveRealCapability, queue: "a",
		},
		"each task above the limit, fair": {
			plugin: byFair, asks: []int{4, 3}, minimum: 1, holds: 2, limit: 2, code: policy.AboveLimit, queue: "a",
		},
		"the gang above the limit of a parent, tree": {
			plugin: byTree, asks: []int{2, 2}, minimum: 2, above: 3, code: policy.AboveRealCapability, queue: "a",
		},
		"the gang above the limit of a parent, fair": {
			plugin: byFair, asks: []int{2, 2}, minimum: 2, above: 3, code: policy.AboveLimit, queue: "p",
		},
		"the parent is full, fair": {plugin: byFair, asks: []int{2}, minimum: 1, holds: 3, above: 3},
		"all is guaranteed to others, proportion": {
			plugin: byProportion, asks: []int{1}, minimum: 1, others: 16, code: policy.AboveLimit, queue: "a",
		},
		"less is guaranteed to others, proportion": {plugin: byProportion, asks: []int{1}, minimum: 1, others: 14},
	} {
		t.Run(name, func(t *testing.T) {
			limited := func(to int) *model.Amounts {
				if to == 0 {
					return nil
				}
				return enginetest.Cores(to)
			}
			s := enginetest.Opened(t, c.plugin, func(b *model.Builder) {
				for i := range 2 {
					b.Node(model.NodeSpec{Name: fmt.Sprint("n", i), Allocatable: enginetest.Cores(8)})
				}
				b.Queue(model.QueueSpec{Name: "root", Weight: 1})
				b.Queue(model.QueueSpec{Name: "p", Parent: "root", Weight: 1, Capability: limited(c.above)})
				b.Queue(model.QueueSpec{Name: "a", Parent: "p", Weight: 1, Capability: limited(c.limit)})
				b.Queue(model.QueueSpec{Name: "b", Parent: "root", Weight: 1, Guarantee: limited(c.others)})
				b.Job(model.JobSpec{UID: "waits", Queue: "a", Phase: model.PhaseInqueue, MinAvailable: uint32(c.minimum)})
				for i, asked := range c.asks {
					b.Group(model.GroupSpec{Role: fmt.Sprint(i), Request: enginetest.Cores(asked)})
					b.Task(&model.TaskSpec{UID: fmt.Sprint("t", i), Node: model.None, Index: -1})
				}
				if c.holds > 0 {
					b.Job(model.JobSpec{UID: "runs", Queue: "a", Phase: model.PhaseRunning, MinAvailable: 1})
					b.Group(model.GroupSpec{Request: enginetest.Cores(c.holds)})
					b.Task(&model.TaskSpec{UID: "r", Status: model.Running, Node: 0, Index: -1})
				}
			})
			e := explainAll(t, s, 0)[0]
			if c.code == 0 {
				for _, f := range e.Findings {
					require.NotEqual(t, judge.CheckFeasibility, f.Check)
				}
				return
			}
			require.NotEmpty(t, e.Findings)
			require.Equal(t, judge.CheckFeasibility, e.Findings[0].Check)
			reason := e.Findings[0].Reasons[0]
			require.Equal(t, c.code, reason.Code)
			require.Equal(t, c.queue, s.View().Queues[reason.Queue].Name)
			require.Greater(t, reason.Need, reason.Limit)
		})
	}
}
