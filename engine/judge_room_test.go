package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/overcommit"
	"github.com/apportion/apportion/engine/policy/proportion"
)

// crowd is a session on a few nodes with two queues, and jobs of which some run and some wait with tasks of several kinds.
func crowd(t *rapid.T, plugins ...Entry) *Session {
	amounts := func(cpu, gpu int) *model.Amounts {
		return &model.Amounts{Dimension: []uint32{0, 1}, Amount: []float64{float64(1000 * cpu), float64(1000 * gpu)}}
	}
	small := rapid.IntRange(0, 3)
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "gpu"})
	nodes := rapid.IntRange(1, 6).Draw(t, "nodes")
	var set []uint32
	for n := range nodes {
		spec := model.NodeSpec{Name: fmt.Sprint("n", n), Allocatable: amounts(rapid.IntRange(1, 9).Draw(t, "cpu"), small.Draw(t, "gpu"))}
		if small.Draw(t, "cordoned") == 3 {
			spec.Unschedulable = &model.Unschedulable{}
		}
		b.Node(spec)
		if rapid.Bool().Draw(t, "in the set") {
			set = append(set, uint32(n))
		}
	}
	b.NodeSet(model.NodeSetSpec{Name: "set", Nodes: set})
	for q := range 2 {
		b.Queue(model.QueueSpec{Name: fmt.Sprint("q", q), Weight: uint32(1 + small.Draw(t, "weight"))})
	}
	for j := range rapid.IntRange(1, 7).Draw(t, "jobs") {
		b.Job(model.JobSpec{
			UID: fmt.Sprint("j", j), Queue: fmt.Sprint("q", small.Draw(t, "queue")%2), Priority: int32(small.Draw(t, "priority")),
			Phase: model.Phase(rapid.IntRange(0, 2).Draw(t, "phase")), MinAvailable: uint32(small.Draw(t, "minimum")),
		})
		for g := range rapid.IntRange(1, 2).Draw(t, "groups") {
			spec := model.GroupSpec{Role: fmt.Sprint(g), Request: amounts(small.Draw(t, "cpu asked"), small.Draw(t, "gpu asked")/2)}
			if small.Draw(t, "restricted") == 3 {
				spec.NodeSet = "set"
			}
			b.Group(spec)
			for k := range rapid.IntRange(0, 3).Draw(t, "tasks") {
				task := model.TaskSpec{UID: fmt.Sprint(j, "-", g, "-", k), Node: model.None, Index: -1}
				if small.Draw(t, "runs") == 3 {
					task.Node, task.Status = model.NodeID(rapid.IntRange(0, nodes-1).Draw(t, "node")), model.Running
				}
				b.Task(&task)
			}
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := Open(m, Policy{Walk: Volcano, Tiers: []Tier{plugins}}, nil)
	require.NoError(t, err)
	return s
}

// TestTasksArePlacedFromTheIndexAsBySearchingAllNodes places tasks before and after others have been booked.
func TestTasksArePlacedFromTheIndexAsBySearchingAllNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := crowd(t)
		nodes := s.view.NodeOrder
		free, err := newFreeNodes(s.Host(), nodes, s.view.Idle)
		require.NoError(t, err)
		var pending []model.TaskID
		for i := range s.view.Tasks.Len() {
			if task := model.TaskID(i); s.view.Status(task) == model.Pending {
				pending = append(pending, task)
			}
		}
		require.ErrorIs(t, s.Try(func() error {
			var booked []model.NodeID
			for len(pending) > 0 {
				n := rapid.IntRange(1, len(pending)).Draw(t, "together")
				tasks := pending[:n]
				pending = pending[n:]
				want, err := s.PlaceTasks(tasks, nodes)
				require.NoError(t, err)
				got, known, err := free.place(tasks, booked)
				require.NoError(t, err)
				if known {
					require.Equal(t, want, got)
				}
				if want.Outcome != Placed {
					continue
				}
				for i, task := range tasks {
					s.Host().Book(task, model.Allocated, want.Nodes[i])
				}
				booked = append(booked, want.Nodes...)
			}
			return errUndone
		}), errUndone)
	})
}

// TestJobsAreExplainedTogetherAsEachAlone compares what one explainer remembers of several jobs with what one for each job finds.
func TestJobsAreExplainedTogetherAsEachAlone(t *testing.T) {
	for name, plugins := range map[string][]Entry{
		"proportion": {{Plugin: gang.Plugin{}}, {Plugin: overcommit.Default()}, {Plugin: proportion.Plugin{}}},
		"fair":       {{Plugin: gang.Plugin{}}, {Plugin: fair.Plugin{}}},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := crowd(t, plugins...)
				brief := rapid.Bool().Draw(t, "brief")
				explained := func(jobs []model.JobID) (list []*Explanation) {
					x := newExplainer(s.Host())
					x.Brief = brief
					require.NoError(t, x.each(jobs, false, func(e *Explanation) error {
						list = append(list, e)
						return nil
					}))
					return list
				}
				waiting := s.Waiting()
				var alone []*Explanation
				for _, j := range waiting {
					alone = append(alone, explained([]model.JobID{j})...)
				}
				require.Equal(t, alone, explained(waiting))
			})
		})
	}
}
