package explain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/explain"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/overcommit"
	"github.com/apportion/apportion/engine/policy/policytest"
	"github.com/apportion/apportion/engine/policy/undecided"
)

func TestWhatAPluginMayDecideThatIsNotModelledIsNotKnown(t *testing.T) {
	cpus := func(n float64) *model.Amounts {
		return policytest.Sparse([]string{"cpu"}, policytest.Amounts{"cpu": n * 1000})
	}
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	b.Node(model.NodeSpec{Name: "n", Allocatable: cpus(4)})
	b.Queue(model.QueueSpec{Name: "q"})
	for uid, n := range map[string]float64{"small": 2, "large": 9} {
		b.Job(model.JobSpec{UID: uid, Queue: "q", MinAvailable: 1, MinResources: cpus(n)})
		b.Group(model.GroupSpec{Request: cpus(n)})
		b.Task(&model.TaskSpec{UID: uid + "-0", Node: model.None})
	}
	m, err := b.Build()
	require.NoError(t, err)
	explained := func(job string, votes ...engine.Decision) *explain.Explanation {
		plugin := undecided.Plugin{Called: "extender", VotesOn: uint32(engine.DecisionsOf(votes...))}
		s, err := engine.Open(m, engine.Policy{Tiers: []engine.Tier{{{Plugin: overcommit.Default()}, {Plugin: plugin}}}}, nil)
		require.NoError(t, err)
		j, ok := s.View().Job(job)
		require.True(t, ok)
		var got *explain.Explanation
		require.NoError(t, explain.Jobs(s, []model.JobID{j}, false, func(e *explain.Explanation) error {
			got = e
			return nil
		}))
		return got
	}
	outcome := func(e *explain.Explanation, check judge.CheckKind) judge.Outcome {
		for i := range e.Findings {
			if f := &e.Findings[i]; f.Check == check {
				if f.Outcome == judge.NotKnown {
					require.Equal(t, policy.PluginNotModelled, f.Reasons[0].Code)
				}
				return f.Outcome
			}
		}
		return 0
	}
	for _, job := range []string{"small", "large"} {
		require.Equal(t, judge.NotKnown, outcome(explained(job, engine.JobEnqueued), judge.CheckAdmission), "%s: its vote lets in or keeps out", job)
	}
	require.Equal(t, judge.Passed, outcome(explained("small", engine.NodeOrder), judge.CheckNodes), "scores hold nothing back")
	require.Equal(t, judge.NotKnown, outcome(explained("small", engine.Predicate), judge.CheckNodes))
	require.Equal(t, judge.Failed, outcome(explained("large", engine.Predicate), judge.CheckNodes), "it can only refuse more nodes")
	require.Equal(t, explain.InTurn, explained("small").Verdict)
	require.Equal(t, explain.Undetermined, explained("small", engine.Predicate).Verdict)
}
