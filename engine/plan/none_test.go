package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/explain"
	"github.com/apportion/apportion/engine/forecast"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/conformance"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/engine/policy/priority"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/engine/remedy"
	"github.com/apportion/apportion/internal/test/enginetest"
)

func explained(t *testing.T, s *engine.Session, j model.JobID) *explain.Explanation {
	t.Helper()
	var found *explain.Explanation
	require.NoError(t, explain.Jobs(s, []model.JobID{j}, true, func(e *explain.Explanation) error {
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
		s := enginetest.Opened(t, engine.Entry{Plugin: proportion.Plugin{}}, func(b *model.Builder) {
			for n := range 8 {
				b.Node(model.NodeSpec{Name: fmt.Sprint("n", n), Allocatable: enginetest.Cores(8)})
			}
			b.Queue(model.QueueSpec{Name: "rich", Weight: 1})
			b.Queue(model.QueueSpec{Name: "poor", Weight: 9})
			b.Job(model.JobSpec{UID: "runs", Queue: "rich", Phase: model.PhaseRunning, MinAvailable: 1})
			b.Group(model.GroupSpec{Request: enginetest.Cores(1)})
			for k := range 64 {
				b.Task(&model.TaskSpec{UID: fmt.Sprint("r", k), Status: model.Running, Node: model.NodeID(k / 8), Index: -1})
			}
			b.Job(model.JobSpec{UID: "waits", Queue: "poor", Phase: model.PhaseInqueue, MinAvailable: uint32(minimum)})
			for k := range kinds {
				b.Group(model.GroupSpec{Role: fmt.Sprint(k), Request: enginetest.Cores(9 + k)})
				b.Task(&model.TaskSpec{UID: fmt.Sprint("w", k), Node: model.None, Index: -1})
			}
		})
		for _, means := range []plan.Means{plan.PlaceOnly, plan.ByReclaim, plan.ByPreempt, plan.ByAny} {
			require.Equal(t, plan.None, ask(t, s, 1, means).Outcome, "%s, means %d", name, means)
		}
		e := explained(t, s, 1)
		require.Equal(t, explain.Blocked, e.Verdict, name)
	}
}

// TestNothingIsJudgedWithoutWhatNodesOffer explains a job on a cluster without nodes, and on one whose nodes state nothing.
func TestNothingIsJudgedWithoutWhatNodesOffer(t *testing.T) {
	for _, nodes := range []int{0, 2} {
		s := enginetest.Opened(t, engine.Entry{Plugin: proportion.Plugin{}}, func(b *model.Builder) {
			for n := range nodes {
				b.Node(model.NodeSpec{Name: fmt.Sprint("n", n)})
			}
			b.Queue(model.QueueSpec{Name: "q", Weight: 1})
			b.Job(model.JobSpec{UID: "waits", Queue: "q", Phase: model.PhaseInqueue, MinAvailable: 1})
			b.Group(model.GroupSpec{Request: enginetest.Cores(1)})
			b.Task(&model.TaskSpec{UID: "w", Node: model.None, Index: -1})
		})
		e := explained(t, s, 0)
		require.Equal(t, explain.Undetermined, e.Verdict)
		last := e.Findings[len(e.Findings)-1]
		require.Equal(t, policy.NothingOffered, last.Reasons[0].Code)
		require.InDelta(t, nodes, last.Reasons[0].Limit, 0)
		require.Equal(t, plan.NotFound, ask(t, s, 0, plan.ByAny).Outcome)
		require.Equal(t, plan.NotFound, ask(t, s, 0, plan.PlaceOnly).Outcome)
		found, err := remedy.Find(s, &remedy.Question{Job: 0})
		require.NoError(t, err)
		require.Equal(t, remedy.NotJudged, found.Outcome)
		require.Equal(t, judge.CheckNodes, found.Check)
	}
}

// TestWhatIsNotJudgedIsNotSaidToRun asks every question about a job that fits, but whose volumes are not judged.
func TestWhatIsNotJudgedIsNotSaidToRun(t *testing.T) {
	s := enginetest.Opened(t, engine.Entry{Plugin: proportion.Plugin{}}, func(b *model.Builder) {
		b.Node(model.NodeSpec{Name: "n", Allocatable: enginetest.Cores(4)})
		b.Queue(model.QueueSpec{Name: "q", Weight: 1})
		b.Job(model.JobSpec{UID: "waits", Queue: "q", Phase: model.PhaseInqueue, MinAvailable: 1})
		b.Group(model.GroupSpec{Request: enginetest.Cores(1), Unjudged: 2})
		b.Task(&model.TaskSpec{UID: "w", Node: model.None, Index: -1})
	})
	require.Equal(t, explain.Undetermined, explained(t, s, 0).Verdict)
	found, err := remedy.Find(s, &remedy.Question{Job: 0})
	require.NoError(t, err)
	require.Equal(t, remedy.NotJudged, found.Outcome)
	require.Equal(t, judge.CheckConstraints, found.Check)
	require.Equal(t, model.Constraints(2), found.Unjudged)
	for _, tasks := range [][]model.TaskID{nil, {0}} {
		plan, err := plan.For(s, &plan.Question{Job: 0, Tasks: tasks, Means: plan.PlaceOnly})
		require.NoError(t, err)
		require.Equal(t, model.Constraints(2), plan.Unjudged)
	}
}

// TestAJobThatIsBeingReleasedEndsAsOthersDo asks about a job that may not borrow as long as tasks that are being released count.
func TestAJobThatIsBeingReleasedEndsAsOthersDo(t *testing.T) {
	s := enginetest.Opened(t, engine.Entry{Plugin: fair.Plugin{}}, func(b *model.Builder) {
		b.Node(model.NodeSpec{Name: "n", Allocatable: enginetest.Cores(4)})
		b.Queue(model.QueueSpec{Name: "q", Weight: 1})
		b.Queue(model.QueueSpec{Name: "other", Weight: 3})
		b.Job(model.JobSpec{UID: "ends", Queue: "other", Phase: model.PhaseRunning, MinAvailable: 1, ExpectedEnd: 20})
		b.Group(model.GroupSpec{Request: enginetest.Cores(4)})
		b.Task(&model.TaskSpec{UID: "r", Status: model.Releasing, Node: 0, Index: -1})
		b.Job(model.JobSpec{UID: "waits", Queue: "q", Phase: model.PhaseInqueue, MinAvailable: 1})
		b.Group(model.GroupSpec{Request: enginetest.Cores(3)})
		b.Task(&model.TaskSpec{UID: "w", Node: model.None, Index: -1})
	})
	require.Equal(t, explain.Blocked, explained(t, s, 1).Verdict)
	foreseen, err := forecast.For(s, 1)
	require.NoError(t, err)
	require.NotNil(t, foreseen)
	require.Equal(t, forecast.StartsAt, foreseen.Outcome)
	require.Equal(t, []model.JobID{0}, foreseen.Ends)
	found, err := remedy.Find(s, &remedy.Question{Job: 1, Kinds: []remedy.Kind{remedy.JobsEnd}})
	require.NoError(t, err)
	require.Equal(t, remedy.Found, found.Outcome)
	require.Equal(t, 1, found.List[0].Ended)
	require.InDelta(t, 4000, found.List[0].Freed.V[0], 0)
}

// TestAJobOfAQueueThatIsNotServedIsPlacedOnlyByEviction asks for plans with policies under which a job without a gang may be about to evict.
func TestAJobOfAQueueThatIsNotServedIsPlacedOnlyByEviction(t *testing.T) {
	policies := enginetest.Policies()
	policies["fair without gang"] = engine.Policy{Tiers: []engine.Tier{
		{{Plugin: priority.Plugin{}}}, {{Plugin: conformance.Plugin{}}, {Plugin: fair.Plugin{}}},
	}}
	evicting, roomy := 0, 0
	for i := range 4 * *enginetest.Runs {
		seed := *enginetest.Seed + uint64(i)
		for name, p := range policies {
			s, err := engine.Open(enginetest.PlanCluster(t, seed, name == "tree"), p, nil)
			require.NoError(t, err)
			for _, j := range s.Waiting() {
				if !s.IsOverused(s.View().Jobs.At(j).Queue, nil) {
					continue
				}
				at := fmt.Sprint(name, " ", seed, " ", s.View().Jobs.At(j).UID)
				for _, means := range []plan.Means{plan.PlaceOnly, plan.ByReclaim, plan.ByPreempt, plan.ByAny} {
					switch made := ask(t, s, j, means); {
					case made.Outcome == plan.Made:
						require.NotEmpty(t, made.Victims, at)
						evicting++
					case made.Miss.Check == judge.CheckQueue && means >= plan.ByPreempt && name == "fair without gang":
						require.Equal(t, plan.None, made.Outcome, at)
						require.NotEmpty(t, made.Miss.Reasons, at)
						roomy++
					}
				}
			}
		}
	}
	require.Positive(t, evicting)
	require.Positive(t, roomy)
}
