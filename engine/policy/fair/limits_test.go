package fair

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// TestAPlanDoesNotDependOnTheNamesOfResources: queue p is at its limits of two resources, GPUs and NICs. Its child x holds more NICs than it
// is entitled to, in tasks that must not be evicted; greedy holds more GPUs, in a task that has a NIC too. This task mends both limits,
// whichever comes first by name.
func TestAPlanDoesNotDependOnTheNamesOfResources(t *testing.T) {
	for name, nics := range map[string]int{"the limit that no task mends by itself comes first": 0, "and last": 1} {
		t.Run(name, func(t *testing.T) {
			row := func(gpus, nic int64) []int64 {
				out := make([]int64, 2)
				out[1-nics], out[nics] = gpus, nic
				return out
			}
			running := func(fixed bool) task { return task{status: model.Running, node: model.None, fixed: fixed} }
			c := &cluster{
				width: 2, total: []int64{20, 20}, plugin: Plugin{Quanta: []Quantum{{"r0", 1}, {"r1", 1}}},
				queues: []queue{
					{name: "p", weight: 1, capability: row(8, 3)},
					{name: "x", parent: "p", weight: 1},
					{name: "greedy", parent: "p", weight: 1},
					{name: "late", parent: "p", weight: 1},
				},
				jobs: []job{
					{queue: "x", request: row(0, 1), tasks: []task{running(true), running(true)}},
					{queue: "greedy", request: row(4, 1), tasks: []task{running(false)}},
					{queue: "greedy", request: row(4, 0), tasks: []task{running(false)}},
					{queue: "late", request: row(4, 1), tasks: []task{{node: model.None}}},
				},
			}
			s := c.open(t)
			var g policy.Grounds
			plan := s.Plan(s.claimOfLast(), &g)
			require.True(t, plan.Made, "%+v", g.Spared.List)
			require.Equal(t, []model.TaskID{2}, plan.Victims)
		})
	}
}
