package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// TestAJobEntersBeyondALimitWhereEvictionWouldServeIt asks fair to admit a job of queue a, which is limited, and below p, which is limited to
// 4 cores, beside b. The cluster has 8 cores.
func TestAJobEntersBeyondALimitWhereEvictionWouldServeIt(t *testing.T) {
	for name, c := range map[string]struct {
		// a and b are the running tasks of one core of the queues, minimum the minimum of the job of a, limit that of a.
		a, b, minimum, limit int
		// priority and asks are of the waiting job; created: it has its tasks already.
		priority int32
		asks     int
		created  bool
		enters   bool
	}{
		"b borrows all below p":                                {b: 4, limit: 9, asks: 2, created: true, enters: true},
		"and the tasks are created later":                      {b: 4, limit: 9, asks: 2, enters: true},
		"a is not entitled to so much":                         {b: 4, limit: 9, asks: 3, created: true},
		"each has its half":                                    {a: 2, b: 2, limit: 9, asks: 1, created: true},
		"more is held below p than its limit":                  {b: 5, limit: 9, asks: 1, created: true},
		"the limit of a itself":                                {b: 4, limit: 1, asks: 2, created: true},
		"tasks of lower priority beyond a minimum":             {a: 2, limit: 2, minimum: 1, priority: 5, asks: 1, created: true, enters: true},
		"which are also in the way of a job without tasks":     {a: 2, limit: 2, minimum: 1, priority: 5, asks: 1, enters: true},
		"the minimum of a gang of lower priority stays":        {a: 2, limit: 2, minimum: 2, priority: 5, asks: 1, created: true},
		"tasks of the same priority stay":                      {a: 2, limit: 2, minimum: 1, asks: 1, created: true},
		"tasks of lower priority at the limit above":           {a: 4, limit: 9, minimum: 1, priority: 5, asks: 1, created: true, enters: true},
		"fewer of them than the job asks for":                  {a: 2, limit: 2, minimum: 1, priority: 5, asks: 2, created: true},
		"tasks of both queues together make room at the limit": {a: 1, b: 3, limit: 9, priority: 5, asks: 2, created: true, enters: true},
	} {
		s := enginetest.Opened(t, engine.Entry{Plugin: fair.Plugin{}}, func(b *model.Builder) {
			b.Node(model.NodeSpec{Name: "n", Allocatable: enginetest.Cores(8)})
			b.Queue(model.QueueSpec{Name: "p", Weight: 1, Capability: enginetest.Cores(4), Reclaimable: true})
			b.Queue(model.QueueSpec{Name: "a", Parent: "p", Weight: 1, Capability: enginetest.Cores(c.limit), Reclaimable: true})
			b.Queue(model.QueueSpec{Name: "b", Parent: "p", Weight: 1, Reclaimable: true})
			for queue, n := range map[string]int{"a": c.a, "b": c.b} {
				if n == 0 {
					continue
				}
				b.Job(model.JobSpec{UID: queue, Queue: queue, Phase: model.PhaseRunning, MinAvailable: uint32(c.minimum)})
				b.Group(model.GroupSpec{Request: enginetest.Cores(1)})
				for k := range n {
					b.Task(&model.TaskSpec{UID: fmt.Sprint(queue, k), Status: model.Running, Node: 0, Index: -1, Preemptable: true})
				}
			}
			b.Job(model.JobSpec{
				UID: "waits", Queue: "a", Phase: model.PhasePending, Priority: c.priority, MinAvailable: uint32(c.asks), MinResources: enginetest.Cores(c.asks),
			})
			b.Group(model.GroupSpec{Request: enginetest.Cores(1)})
			for k := range c.asks {
				if c.created {
					b.Task(&model.TaskSpec{UID: fmt.Sprint("w", k), Node: model.None, Index: -1})
				}
			}
		})
		j, _ := s.View().Job("waits")
		require.Equal(t, c.enters, s.Job(j).Enqueue(nil), name)
	}
}
