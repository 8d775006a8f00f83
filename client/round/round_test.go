package round_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/client/round"
	"github.com/apportion/apportion/engine/cycle"
)

// TestEachPlanCountsForTheNext has a node of 4 CPUs, two queues of equal weight, and two jobs of each that ask for 2.
func TestEachPlanCountsForTheNext(t *testing.T) {
	decide := client.InProcess()
	policy, ok := client.Preset("fair")
	require.True(t, ok)
	mirror := client.NewMirror(decide)
	require.NoError(t, mirror.SetNode(client.Node{Name: "n", Allocatable: client.Resources{"cpu": "4"}}))
	var jobs []*round.Job
	for _, queue := range []string{"a", "b"} {
		require.NoError(t, mirror.SetQueue(client.Queue{Name: queue, Weight: 1}))
		for _, name := range []string{queue + "0", queue + "1"} {
			group := client.Group{Request: client.Resources{"cpu": "1"}}
			for _, task := range []string{name + "/0", name + "/1"} {
				group.Tasks = append(group.Tasks, client.Task{UID: task, Name: task})
			}
			job := client.Job{UID: name, Name: name, Queue: queue, MinAvailable: 2, Groups: []client.Group{group}}
			require.NoError(t, mirror.SetJob(job))
			jobs = append(jobs, &round.Job{UID: name, Queue: queue, Least: 2, Pending: 2})
		}
	}
	var admitted, planned []string
	told := round.Told{
		Admitted: func(jobs []string) { admitted = append(admitted, jobs...) },
		Planned: func(p *round.Plan) {
			require.Len(t, p.Placements, 2)
			require.Empty(t, p.Victims)
			require.NotEmpty(t, p.Sentence)
			planned = append(planned, p.Job)
		},
	}
	in := client.Input{State: mirror.State(), Policy: policy}
	require.NoError(t, round.Decide(t.Context(), decide, in, jobs, told, cycle.All()...))
	require.Equal(t, []string{"a0", "b0"}, planned, "each queue has its half")
	require.Subset(t, []string{"a0", "a1", "b0", "b1"}, admitted)
	require.NotEmpty(t, admitted)
}

// TestAJobThatHasItsMinimumStandsBehindThoseThatLackIt has a job of three tasks that needs one, and a younger one of the same queue: once
// the first runs, the policy puts the other one first.
func TestAJobThatHasItsMinimumStandsBehindThoseThatLackIt(t *testing.T) {
	decide := client.InProcess()
	policy, ok := client.Preset("proportion")
	require.True(t, ok)
	mirror := client.NewMirror(decide)
	require.NoError(t, mirror.SetNode(client.Node{Name: "n", Allocatable: client.Resources{"cpu": "3"}}))
	require.NoError(t, mirror.SetQueue(client.Queue{Name: "a", Weight: 1}))
	var jobs []*round.Job
	for i, name := range []string{"wide", "late"} {
		group := client.Group{Request: client.Resources{"cpu": "1"}}
		for task := range 3 - 2*i {
			uid := fmt.Sprint(name, task)
			group.Tasks = append(group.Tasks, client.Task{UID: uid, Name: uid})
		}
		require.NoError(t, mirror.SetJob(client.Job{
			UID: name, Name: name, Queue: "a", MinAvailable: 1, Created: time.Unix(int64(i), 0), Groups: []client.Group{group},
		}))
		jobs = append(jobs, &round.Job{UID: name, Queue: "a", Shape: name, Least: 1, Pending: len(group.Tasks)})
	}
	var planned []string
	told := round.Told{Planned: func(p *round.Plan) { planned = append(planned, p.Job) }}
	in := client.Input{State: mirror.State(), Policy: policy}
	require.NoError(t, round.Decide(t.Context(), decide, in, jobs, told, cycle.All()...))
	require.Equal(t, []string{"wide", "late", "wide"}, planned)
}
