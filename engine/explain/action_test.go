package explain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/explain"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/overcommit"
	"github.com/apportion/apportion/engine/policy/priority"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// acting opens a session with some actions on 8 cores, of which queues a and c deserve half each and b nothing: job low of queue a runs on 4,
// job wide of queue b on the others, job high of queue a waits for 4, job more of queue c for 4 outside its queue, and job light for none.
func acting(t *testing.T, actions ...string) func(uid string) *explain.Explanation {
	t.Helper()
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	for _, name := range []string{"n1", "n2"} {
		b.Node(model.NodeSpec{Name: name, Allocatable: enginetest.Cores(4)})
	}
	for name, cores := range map[string]int{"a": 4, "b": 0, "c": 4} {
		b.Queue(model.QueueSpec{Name: name, Weight: 1, Reclaimable: true, Deserved: enginetest.Cores(cores)})
	}
	job := func(uid, queue string, rank int32, phase model.Phase, status model.Status, node model.NodeID, cores int) {
		b.Job(model.JobSpec{UID: uid, Queue: queue, Priority: rank, Phase: phase, MinAvailable: 1, MinResources: enginetest.Cores(cores)})
		group := model.GroupSpec{}
		if cores > 0 {
			group.Request = enginetest.Cores(cores)
		}
		b.Group(group)
		b.Task(&model.TaskSpec{UID: uid, Status: status, Node: node, Priority: rank, Preemptable: true})
	}
	job("low", "a", 1, model.PhaseRunning, model.Running, 0, 4)
	job("wide", "b", 1, model.PhaseRunning, model.Running, 1, 4)
	job("high", "a", 9, model.PhaseInqueue, model.Pending, model.None, 4)
	job("more", "c", 9, model.PhasePending, model.Pending, model.None, 4)
	job("light", "c", 9, model.PhaseInqueue, model.Pending, model.None, 0)
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{Walk: engine.Volcano, Actions: actions, Tiers: []engine.Tier{
		{{Plugin: priority.Plugin{}}, {Plugin: gang.Plugin{}, Disabled: engine.DecisionsOf(engine.Preemptable, engine.Reclaimable)}},
		{{Plugin: capacity.Plugin{}}, {Plugin: overcommit.Plugin{Factor: 1}}},
	}}, nil)
	require.NoError(t, err)
	return func(uid string) (found *explain.Explanation) {
		for j := range model.JobID(m.Jobs.Len()) {
			if m.Jobs.At(j).UID == uid {
				require.NoError(t, explain.Jobs(s, []model.JobID{j}, true, func(e *explain.Explanation) error {
					found = e
					return nil
				}))
			}
		}
		return found
	}
}

// findingOf returns the finding of a check, and the actions that its reasons miss.
func findingOf(t *testing.T, e *explain.Explanation, check judge.CheckKind) (judge.Finding, []string) {
	t.Helper()
	for _, f := range e.Findings {
		if f.Check != check {
			continue
		}
		var missing []string
		for _, r := range f.Reasons {
			if r.Code == policy.NoAction {
				missing = append(missing, r.Detail)
			}
		}
		return f, missing
	}
	require.Fail(t, "the check was not made")
	return judge.Finding{}, nil
}

func TestNobodyIsEvictedWithoutTheActionThatEvicts(t *testing.T) {
	for name, c := range map[string]struct {
		actions []string
		job     string
		victims int
		missing []string
	}{
		"all, of its own queue":    {nil, "high", 1, nil},
		"preempt alone":            {[]string{"enqueue", "allocate", "preempt"}, "high", 1, nil},
		"neither":                  {[]string{"enqueue", "allocate", "backfill"}, "high", 0, []string{"reclaim", "preempt"}},
		"reclaim does not do it":   {[]string{"enqueue", "allocate", "reclaim"}, "high", 0, []string{"preempt"}},
		"reclaim alone":            {[]string{"allocate", "reclaim"}, "more", 1, nil},
		"preempt does not do it":   {[]string{"allocate", "preempt"}, "more", 0, []string{"reclaim"}},
		"the whole gang at a time": {[]string{"allocate", "gangreclaim"}, "more", 1, nil},
		// Volcano evicts for it in each session, and no action ever binds it.
		"placing is what is missing": {[]string{"enqueue", "preempt", "reclaim"}, "high", 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			explained := acting(t, c.actions...)
			e := explained(c.job)
			f, missing := findingOf(t, e, judge.CheckEviction)
			require.Len(t, f.Tasks, c.victims)
			require.Equal(t, c.missing, missing)
			require.Equal(t, c.victims > 0, e.Plan.Outcome == plan.Made)
		})
	}
}

func TestJobsEnterUnaskedWithoutTheActionEnqueue(t *testing.T) {
	for _, actions := range [][]string{nil, {"enqueue", "allocate"}} {
		explained := acting(t, actions...)
		f, _ := findingOf(t, explained("more"), judge.CheckAdmission)
		require.Equal(t, judge.Failed, f.Outcome)
	}
	explained := acting(t, "allocate")
	f, missing := findingOf(t, explained("more"), judge.CheckAdmission)
	require.Equal(t, judge.Passed, f.Outcome)
	require.Equal(t, []string{"enqueue"}, missing)
}

func TestTasksStartByTheActionForThem(t *testing.T) {
	for action, waits := range map[string]string{"allocate": "light", "backfill": "high"} {
		explained := acting(t, "enqueue", action)
		f, missing := findingOf(t, explained(waits), judge.CheckQueue)
		require.Equal(t, judge.Failed, f.Outcome)
		require.Len(t, missing, 1)
		require.NotEqual(t, action, missing[0])
	}
	explained := acting(t, "enqueue", "backfill")
	require.Equal(t, explain.InTurn, explained("light").Verdict)
}
