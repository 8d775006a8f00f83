package plan_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/explain"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// searched looks for any plan of a job by every choice of as many of its waiting tasks, every set of victims and every choice of nodes. It
// returns the victims of a plan, and whether there is one; known is false if there is too much to try.
func searched(s *engine.Session, j model.JobID, plan *plan.Plan, means plan.Means) (victims []model.TaskID, found, known bool) {
	v := s.View()
	if len(plan.Tasks) == 0 || len(plan.Tasks) > 3 {
		return nil, false, false
	}
	w := twin{s: s, job: j, means: means}
	w.pool = evictableBy(s, j, plan.Tasks[0], means)
	job := v.Jobs.At(j)
	var waiting []model.TaskID
	for t := job.FirstTask; t < job.EndTask; t++ {
		if v.Status(t) == model.Pending {
			waiting = append(waiting, t)
		}
	}
	if len(w.pool) > 7 || len(waiting) > 5 {
		return nil, false, false
	}
	for size := range len(w.pool) + 1 {
		found := subsets(waiting, len(plan.Tasks), func(tasks []model.TaskID) bool {
			w.tasks = slices.Clone(tasks)
			return w.sets(size, 0, nil)
		})
		if found {
			return w.won, true, true
		}
	}
	return nil, false, true
}

// evictableBy lists the tasks that the actions of Volcano consider for a job, as far as it may evict at all.
func evictableBy(s *engine.Session, j model.JobID, t model.TaskID, means plan.Means) (pool []model.TaskID) {
	plans := s.Reclaim().Plans()
	if means == plan.PlaceOnly || !s.Job(j).Starving(nil) {
		return nil
	}
	if means != plan.ByPreempt && (plans || !s.IsOverused(s.View().Jobs.At(j).Queue, nil)) {
		others, err := s.Reclaim().Candidates(t)
		if err != nil {
			panic(err)
		}
		pool = append(pool, others...)
	}
	if means != plan.ByReclaim {
		own, err := s.Preempt().Candidates(t)
		if err != nil {
			panic(err)
		}
		for _, c := range own {
			if !plans || s.View().Jobs.At(s.View().Tasks.At(c).Job).Priority < s.View().Jobs.At(j).Priority {
				pool = append(pool, c)
			}
		}
	}
	return pool
}

// subsets calls try for each subset of so many tasks until it returns true, and reports whether it did.
func subsets(list []model.TaskID, size int, try func([]model.TaskID) bool) bool {
	if size == 0 {
		return try(nil)
	}
	for i := range len(list) - size + 1 {
		if subsets(list[i+1:], size-1, func(rest []model.TaskID) bool { return try(append([]model.TaskID{list[i]}, rest...)) }) {
			return true
		}
	}
	return false
}

// potentialOf is the potential of a policy that has one, nil otherwise.
func potentialOf(s *engine.Session) *[3]*big.Rat {
	for _, d := range s.Dividers() {
		if planner, ok := d.State.(policy.Planner); ok {
			p := planner.Potential()
			return &p
		}
	}
	return nil
}

// TestNoPlanIsSaidOnlyWhereNoSetOfVictimsMakesOne compares every proof that there is no plan with an exhaustive search, on clusters with
// free room and limits at every level.
func TestNoPlanIsSaidOnlyWhereNoSetOfVictimsMakesOne(t *testing.T) {
	proofs, wrong, made := 0, 0, 0
	try := func(name string, seed uint64, s *engine.Session, j model.JobID) {
		for _, means := range []plan.Means{plan.PlaceOnly, plan.ByReclaim, plan.ByPreempt, plan.ByAny} {
			answer := ask(t, s, j, means)
			if answer.Outcome != plan.None {
				made++
				continue
			}
			victims, found, known := searched(s, j, answer, means)
			if !known {
				continue
			}
			proofs++
			if found {
				wrong++
				names := make([]string, len(victims))
				for i, v := range victims {
					names[i] = s.View().TaskUID(v)
				}
				t.Log(name, " ", seed, " ", s.View().Jobs.At(j).UID, ", means ", means, ": ", names, " ", fmt.Sprintf("%+v", answer.Miss))
			}
		}
	}
	enginetest.EachLimitedJob(t, *enginetest.Runs, try)
	t.Log(proofs, "proofs,", made, "other answers")
	require.Zero(t, wrong)
	require.Greater(t, proofs, *enginetest.Runs)
}

// TestWhereReclaimNamesVictimsThereIsAPlan asks reclaim for the gang of each job under fair, on trees with limits at every level, or hard
// budgets in their place. The plan may prefer other victims, but a queue that may take what it is entitled to has one; and Volcano does not
// pass its queue over.
func TestWhereReclaimNamesVictimsThereIsAPlan(t *testing.T) {
	for name, cluster := range map[string]func(seed uint64) *model.Model{
		"limits":  func(seed uint64) *model.Model { return enginetest.LimitedCluster(t, seed, true) },
		"budgets": func(seed uint64) *model.Model { return enginetest.BudgetCluster(t, seed) },
	} {
		t.Run(name, func(t *testing.T) { requirePlansWhereReclaimServes(t, cluster) })
	}
}

func requirePlansWhereReclaimServes(t *testing.T, cluster func(seed uint64) *model.Model) {
	t.Helper()
	reclaimed, overused := 0, 0
	for i := range 5 * *enginetest.Runs {
		seed := *enginetest.Seed + uint64(i)
		s, err := engine.Open(cluster(seed), enginetest.Policies()["fair"], nil)
		require.NoError(t, err)
		for _, j := range s.Waiting() {
			made := ask(t, s, j, plan.ByReclaim)
			if len(made.Tasks) == 0 || made.Enters || made.Miss != nil && made.Miss.Check < judge.CheckQueue {
				continue
			}
			at := fmt.Sprint(seed, " ", s.View().Jobs.At(j).UID)
			candidates, err := s.Reclaim().Candidates(made.Tasks[0])
			require.NoError(t, err)
			claim := &policy.Claim{Tasks: made.Tasks, Candidates: candidates, Room: policy.Room{Kind: policy.AnyNodes}}
			choice := s.Reclaim().Choose(claim, false)
			if !s.Job(j).Starving(nil) || choice.Plan == nil || !choice.Plan.Made || !fitsOn(s, made.Tasks, choice.Plan) {
				continue
			}
			reclaimed++
			require.Equal(t, plan.Made, made.Outcome, "%s: %+v", at, made.Miss)
			if q := s.View().Jobs.At(j).Queue; s.IsOverused(q, nil) {
				overused++
				require.False(t, s.IsPassedOver(q, nil), at)
			}
		}
	}
	t.Log(reclaimed, "claims are served,", overused, "of queues of which nothing may be placed")
	require.Positive(t, overused)
}

// fitsOn reports whether tasks fit the nodes of a plan of the policy, which looks at room and node sets alone.
func fitsOn(s *engine.Session, tasks []model.TaskID, plan *policy.Plan) bool {
	for i, t := range tasks {
		if !s.Nodes().Fits(t, plan.Nodes[i], nil) {
			return false
		}
	}
	return true
}

// TestExplanationsNameNoTaskWhereAPlanMayEvictNone compares, for one job and for many.
func TestExplanationsNameNoTaskWhereAPlanMayEvictNone(t *testing.T) {
	none, some := 0, 0
	try := func(name string, seed uint64, s *engine.Session, j model.JobID) {
		plan := ask(t, s, j, plan.ByAny)
		if plan.Miss == nil || plan.Miss.Check != judge.CheckNodes && plan.Miss.Check != judge.CheckEviction {
			return
		}
		for _, jobs := range [][]model.JobID{{j}, {j, j, j, j, j}} {
			require.NoError(t, explain.Jobs(s, jobs, true, func(e *explain.Explanation) error {
				for _, f := range e.Findings {
					switch {
					case f.Check != judge.CheckEviction:
					case len(plan.Miss.Reasons) > 0 && plan.Miss.Check == judge.CheckNodes:
						none++
						require.Empty(t, f.Tasks, "%s %d: %s, %+v", name, seed, s.View().Jobs.At(j).UID, plan.Miss)
					case len(f.Tasks) > 0:
						some++
					}
				}
				return nil
			}))
		}
	}
	enginetest.EachJob(t, *enginetest.Runs, try)
	enginetest.EachLimitedJob(t, *enginetest.Runs, try)
	t.Log(none, "explanations of jobs that may evict nothing,", some, "that name tasks")
	require.Greater(t, none, *enginetest.Runs/2)
	require.Positive(t, some)
}
