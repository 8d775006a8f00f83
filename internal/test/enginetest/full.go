package enginetest

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
)

// FullCluster has 5,000 nodes of 40 cores and 8 GPUs, all full with 20 tasks each, 100 queues, of which one has little and waits with a
// gang of 64 tasks of 8 cores and 4 GPUs, and 10,000 jobs.
func FullCluster(t require.TestingT) (*model.Model, model.JobID) {
	const nodes, queues, jobs, each = 5_000, 100, 10_000, 10
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "gpu"})
	for n := range nodes {
		b.Node(model.NodeSpec{Name: fmt.Sprintf("n%04d", n), Allocatable: Amounts(40, 8)})
	}
	for q := range queues {
		spec := model.QueueSpec{Name: fmt.Sprintf("q%02d", q), Weight: 1, Reclaimable: true, Deserved: Amounts(1700, 300)}
		if q == 0 {
			spec.Weight, spec.Deserved = 4, Amounts(8000, 1600)
		}
		b.Queue(spec)
	}
	next := 0
	for j := range jobs {
		b.Job(model.JobSpec{
			UID: fmt.Sprintf("job-%05d", j), Queue: fmt.Sprintf("q%02d", 1+j*j%(queues-1)), Priority: int32(j % 3),
			MinAvailable: uint32(1 + j%8), Phase: model.PhaseRunning, CreateTime: int64(j % 977), ExpectedEnd: int64(1_000 + j*37%jobs),
		})
		b.Group(model.GroupSpec{Request: &model.Amounts{Dimension: []uint32{0, 1}, Amount: []float64{2000, 400}}})
		for k := range each {
			b.Task(&model.TaskSpec{
				UID: fmt.Sprintf("job-%05d-%d", j, k), Status: model.Running, Node: model.NodeID((next * 7) % nodes), Index: int32(k),
				Preemptable: true, CreateTime: int64(next % 991),
			})
			next++
		}
	}
	b.Job(model.JobSpec{UID: "gang", Queue: "q00", Priority: 2, MinAvailable: 64, Phase: model.PhaseInqueue})
	b.Group(model.GroupSpec{Request: Amounts(8, 2)})
	for k := range 64 {
		b.Task(&model.TaskSpec{UID: fmt.Sprintf("gang-%02d", k), Node: model.None, Index: int32(k)})
	}
	m, err := b.Build()
	require.NoError(t, err)
	j, _ := m.Job("gang")
	return m, j
}
