package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/conformance"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/priority"
	"github.com/apportion/apportion/engine/policy/proportion"
)

func cores(n int) *model.Amounts {
	return &model.Amounts{Dimension: []uint32{0}, Amount: []float64{1000 * float64(n)}}
}

// opened builds a snapshot and opens a session on it.
func opened(t *testing.T, plugin engine.Entry, feed func(b *model.Builder)) *engine.Session {
	t.Helper()
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	feed(b)
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{Walk: engine.Volcano, Tiers: []engine.Tier{{{Plugin: gang.Plugin{}}, plugin}}}, nil)
	require.NoError(t, err)
	return s
}

func explained(t *testing.T, s *engine.Session, j model.JobID) *engine.Explanation {
	t.Helper()
	var found *engine.Explanation
	require.NoError(t, s.Explain([]model.JobID{j}, true, func(e *engine.Explanation) error {
		found = e
		return nil
	}))
	return found
}

// TestTasksThatNoNodeCouldTakeHaveNoPlan asks for a gang of which two kinds of tasks are larger than every node, where far too many tasks run
// to try every set of victims. The first has kinds enough that not every choice of tasks is tried.
func TestTasksThatNoNodeCouldTakeHaveNoPlan(t *testing.T) {
	for name, kinds := range map[string]int{"one choice": 2, "many choices": 12} {
		minimum := min(kinds, 4)
		s := opened(t, engine.Entry{Plugin: proportion.Plugin{}}, func(b *model.Builder) {
			for n := range 8 {
				b.Node(model.NodeSpec{Name: fmt.Sprint("n", n), Allocatable: cores(8)})
			}
			b.Queue(model.QueueSpec{Name: "rich", Weight: 1})
			b.Queue(model.QueueSpec{Name: "poor", Weight: 9})
			b.Job(model.JobSpec{UID: "runs", Queue: "rich", Phase: model.PhaseRunning, MinAvailable: 1})
			b.Group(model.GroupSpec{Request: cores(1)})
			for k := range 64 {
				b.Task(&model.TaskSpec{UID: fmt.Sprint("r", k), Status: model.Running, Node: model.NodeID(k / 8), Index: -1})
			}
			b.Job(model.JobSpec{UID: "waits", Queue: "poor", Phase: model.PhaseInqueue, MinAvailable: uint32(minimum)})
			for k := range kinds {
				b.Group(model.GroupSpec{Role: fmt.Sprint(k), Request: cores(9 + k)})
				b.Task(&model.TaskSpec{UID: fmt.Sprint("w", k), Node: model.None, Index: -1})
			}
		})
		for _, means := range []engine.Means{engine.PlaceOnly, engine.ByReclaim, engine.ByPreempt, engine.ByAny} {
			require.Equal(t, engine.NoPlan, ask(t, s, 1, means).Outcome, "%s, means %d", name, means)
		}
		e := explained(t, s, 1)
		require.Equal(t, engine.Blocked, e.Verdict, name)
	}
}

// TestNothingIsJudgedWithoutWhatNodesOffer explains a job on a cluster without nodes, and on one whose nodes state nothing.
func TestNothingIsJudgedWithoutWhatNodesOffer(t *testing.T) {
	for _, nodes := range []int{0, 2} {
		s := opened(t, engine.Entry{Plugin: proportion.Plugin{}}, func(b *model.Builder) {
			for n := range nodes {
				b.Node(model.NodeSpec{Name: fmt.Sprint("n", n)})
			}
			b.Queue(model.QueueSpec{Name: "q", Weight: 1})
			b.Job(model.JobSpec{UID: "waits", Queue: "q", Phase: model.PhaseInqueue, MinAvailable: 1})
			b.Group(model.GroupSpec{Request: cores(1)})
			b.Task(&model.TaskSpec{UID: "w", Node: model.None, Index: -1})
		})
		e := explained(t, s, 0)
		require.Equal(t, engine.Undetermined, e.Verdict)
		last := e.Findings[len(e.Findings)-1]
		require.Equal(t, policy.NothingOffered, last.Reasons[0].Code)
		require.InDelta(t, nodes, last.Reasons[0].Limit, 0)
		require.Equal(t, engine.PlanNotFound, ask(t, s, 0, engine.ByAny).Outcome)
		require.Equal(t, engine.PlanNotFound, ask(t, s, 0, engine.PlaceOnly).Outcome)
		found, err := s.Remedies(&engine.RemedyQuestion{Job: 0})
		require.NoError(t, err)
		require.Equal(t, engine.NotJudged, found.Outcome)
		require.Equal(t, engine.CheckNodes, found.Check)
	}
}

// TestWhatIsNotJudgedIsNotSaidToRun asks every question about a job that fits, but whose volumes are not judged.
func TestWhatIsNotJudgedIsNotSaidToRun(t *testing.T) {
	s := opened(t, engine.Entry{Plugin: proportion.Plugin{}}, func(b *model.Builder) {
		b.Node(model.NodeSpec{Name: "n", Allocatable: cores(4)})
		b.Queue(model.QueueSpec{Name: "q", Weight: 1})
		b.Job(model.JobSpec{UID: "waits", Queue: "q", Phase: model.PhaseInqueue, MinAvailable: 1})
		b.Group(model.GroupSpec{Request: cores(1), Unjudged: 2})
		b.Task(&model.TaskSpec{UID: "w", Node: model.None, Index: -1})
	})
	require.Equal(t, engine.Undetermined, explained(t, s, 0).Verdict)
	found, err := s.Remedies(&engine.RemedyQuestion{Job: 0})
	require.NoError(t, err)
	require.Equal(t, engine.NotJudged, found.Outcome)
	require.Equal(t, engine.CheckConstraints, found.Check)
	require.Equal(t, model.Constraints(2), found.Unjudged)
	for _, tasks := range [][]model.TaskID{nil, {0}} {
		plan, err := s.Plan(&engine.PlanQuestion{Job: 0, Tasks: tasks, Means: engine.PlaceOnly})
		require.NoError(t, err)
		require.Equal(t, model.Constraints(2), plan.Unjudged)
	}
}

// TestAJobThatIsBeingReleasedEndsAsOthersDo asks about a job that may not borrow as long as tasks that are being released count.
func TestAJobThatIsBeingReleasedEndsAsOthersDo(t *testing.T) {
	s := opened(t, engine.Entry{Plugin: fair.Plugin{}}, func(b *model.Builder) {
		b.Node(model.NodeSpec{Name: "n", Allocatable: cores(4)})
		b.Queue(model.QueueSpec{Name: "q", Weight: 1})
		b.Queue(model.QueueSpec{Name: "other", Weight: 3})
		b.Job(model.JobSpec{UID: "ends", Queue: "other", Phase: model.PhaseRunning, MinAvailable: 1, ExpectedEnd: 20})
		b.Group(model.GroupSpec{Request: cores(4)})
		b.Task(&model.TaskSpec{UID: "r", Status: model.Releasing, Node: 0, Index: -1})
		b.Job(model.JobSpec{UID: "waits", Queue: "q", Phase: model.PhaseInqueue, MinAvailable: 1})
		b.Group(model.GroupSpec{Request: cores(3)})
		b.Task(&model.TaskSpec{UID: "w", Node: model.None, Index: -1})
	})
	require.Equal(t, engine.Blocked, explained(t, s, 1).Verdict)
	forecast, err := s.Forecast(1)
	require.NoError(t, err)
	require.NotNil(t, forecast)
	require.Equal(t, engine.StartsAt, forecast.Outcome)
	require.Equal(t, []model.JobID{0}, forecast.Ends)
	found, err := s.Remedies(&engine.RemedyQuestion{Job: 1, Kinds: []engine.RemedyKind{engine.JobsEnd}})
	require.NoError(t, err)
	require.Equal(t, engine.RemedyFound, found.Outcome)
	require.Equal(t, 1, found.List[0].Ended)
	require.InDelta(t, 4000, found.List[0].Freed.V[0], 0)
}

// TestAJobOfAQueueThatIsNotServedIsPlacedOnlyByEviction asks for plans with policies under which a job without a gang may be about to evict.
func TestAJobOfAQueueThatIsNotServedIsPlacedOnlyByEviction(t *testing.T) {
	policies := planPolicies()
	policies["fair without gang"] = engine.Policy{Tiers: []engine.Tier{
		{{Plugin: priority.Plugin{}}}, {{Plugin: conformance.Plugin{}}, {Plugin: fair.Plugin{}}},
	}}
	evicting, roomy := 0, 0
	for i := range 4 * *planRuns {
		seed := *planSeed + uint64(i)
		for name, p := range policies {
			s, err := engine.Open(planCluster(t, seed, name == "tree"), p, nil)
			require.NoError(t, err)
			for _, j := range s.Waiting() {
				if !s.IsOverused(s.View().Jobs.At(j).Queue, nil) {
					continue
				}
				at := fmt.Sprint(name, " ", seed, " ", s.View().Jobs.At(j).UID)
				for _, means := range []engine.Means{engine.PlaceOnly, engine.ByReclaim, engine.ByPreempt, engine.ByAny} {
					switch plan := ask(t, s, j, means); {
					case plan.Outcome == engine.PlanMade:
						require.NotEmpty(t, plan.Victims, at)
						evicting++
					case plan.Miss.Check == engine.CheckQueue && means >= engine.ByPreempt && name == "fair without gang":
						require.Equal(t, engine.NoPlan, plan.Outcome, at)
						require.NotEmpty(t, plan.Miss.Reasons, at)
						roomy++
					}
				}
			}
		}
	}
	require.Positive(t, evicting)
	require.Positive(t, roomy)
}
