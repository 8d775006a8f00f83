package checker_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/checker"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/raced"
)

// TestWhatAPlanPromisesIsChecked asks for plans of many jobs under several policies: true ones pass, and one that places a task elsewhere,
// places one twice, or leaves its victims out does not.
func TestWhatAPlanPromisesIsChecked(t *testing.T) {
	raced.Skip(t)
	made, evictions, found := 0, 0, 0
	for _, policy := range []string{
		preset, `tiers { plugins { priority {} } plugins { gang {} } } tiers { plugins { proportion {} } }`,
		`tiers { plugins { priority {} } plugins { gang {} } } tiers { plugins { capacity {} } }`,
	} {
		for seed := range uint64(6) {
			s := generate.Snapshot(generate.Shape{Queues: 6, Jobs: 40, Tasks: 400, Nodes: 3, Seed: seed, UIDs: true, NodeSets: int(seed % 3)})
			for _, n := range s.GetNodes() {
				for i := range n.GetAllocatable().GetAmount() {
					n.Allocatable.Amount[i] /= 2
				}
			}
			if seed%2 == 1 {
				// Sums of parts are whole at times, by rounding.
				everyAmount(s.ProtoReflect(), func(x float64) float64 { return x / 3 })
			}
			r, response := plannedForAll(t, s, policy)
			for _, a := range response.GetAnswers() {
				plan := a.GetPlan()
				if plan.GetOutcome() != apportionv1.PlanOutcome_PLAN_OUTCOME_MADE {
					continue
				}
				made++
				evictions += len(plan.GetVictims())
				for _, m := range []mutant{
					{"outcome", "", func() { plan.Outcome = apportionv1.PlanOutcome_PLAN_OUTCOME_NONE }, func() { plan.Outcome = apportionv1.PlanOutcome_PLAN_OUTCOME_MADE }},
					{"task", "", func() { plan.Placements[0].Task++ }, func() { plan.Placements[0].Task-- }},
					{"node", "", func() { plan.Placements[0].Node++ }, func() { plan.Placements[0].Node-- }},
				} {
					m.do()
					report, err := checker.Check(r, response)
					require.NoError(t, err)
					require.NotEmpty(t, report.Faults, m.path)
					found++
					m.undo()
				}
				other := proto.CloneOf(r)
				for _, step := range other.GetSteps() {
					if asked := step.GetPlan().GetJob(); asked != nil {
						asked.Index[0] = (asked.GetIndex()[0] + 1) % uint32(len(s.GetJobs()))
					}
				}
				report, err := checker.Check(other, response)
				require.NoError(t, err)
				require.NotEmpty(t, report.Faults, "a plan for another job than was asked")
				if victims := plan.GetVictims(); len(victims) > 0 {
					plan.Victims = victims[1:]
					report, err := checker.Check(r, response)
					require.NoError(t, err)
					require.NotEmpty(t, report.Faults, "a victim is left out")
					plan.Victims = victims
				}
			}
		}
	}
	t.Logf("%d plans with %d victims, %d changes found", made, evictions, found)
	require.Positive(t, evictions)
}

// TestConstraintsThatAPlanDoesNotJudgeAreThoseOfItsTasks gives every second role and task constraints that the snapshot does not express.
func TestConstraintsThatAPlanDoesNotJudgeAreThoseOfItsTasks(t *testing.T) {
	s := generate.Snapshot(generate.Shape{Queues: 4, Jobs: 20, Tasks: 100, Nodes: 3, Seed: 7, UIDs: true})
	one, other := apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_VOLUMES, apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_HOST_PORTS
	var steps []*apportionv1.Step
	for j, job := range s.GetJobs() {
		for g, group := range job.GetGroups() {
			if (j+g)%2 == 0 {
				group.Unjudged = []apportionv1.PlacementConstraint{other}
			}
			for n, task := range group.GetTasks() {
				switch n % 3 {
				case 0:
					task.Detail = &apportionv1.TaskDetail{Unjudged: []apportionv1.PlacementConstraint{other, one}}
				case 1:
					task.Detail = &apportionv1.TaskDetail{
						Gate: apportionv1.TaskGate_TASK_GATE_OTHER, Unjudged: []apportionv1.PlacementConstraint{one},
					}
				}
			}
		}
		steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: &apportionv1.PlanStep{
			Job: &apportionv1.Jobs{Index: []uint32{uint32(j)}},
		}}})
	}
	steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: &apportionv1.PlanStep{
		Tasks: &apportionv1.Tasks{Uid: []string{s.GetJobs()[0].GetGroups()[0].GetTasks()[0].GetUid()}},
	}}})
	r := asked(t, s, preset, steps...)
	response := answered(t, r)
	report, err := checker.Check(r, response)
	require.NoError(t, err)
	require.Empty(t, report.Faults)
	named := 0
	for _, a := range response.GetAnswers() {
		plan := a.GetPlan()
		if plan == nil {
			continue
		}
		told := plan.GetUnjudged()
		named += len(told)
		plan.Unjudged = append(plan.GetUnjudged(), apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_POD_AFFINITY)
		report, err := checker.Check(r, response)
		require.NoError(t, err)
		require.NotEmpty(t, report.Faults)
		if plan.Unjudged = nil; len(told) > 0 {
			report, err = checker.Check(r, response)
			require.NoError(t, err)
			require.NotEmpty(t, report.Faults)
		}
		plan.Unjudged = told
	}
	require.Positive(t, named)
}

// TestAPlanThatTakesWhatIsKeptForOthersIsFalse asks for plans on nodes of which parts are kept: true ones pass, and none does if its first
// node is kept for another job, part by part, by the snapshot that it is checked against.
func TestAPlanThatTakesWhatIsKeptForOthersIsFalse(t *testing.T) {
	raced.Skip(t)
	made, evicting, idle := 0, 0, 0
	for _, policy := range []string{preset, `tiers { plugins { priority {} } plugins { gang {} } } tiers { plugins { proportion {} } }`} {
		for seed := range uint64(12) {
			s := generate.Snapshot(generate.Shape{Queues: 6, Jobs: 40, Tasks: 300, Nodes: 4, Seed: seed, UIDs: true})
			s.AsOf = 1_000
			reserve(s, rand.New(rand.NewPCG(seed, 5)))
			r, response := plannedForAll(t, s, policy)
			for _, a := range response.GetAnswers() {
				plan := a.GetPlan()
				if plan.GetOutcome() != apportionv1.PlanOutcome_PLAN_OUTCOME_MADE {
					continue
				}
				made++
				evicting += min(1, len(plan.GetVictims()))
				other := proto.CloneOf(r)
				n := other.GetInput().GetSnapshot().GetNodes()[plan.GetPlacements()[0].GetNode()]
				n.Reservations = []*apportionv1.NodeReservation{{Holder: "another", Request: proto.CloneOf(n.GetAllocatable())}}
				report, err := checker.Check(other, response)
				require.NoError(t, err)
				if len(report.Faults) == 0 {
					// A task that asks for nothing takes nothing.
					idle++
				}
			}
		}
	}
	t.Log(made, "plans,", evicting, "with evictions")
	require.Positive(t, evicting)
	require.Less(t, 10*idle, made)
}

// plannedForAll returns a request of a plan for each job, and its answers, which are true.
func plannedForAll(t *testing.T, s *apportionv1.Snapshot, policy string) (*apportionv1.SimulateRequest, *apportionv1.SimulateResponse) {
	t.Helper()
	r := asked(t, s, policy)
	for j := range s.GetJobs() {
		r.Steps = append(r.Steps, &apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: &apportionv1.PlanStep{
			Job: &apportionv1.Jobs{Index: []uint32{uint32(j)}},
		}}})
	}
	response := answered(t, r)
	report, err := checker.Check(r, response)
	require.NoError(t, err)
	require.Empty(t, report.Faults)
	return r, response
}
