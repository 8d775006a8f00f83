package remedy_test

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/forecast"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/remedy"
	"github.com/apportion/apportion/internal/test/enginetest"
)

var remedyRuns = flag.Int("remedies", 60, "how many clusters remedies are tried on")

func plannedBy(t require.TestingT, s *engine.Session, j model.JobID, means plan.Means) *plan.Plan {
	plan, err := plan.For(s, &plan.Question{Job: j, Means: means})
	require.NoError(t, err)
	return plan
}

func remedies(t require.TestingT, s *engine.Session, j model.JobID) *remedy.Answer {
	found, err := remedy.Find(s, &remedy.Question{Job: j})
	require.NoError(t, err)
	return found
}

// runsAfter reports whether a job runs in the cluster after edits.
func runsAfter(t require.TestingT, s *engine.Session, j model.JobID, edits []edit.Edit) bool {
	mark := s.Mark()
	runs := false
	if len(edits) == 0 || remedy.ChangeBy(s, j, edits) == nil {
		var err error
		runs, err = remedy.Runs(s, j)
		require.NoError(t, err)
		made := plannedBy(t, s, j, plan.PlaceOnly)
		if len(made.Tasks) > 0 {
			require.Equal(t, made.Outcome == plan.Made, runs)
		}
	}
	require.NoError(t, s.Rollback(mark))
	return runs
}

// oneLess returns edits of which one goes a step less far; it is left out if it then changes nothing.
func oneLess(edits []edit.Edit, i int) []edit.Edit {
	var less []edit.Edit
	for k, e := range edits {
		if k == i {
			if e.Amount > e.Before {
				e.Amount -= e.Step
			} else {
				e.Amount += e.Step
			}
			if (e.Amount <= e.Before) == (edits[k].Amount > e.Before) {
				continue
			}
		}
		less = append(less, e)
	}
	return less
}

func TestEveryRemedyMakesTheJobRunAndOneStepLessDoesNot(t *testing.T) {
	kinds, asked, tries, outcomes := map[remedy.Kind]int{}, 0, 0, map[remedy.Outcome]int{}
	byPlan := 0
	enginetest.EachJob(t, *remedyRuns, func(name string, seed uint64, s *engine.Session, j model.JobID) {
		at := fmt.Sprint(name, " ", seed, " ", s.View().Jobs.At(j).UID)
		found := remedies(t, s, j)
		require.Equal(t, found, remedies(t, s, j), "%s: the same question has the same answer", at)
		asked++
		tries += found.Tries
		outcomes[found.Outcome]++
		if found.Outcome == remedy.RunsNow {
			require.True(t, runsAfter(t, s, j, nil), at)
			return
		}
		require.False(t, runsAfter(t, s, j, nil), at)
		requireEviction(t, found, plannedBy(t, s, j, plan.ByAny), at)
		for _, one := range found.List {
			kinds[one.Kind]++
			if one.Kind == remedy.Eviction {
				continue
			}
			require.NotEmpty(t, one.Edits, at)
			if one.Plan != nil {
				byPlan++
				requirePlanAfter(t, s, j, one, at)
				continue
			}
			requireLeast(t, s, j, one.Edits, at)
		}
	})
	require.Positive(t, byPlan)
	t.Log(asked, "jobs,", tries, "tries, outcomes", outcomes, "remedies", kinds, "of these smaller minima that a plan serves", byPlan)
}

// requireLeast requires that a job runs after edits, and not with one step less of any.
func requireLeast(t require.TestingT, s *engine.Session, j model.JobID, edits []edit.Edit, at string) {
	require.True(t, runsAfter(t, s, j, edits), "%s: %+v", at, edits)
	for i := range edits {
		if edits[i].Step != 0 {
			require.False(t, runsAfter(t, s, j, oneLess(edits, i)), "%s: %d of %+v", at, i, edits)
		}
	}
}

// planAfter returns the plan that a job has in the cluster after edits.
func planAfter(t *testing.T, s *engine.Session, j model.JobID, edits []edit.Edit) *plan.Plan {
	t.Helper()
	mark := s.Mark()
	require.NoError(t, remedy.ChangeBy(s, j, edits))
	plan := plannedBy(t, s, j, plan.ByAny)
	require.NoError(t, s.Rollback(mark))
	return plan
}

// requirePlanAfter makes a smaller minimum by hand: the job has the plan of the remedy then, and none with one step less.
func requirePlanAfter(t *testing.T, s *engine.Session, j model.JobID, one remedy.Remedy, at string) {
	t.Helper()
	require.Equal(t, remedy.SmallerMinimum, one.Kind, at)
	require.NotEmpty(t, one.Plan.Victims, at)
	require.False(t, runsAfter(t, s, j, one.Edits), at)
	require.Equal(t, one.Plan, planAfter(t, s, j, one.Edits), at)
	for i := range one.Edits {
		if one.Edits[i].Step == 0 {
			continue
		}
		less := planAfter(t, s, j, oneLess(one.Edits, i))
		require.NotEqual(t, plan.Made, less.Outcome, "%s: %d of %+v", at, i, one.Edits)
	}
	for i := range one.Plan.Victims {
		require.Equal(t, model.Running, s.View().Status(one.Plan.Victims[i].Task), at)
	}
}

// requireEviction compares the eviction that remedies list with the plan that the job has.
func requireEviction(t *testing.T, found *remedy.Answer, made *plan.Plan, at string) {
	t.Helper()
	var evictions []*plan.Plan
	for i := range found.List {
		if found.List[i].Kind == remedy.Eviction {
			evictions = append(evictions, found.List[i].Plan)
		}
	}
	ended := slices.ContainsFunc(found.Untried, func(u remedy.Untried) bool { return u.Kind == remedy.Eviction })
	switch {
	case found.Outcome == remedy.NotJudged || found.Outcome == remedy.WaitsForNothing:
		require.Empty(t, evictions, at)
	case made.Outcome == plan.Made && len(made.Victims) > 0:
		require.Equal(t, []*plan.Plan{made}, evictions, at)
	default:
		require.Empty(t, evictions, at)
		require.Equal(t, made.Outcome == plan.NotFound, ended, at)
	}
}

// TestALinearSearchFindsNoSmallerRemedy is the plain twin of the bisection: it goes up to the value that was found and asks at each step,
// or at about fifty of many.
func TestALinearSearchFindsNoSmallerRemedy(t *testing.T) {
	asked, smaller := 0, 0
	enginetest.EachJob(t, *remedyRuns/6, func(name string, seed uint64, s *engine.Session, j model.JobID) {
		for _, one := range remedies(t, s, j).List {
			if len(one.Edits) == 0 || one.Edits[0].Step == 0 || len(one.Edits) > 1 && one.Edits[1].Step != 0 {
				continue
			}
			e := one.Edits[0]
			steps := int(math.Round(math.Abs(e.Amount-e.Before) / e.Step))
			for k := 1; k < steps; k += 1 + steps/50 {
				nearer := e
				nearer.Amount = e.Before + float64(k)*math.Copysign(e.Step, e.Amount-e.Before)
				asked++
				if runsAfter(t, s, j, []edit.Edit{nearer}) {
					smaller++
					t.Logf("%s %d %s: %+v runs with %g", name, seed, s.View().Jobs.At(j).UID, e, nearer.Amount)
				}
			}
		}
	})
	t.Log(asked, "smaller changes asked about,", smaller, "suffice")
	require.Zero(t, smaller)
}

func TestRemediesChangeNothingAndCountWhatHappened(t *testing.T) {
	enginetest.EachJob(t, *remedyRuns/10, func(name string, seed uint64, s *engine.Session, j model.JobID) {
		before := plannedBy(t, s, j, plan.ByAny)
		remedies(t, s, j)
		require.Equal(t, before, plannedBy(t, s, j, plan.ByAny), "%s %d", name, seed)
		if before.Outcome != plan.Made || len(before.Victims) == 0 {
			return
		}
		// Once the victims are gone the job runs, by the same question.
		mark := s.Mark()
		for i := range before.Victims {
			require.NoError(t, s.Deallocate(before.Victims[i].Task, model.Succeeded))
		}
		runs, err := remedy.Runs(s, j)
		require.NoError(t, err)
		if found := remedies(t, s, j); runs {
			require.True(t, found.Outcome == remedy.RunsNow || found.Tries > 0, "%s %d", name, seed)
		}
		require.NoError(t, s.Rollback(mark))
	})
}

func TestRemediesEndWhenTheyAreNotWantedOrCostTooMuch(t *testing.T) {
	m, j := enginetest.FullCluster(t)
	asked := 0
	s, err := engine.Open(m, enginetest.Policies()["proportion"], nil)
	require.NoError(t, err)
	s.Host().Stop(func() bool {
		asked++
		return asked > 40
	})
	_, err = remedy.Find(s, &remedy.Question{Job: j})
	require.ErrorIs(t, err, policy.ErrStopped)

	// Where the work ends the search ends too, and says so.
	work := policy.NewWork(20_000_000)
	host, err := engine.OpenHost(m, enginetest.Policies()["proportion"], nil, work)
	require.NoError(t, err)
	work.Renew()
	found := remedies(t, host.Session, j)
	require.True(t, slices.ContainsFunc(found.Untried, func(u remedy.Untried) bool { return u.Cause == remedy.TriesSpent }))
	require.LessOrEqual(t, work.Spent(), int64(20_000_000))
}

func BenchmarkRemedies(b *testing.B) {
	m, j := enginetest.FullCluster(b)
	for name, p := range enginetest.Policies() {
		if name == "tree" {
			continue
		}
		b.Run(name, func(b *testing.B) {
			s, err := engine.Open(m, p, nil)
			require.NoError(b, err)
			var found *remedy.Answer
			for b.Loop() {
				found = remedies(b, s, j)
			}
			require.Equal(b, remedy.Found, found.Outcome)
			b.ReportMetric(float64(found.Tries), "tries")
			b.ReportMetric(float64(len(found.List)), "remedies")
		})
	}
}

func TestAJobThatRunsOnceOthersEndMayWaitForThem(t *testing.T) {
	waits, ends := 0, 0
	for seed := range uint64(*remedyRuns) {
		s, err := engine.Open(enginetest.EndingCluster(t, seed, func(string) bool { return false }), enginetest.Policies()["proportion"], nil)
		require.NoError(t, err)
		v := s.View()
		for _, j := range s.Waiting() {
			found, err := remedy.Find(s, &remedy.Question{Job: j, Kinds: []remedy.Kind{remedy.Wait}})
			require.NoError(t, err)
			foreseen, err := forecast.For(s, j)
			require.NoError(t, err)
			starts := foreseen != nil && foreseen.Outcome == forecast.StartsAt
			require.Equal(t, starts, len(found.List) > 0)
			if !starts {
				continue
			}
			remedy, last := found.List[0], int64(0)
			require.True(t, runsAfter(t, s, j, remedy.Edits))
			for i, e := range remedy.Edits {
				last = max(last, v.Jobs.At(e.Job).ExpectedEnd)
				require.False(t, runsAfter(t, s, j, slices.Delete(slices.Clone(remedy.Edits), i, i+1)))
			}
			require.Equal(t, last, remedy.At)
			require.LessOrEqual(t, remedy.At, foreseen.At)
			waits, ends = waits+1, ends+len(remedy.Edits)
		}
	}
	require.Positive(t, waits)
	t.Log(waits, "waits for", ends, "ends")
}
