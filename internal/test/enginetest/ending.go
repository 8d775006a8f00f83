package enginetest

import (
	"fmt"
	"math/rand/v2"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
)

// EndingCluster is a cluster of small jobs that fill its nodes, run in several queues and end at a few times, some of them unknown or
// past, while others wait. Jobs of which gone holds are left out.
func EndingCluster(t require.TestingT, seed uint64, gone func(uid string) bool) *model.Model {
	d := Dice{Rand: rand.New(rand.NewPCG(seed, 23))}
	b := model.NewBuilder(1_000)
	b.Dimensions([]string{"cpu", "gpu"})
	cpu, gpu := make([]int, d.Between(1, 4)), make([]int, 4)
	for n := range cpu {
		cpu[n], gpu[n] = d.Between(3, 8), d.Between(0, 4)
		b.Node(model.NodeSpec{Name: fmt.Sprintf("n%d", n), Allocatable: Amounts(cpu[n], gpu[n])})
	}
	queues := d.Queues(b, false, len(cpu))
	for j := range d.Between(6, 20) {
		waits := j%4 == 3
		spec := model.JobSpec{
			UID: fmt.Sprintf("j%02d", j), Queue: queues[d.IntN(len(queues))], Priority: int32(d.IntN(3)),
			MinAvailable: uint32(d.Between(1, 2)), Phase: model.PhaseInqueue, CreateTime: int64(d.IntN(5)),
		}
		if d.Chance(80) {
			spec.ExpectedEnd, spec.EndIsDeadline = int64(d.Between(900, 1_100)), d.Chance(30)
		}
		if waits && d.Chance(30) {
			spec.Phase, spec.MinResources = model.PhasePending, Amounts(d.Between(1, 4), 0)
		}
		request, tasks := Amounts(d.Between(1, 3), d.IntN(2)), d.Between(1, 2)
		if waits && spec.Phase == model.PhasePending && d.Chance(30) {
			tasks = 0
		}
		left := gone(spec.UID)
		if !left {
			b.Job(spec)
			b.Group(model.GroupSpec{Request: request})
		}
		for k := range tasks {
			task := model.TaskSpec{UID: fmt.Sprintf("%s-%d", spec.UID, k), Node: model.None, Index: -1, Preemptable: true}
			c, g := int(request.Amount[0]/1000), int(request.Amount[1]/1000)
			if n := d.IntN(len(cpu)); !waits && cpu[n] >= c && gpu[n] >= g {
				cpu[n] -= c
				gpu[n] -= g
				task.Status, task.Node = model.Running, model.NodeID(n)
			}
			if !left {
				b.Task(&task)
			}
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	return m
}
