package volcano_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/cycle/volcano"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/priority"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// cluster has a node of 4 CPUs, full of the tasks of job low in queue a, which deserves 1; high waits in the same queue, and wide, a gang
// of three, in queue b, which deserves 3.
func cluster(t *testing.T, actions ...string) *engine.Session {
	t.Helper()
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	b.Node(model.NodeSpec{Name: "n", Allocatable: enginetest.Cores(4)})
	b.Queue(model.QueueSpec{Name: "a", Weight: 1, Reclaimable: true, Deserved: enginetest.Cores(1)})
	b.Queue(model.QueueSpec{Name: "b", Weight: 1, Reclaimable: true, Deserved: enginetest.Cores(3)})
	job := func(uid, queue string, rank int32, minimum uint32, status model.Status, count int) {
		phase := model.PhaseInqueue
		node := model.NodeID(model.None)
		if status == model.Running {
			phase, node = model.PhaseRunning, 0
		}
		b.Job(model.JobSpec{UID: uid, Queue: queue, Priority: rank, Phase: phase, MinAvailable: minimum})
		b.Group(model.GroupSpec{Request: enginetest.Cores(1)})
		for i := range count {
			b.Task(&model.TaskSpec{UID: fmt.Sprint(uid, i), Status: status, Node: node, Priority: rank, Preemptable: true})
		}
	}
	job("low", "a", 1, 1, model.Running, 4)
	job("high", "a", 9, 1, model.Pending, 1)
	job("wide", "b", 1, 3, model.Pending, 3)
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{Walk: engine.Volcano, Actions: actions, Tiers: []engine.Tier{
		{{Plugin: priority.Plugin{}}, {Plugin: gang.Plugin{}}}, {{Plugin: capacity.Plugin{}}},
	}}, nil)
	require.NoError(t, err)
	return s
}

func TestActionsDoWhatTheyAreFor(t *testing.T) {
	for _, c := range []struct {
		actions []string
		told    []string
	}{
		{[]string{"enqueue", "allocate", "backfill"}, nil},
		{[]string{"allocate", "preempt"}, []string{"preempt high: low0 leave, high0 wait"}},
		{[]string{"allocate", "reclaim"}, []string{"reclaim wide: low0 low1 low2 leave, wide0 wide1 wide2 wait"}},
		{[]string{"allocate", "gangreclaim"}, []string{"gangreclaim wide: low0 low1 low2 leave, wide0 wide1 wide2 wait"}},
	} {
		s := cluster(t, c.actions...)
		run := volcano.Cycle{}
		for _, a := range c.actions {
			run.Actions = append(run.Actions, cycle.Action(a))
		}
		var told []string
		m := s.View().Model
		state := &cycle.State{Session: s, Told: func(d *cycle.Decision) {
			line := fmt.Sprint(d.Action, " ", m.Jobs.At(d.Job).UID, ": ")
			for _, v := range d.Victims {
				line += m.TaskUID(v.Task) + " "
			}
			line += "leave, "
			for _, p := range d.Promised {
				line += m.TaskUID(p) + " "
			}
			told = append(told, line+"wait")
		}}
		require.NoError(t, run.Run(state))
		require.Equal(t, sorted(c.told), sorted(told), c.actions)
	}
}

// sorted drops the numbers of victims, which are equal but for their names.
func sorted(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.NewReplacer("low0", "low", "low1", "low", "low2", "low", "low3", "low").Replace(line)
	}
	return out
}

func TestAPlanIsWhatTheNextCyclesDoAndLeavesTheSessionAsItWas(t *testing.T) {
	for actions, victims := range map[string]int{"allocate": 0, "allocate preempt": 0, "allocate reclaim": 3} {
		s := cluster(t, strings.Fields(actions)...)
		p, err := volcano.Plan(s.Host(), &plan.Question{Job: 2, Means: plan.ByAny})
		require.NoError(t, err)
		require.Len(t, p.Victims, victims, actions)
		require.Equal(t, victims > 0, p.Outcome == plan.Made, actions)
		for task := range model.TaskID(s.View().Tasks.Len()) {
			require.Equal(t, s.View().Tasks.At(task).Status, s.View().Status(task))
		}
	}
}

func TestACycleEndsWhenItIsStopped(t *testing.T) {
	s := cluster(t, "allocate", "reclaim")
	s.View().Work = policy.NewWork(1)
	err := (&volcano.Cycle{Actions: []cycle.Action{cycle.Allocate, cycle.Reclaim}}).Run(&cycle.State{Session: s})
	var exceeded *policy.WorkError
	require.ErrorAs(t, err, &exceeded)
}
