package cycle_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/kueue"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// TestKueueReclaimsWhatIsBorrowed has two queues with a quota of 4 cpu each. Workload x of queue b runs and borrows; w and v of queue a
// want 3 and 2, and y of queue b 2: w evicts x, and the others have room. x is set aside until w and v have ended.
func TestKueueReclaimsWhatIsBorrowed(t *testing.T) {
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	b.Node(model.NodeSpec{Name: "n", Allocatable: enginetest.Cores(8)})
	k := &cycle.Kueue{Cluster: &kueue.Cluster{Flavors: []kueue.Flavor{{Name: "f"}}}, Settings: kueue.Default()}
	for _, name := range []string{"a", "b"} {
		b.Queue(model.QueueSpec{Name: name, Weight: 1})
		k.Cluster.Queues = append(k.Cluster.Queues, kueue.Queue{
			Name: name, Cohort: "root", Weight: 1, Preemption: kueue.Preemption{Reclaim: kueue.Any, Within: kueue.LowerPriority},
			Groups: []kueue.Group{{Covered: []string{"cpu"}, Flavors: []kueue.FlavorQuota{{
				Flavor: "f", Resources: []kueue.Quota{{Resource: "cpu", Nominal: 4000}},
			}}}},
		})
	}
	for i, job := range []struct {
		uid, queue string
		cpu        int
	}{{"x", "b", 6}, {"w", "a", 3}, {"v", "a", 2}, {"y", "b", 2}} {
		b.Job(model.JobSpec{UID: job.uid, Queue: job.queue, CreateTime: int64(i)})
		b.Group(model.GroupSpec{Request: enginetest.Cores(job.cpu)})
		b.Task(&model.TaskSpec{UID: job.uid, Node: model.None})
		w := &cycle.Workload{Job: model.JobID(i), Workload: kueue.Workload{
			Name: job.uid, UID: job.uid, Queue: job.queue, Created: int64(i),
			PodSets: []kueue.PodSet{{Count: 1, Requests: []kueue.Request{{Resource: "cpu", Amount: kueue.Amount(1000 * job.cpu)}}}},
		}}
		k.Workloads = append(k.Workloads, w)
	}
	x := k.Workloads[0]
	x.Reserved = new(int64)
	x.Admission = &kueue.Admission{Queue: "b", PodSets: []kueue.AdmittedPodSet{{
		Usage: []kueue.FlavoredUsage{{Resource: "cpu", Flavor: "f", Amount: 6000, Used: true}},
	}}}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{}, nil)
	require.NoError(t, err)
	var told []string
	state := &cycle.State{Session: s, Told: func(d *cycle.Decision) {
		line := fmt.Sprint(d.Action, " ", m.Jobs.At(d.Job).UID)
		for _, v := range d.Victims {
			require.NotNil(t, k.Workloads[v.Task].Admission, "victims still have their admissions")
			line += " evicts " + m.TaskUID(v.Task)
		}
		told = append(told, line)
	}}
	require.NoError(t, k.Run(state))
	require.Equal(t, []string{"reclaim w evicts x", "allocate y", "allocate w", "allocate v"}, told)
	require.True(t, k.Changed)

	require.NoError(t, k.Run(state))
	require.Len(t, told, 4, "nothing has ended")
	require.True(t, x.Parked)

	k.Workloads, k.Changed = append(k.Workloads[:1:1], k.Workloads[3]), true
	state.Told = func(d *cycle.Decision) { told = append(told, fmt.Sprint(d.Action, " ", m.Jobs.At(d.Job).UID)) }
	require.NoError(t, k.Run(state))
	require.Equal(t, "allocate x", told[4])
}
