package audit

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// crowd draws a small cluster with nodes that hold one to four of some tasks.
func crowd(t *rapid.T) *apportionv1.Snapshot {
	amount := func(most int, name string) *apportionv1.Resource {
		return &apportionv1.Resource{Dimensions: []uint32{0, 1}, Amounts: []float64{
			float64(rapid.IntRange(1, most).Draw(t, name+" cpu") * 500), float64(rapid.IntRange(1, most).Draw(t, name+" memory")) * (1 << 30),
		}}
	}
	s := &apportionv1.Snapshot{
		Dimensions: []string{"cpu", "memory"}, Queues: []*apportionv1.Queue{{Name: "a"}, {Name: "b"}},
		NodeSets: []*apportionv1.NodeSet{{Name: "first", Nodes: []uint32{0}}},
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
		s.Nodes = append(s.Nodes, &apportionv1.Node{Name: fmt.Sprint("n", i), Allocatable: amount(4, "node")})
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "jobs") {
		job := &apportionv1.Job{Name: fmt.Sprint("j", i), Namespace: "ml", Queue: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")}
		for k := range rapid.IntRange(1, 2).Draw(t, "groups") {
			g := &apportionv1.TaskGroup{
				Role: fmt.Sprint("r", k), Request: amount(3, "task"), NodeSet: rapid.SampledFrom([]string{"", "", "first"}).Draw(t, "set"),
			}
			for n := range rapid.IntRange(0, 3).Draw(t, "tasks") {
				task := &apportionv1.Task{Name: fmt.Sprint(job.GetName(), "-", k, "-", n)}
				if rapid.IntRange(0, 3).Draw(t, "own request") == 0 {
					task.Detail = &apportionv1.TaskDetail{Request: amount(3, "own")}
				}
				g.Tasks = append(g.Tasks, task)
			}
			if n := rapid.Uint32Range(0, 2).Draw(t, "counted"); n > 0 {
				g.Counts = []*apportionv1.TaskCount{{Count: n}}
			}
			job.MinAvailable += uint32(len(g.GetTasks()))
			job.Groups = append(job.Groups, g)
		}
		s.Jobs = append(s.Jobs, job)
	}
	return s
}

// TestJobsWithPlainRoomAreNotAskedAbout compares the findings about jobs whose room is not plain with those about all jobs.
func TestJobsWithPlainRoomAreNotAskedAbout(t *testing.T) {
	decider, skipped, told := client.InProcess(), 0, 0
	rapid.Check(t, func(t *rapid.T) {
		policy, ok := client.Preset(rapid.SampledFrom([]string{"proportion", "capacity", "fair"}).Draw(t, "policy"))
		require.True(t, ok)
		in := client.Input{Snapshot: crowd(t), Policy: policy}
		findings := func(asked func(*checker) []uint32) []Finding {
			a, err := begin(t.Context(), decider, in, Limits{})
			require.NoError(t, err)
			c := &checker{auditor: a, accounts: map[string]*apportionv1.QueueShare{}, noNode: map[string]bool{}}
			require.NoError(t, c.gangs(t.Context(), decider, in, asked(c)))
			told += len(c.found)
			return c.found
		}
		var all []uint32
		for i := range emptied(in.Snapshot).GetJobs() {
			all = append(all, uint32(i))
		}
		plain := findings(func(*checker) []uint32 { return all })
		require.Equal(t, plain, findings(func(c *checker) []uint32 {
			crowding := c.crowding(in)
			skipped += len(all) - len(crowding)
			return crowding
		}))
	})
	require.Positive(t, skipped)
	require.Positive(t, told)
}
