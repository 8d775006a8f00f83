package check_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/client/check"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/raced"
)

// planning are policies under which plans are checked.
var planning = []string{
	preset, `tiers { plugins { fair { base: FAIR_BASE_DESERVED } } plugins { binpack {} } }`,
	`tiers { plugins { gang {} } plugins { conformance {} } plugins { cooldown {} } plugins { drf {} } plugins { fair {} } }`,
}

// contested asks for plans on a cluster that is too small for its jobs, which have priorities.
func contested(t *testing.T, policy string, seed uint64) *apportionv1.SimulateRequest {
	t.Helper()
	shape := generate.Shape{
		Queues: 3 + int(seed%5), Jobs: 20, Tasks: 100, Nodes: 3 + int(seed%4), Seed: seed, UIDs: true, Depth: int(seed % 3),
		Dimensions: 2 + int(seed%3),
	}
	if seed%3 == 0 {
		shape.Jobs, shape.Tasks, shape.Nodes = 40, 400, 3
	}
	s := generate.Snapshot(shape)
	for _, n := range s.GetNodes() {
		everyAmount(n.ProtoReflect(), func(x float64) float64 { return x / 2 })
	}
	if seed%2 == 0 {
		// Sums of parts are whole at times, by rounding.
		everyAmount(s.ProtoReflect(), func(x float64) float64 { return x / 3 })
	}
	random := rand.New(rand.NewPCG(seed, 1))
	if seed%5 > 2 {
		protect(s, random)
	}
	for _, j := range s.GetJobs() {
		j.Priority = int32(random.IntN(4))
	}
	r := asked(t, s, policy, append(moreQuestions(s, random), plansOf(s, 20)...)...)
	r.Input.OmitNames = random.IntN(3) == 0
	return r
}

// eachContested calls f with requests for plans and their true answers.
func eachContested(t *testing.T, seeds uint64, f func(r *apportionv1.SimulateRequest, response *apportionv1.SimulateResponse)) {
	t.Helper()
	for seed := range seeds {
		for _, policy := range planning {
			r := contested(t, policy, seed)
			response := answered(t, r)
			report, err := check.Response(r, response)
			require.NoError(t, err)
			require.Empty(t, report.Faults, "%d %s", seed, policy)
			f(r, response)
		}
	}
}

// TestTruePlansPass counts what is checked of plans, so that it is known that there are such.
func TestTruePlansPass(t *testing.T) {
	raced.Skip(t)
	seeds, made, victims, own, reclaims := uint64(40), 0, 0, 0, 0
	if *allMutants {
		seeds = 2000
	}
	eachContested(t, seeds, func(_ *apportionv1.SimulateRequest, response *apportionv1.SimulateResponse) {
		for _, a := range response.GetAnswers() {
			reclaims += min(1, len(a.GetReclaim().GetVictims()))
			made += min(1, len(a.GetPlan().GetPlacements()))
			for _, v := range a.GetPlan().GetVictims() {
				victims++
				if v.GetOwnQueue() {
					own++
				}
			}
		}
	})
	t.Logf("%d plans with %d victims, %d of the job's queue, and %d reclaims", made, victims, own, reclaims)
	for _, n := range []int{made, victims, own, reclaims} {
		require.Positive(t, n)
	}
}

// another are the fields of a plan of which another value may be as true, by name: where tasks go among nodes that have room, and under
// which line it was found; and those that the checker lists, as what the search alone knows.
var another = []string{
	"node", "node_name", "line", "after_release", "claimant", "own_queue", "for_limit", "tier", "plugins", "returns", "least", "cut_short",
	"looked", "enters", "text", "unjudged_constraints", "protections", "plugins", "checks",
}

// TestWaitingTasksThatAskForNothingCountAsReady plans two of four tasks: with a minimum of three the job is ready if the others ask for nothing.
func TestWaitingTasksThatAskForNothingCountAsReady(t *testing.T) {
	for _, test := range []struct {
		name    string
		request *apportionv1.Resource
		ready   bool
	}{
		{"nothing", nil, true},
		{"a place among pods", &apportionv1.Resource{Dimensions: []uint32{1}, Amounts: []float64{1}}, true},
		{"a hundredth of a milli-core", &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{0.01}}, true},
		{"a core", &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{1000}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			tasks := []*apportionv1.Task{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
			s := &apportionv1.Snapshot{
				Dimensions: []string{"cpu", "pods"}, Queues: []*apportionv1.Queue{{Name: "q", Weight: new(uint32(1))}},
				Nodes: []*apportionv1.Node{{Name: "n", Allocatable: &apportionv1.Resource{Dimensions: []uint32{0, 1}, Amounts: []float64{8000, 10}}}},
				Jobs: []*apportionv1.Job{{
					Name: "j", Queue: "q", Phase: apportionv1.JobPhase_JOB_PHASE_INQUEUE, MinAvailable: 3,
					Groups: []*apportionv1.TaskGroup{{Request: test.request, Tasks: tasks}},
				}},
			}
			request := asked(t, s, `tiers { plugins { gang {} } plugins { fair {} } }`, &apportionv1.Step{Step: &apportionv1.Step_Plan{
				Plan: &apportionv1.PlanStep{Tasks: &apportionv1.Selector{Indices: []uint32{0, 1}}},
			}})
			response := answered(t, request)
			planned := response.GetAnswers()[1].GetPlan()
			require.Len(t, planned.GetPlacements(), 2)
			require.Equal(t, test.ready, planned.GetReady())
			require.Empty(t, faultsOf(t, request, response))
			planned.Ready = true
			require.Equal(t, !test.ready, faultsOf(t, request, response) != "")
		})
	}
}

// TestEveryMutantOfAPlanIsRefused changes each field of made plans: all mutants are refused but those of the fields of another.
func TestEveryMutantOfAPlanIsRefused(t *testing.T) {
	raced.Skip(t)
	refused, same, seeds := 0, 0, uint64(10)
	if *allMutants {
		seeds = 60
	}
	eachContested(t, seeds, func(r *apportionv1.SimulateRequest, response *apportionv1.SimulateResponse) {
		for i, a := range response.GetAnswers() {
			made := a.GetPlan().GetOutcome() == apportionv1.PlanOutcome_PLAN_OUTCOME_MADE || a.GetReclaim().GetPlan().GetMade()
			if !made || len(a.GetPlan().GetVictims())+len(a.GetReclaim().GetVictims()) == 0 {
				continue
			}
			truth := plain(response)
			// The other plans need not be checked again for each mutant.
			one, only := proto.CloneOf(r), proto.CloneOf(response)
			one.Steps, only.Answers = []*apportionv1.Step{r.GetSteps()[0], r.GetSteps()[i]}, []*apportionv1.Answer{response.GetAnswers()[0], a}
			for _, m := range mutants(a.ProtoReflect(), "") {
				if slices.ContainsFunc(strings.Split(positions.ReplaceAllString(m.path, ""), "."), func(name string) bool {
					return slices.Contains(another, name)
				}) || m.kind == "exchanged" {
					continue
				}
				m.do()
				report, err := check.Response(one, only)
				require.NoError(t, err)
				if len(report.Faults) > 0 {
					refused++
				} else {
					require.True(t, proto.Equal(truth, plain(response)), "%s %s is not found", m.path, m.kind)
					same++
				}
				m.undo()
			}
		}
	})
	t.Logf("%d refused, %d mean the same", refused, same)
	require.Greater(t, refused, 500)
}

// faultOf returns the faults of a changed answer as one text.
func faultsOf(t *testing.T, r *apportionv1.SimulateRequest, response *apportionv1.SimulateResponse) string {
	t.Helper()
	report, err := check.Response(r, response)
	require.NoError(t, err)
	return strings.Join(report.Faults, "\n")
}

// TestEachPromiseOfAPlanIsCheckedByItself breaks one promise of true plans after the other: the fault that names it is among those found.
func TestEachPromiseOfAPlanIsCheckedByItself(t *testing.T) {
	raced.Skip(t)
	found := map[string]int{}
	breaks := func(name string, r *apportionv1.SimulateRequest, response *apportionv1.SimulateResponse, says ...string) {
		faults := faultsOf(t, r, response)
		require.True(t, slices.ContainsFunc(says, func(s string) bool { return strings.Contains(faults, s) }), "%s: %s", name, faults)
		found[name]++
	}
	eachContested(t, 20, func(r *apportionv1.SimulateRequest, response *apportionv1.SimulateResponse) {
		tasks := running(r.GetInput().GetSnapshot())
		for _, a := range response.GetAnswers() {
			plan, reclaim := a.GetPlan(), a.GetReclaim()
			if victims := reclaim.GetVictims(); len(victims) > 0 {
				reclaim.Victims = victims[1:]
				breaks("reclaim: a victim is missing", r, response, "the claimant lacks", "a limit does not permit")
				reclaim.Victims = victims
				if more := tasks.besides(reclaim); more != nil && !r.GetInput().GetOmitNames() {
					reclaim.Victims = append(slices.Clone(victims), more)
					breaks("reclaim: a victim too many", r, response, "does without its victim", "not all queues are above it", "may not be evicted")
					reclaim.Victims = victims
				}
			}
			if len(plan.GetVictims()) == 0 {
				continue
			}
			victims := plan.GetVictims()
			plan.Victims = victims[1:]
			breaks("plan: a victim is missing", r, response, "lacks room", "a limit does not permit", "within their lines", "freed")
			plan.Victims = victims
			other := proto.CloneOf(r)
			for _, q := range other.GetInput().GetSnapshot().GetQueues() {
				q.Reclaimable = new(false)
			}
			if !victims[0].GetOwnQueue() {
				breaks("plan: queues that give nothing back", other, response, "may not be evicted for this job")
			}
			for _, step := range other.GetSteps() {
				if p := step.GetPlan(); p != nil {
					p.Means = apportionv1.PlanMeans_PLAN_MEANS_PLACE
				}
			}
			breaks("plan: no evictions are asked for", other, response, "may not be evicted for this job")
			other = proto.CloneOf(r)
			for _, n := range other.GetInput().GetSnapshot().GetNodes() {
				n.Unschedulable = &apportionv1.NodeUnschedulable{}
			}
			breaks("plan: nodes are closed", other, response, "does not take task")
			other = proto.CloneOf(r)
			for _, j := range other.GetInput().GetSnapshot().GetJobs() {
				j.Priority = 0
			}
			if slices.ContainsFunc(victims, (*apportionv1.PlannedEviction).GetOwnQueue) {
				breaks("plan: a victim of equal priority", other, response, "may not be evicted for this job")
			}
		}
	})
	t.Log(found)
	require.Len(t, found, 7)
}

// victim is a running task as an answer about victims names it, with its queue.
type victim struct {
	*apportionv1.Victim

	queue string
}

type victims []victim

// running lists the tasks of a snapshot that run.
func running(s *apportionv1.Snapshot) (list victims) {
	number := uint32(0)
	for _, j := range s.GetJobs() {
		for _, g := range j.GetGroups() {
			for _, t := range g.GetTasks() {
				if t.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_RUNNING {
					list = append(list, victim{&apportionv1.Victim{Task: number, Uid: t.GetUid()}, j.GetQueue()})
				}
				number++
			}
		}
	}
	return list
}

// besides returns a running task that a plan does not evict; nil if there is none.
func (list victims) besides(a *apportionv1.VictimsAnswer) *apportionv1.Victim {
	for _, v := range list {
		if !slices.ContainsFunc(a.GetVictims(), func(o *apportionv1.Victim) bool { return o.GetTask() == v.GetTask() }) {
			return v.Victim
		}
	}
	return nil
}

// TestAPlanThatRaisesWhatQueuesLackIsFalse evicts a task of ten cores for one of two: its queue then lacks more than the other gains.
func TestAPlanThatRaisesWhatQueuesLackIsFalse(t *testing.T) {
	cpu := func(x float64) *apportionv1.Resource {
		return &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{x}}
	}
	s := &apportionv1.Snapshot{
		Dimensions: []string{"cpu"}, Nodes: []*apportionv1.Node{{Name: "n", Allocatable: cpu(11_000)}},
		Queues: []*apportionv1.Queue{{Name: "a"}, {Name: "b"}},
		Jobs: []*apportionv1.Job{
			{Uid: "a-job", Queue: "a", Groups: []*apportionv1.TaskGroup{{Request: cpu(2000), Tasks: []*apportionv1.Task{{Uid: "small"}}}}},
			{Uid: "b-job", Queue: "b", Groups: []*apportionv1.TaskGroup{{Request: cpu(10_000), Tasks: []*apportionv1.Task{
				{Uid: "big", Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING, Node: new(uint32(0))},
			}}}},
		},
	}
	r := asked(t, s, preset, &apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{
		Claimant: &apportionv1.Selector{Indices: []uint32{0}},
	}}})
	response := answered(t, r)
	require.False(t, response.GetAnswers()[1].GetReclaim().GetPlan().GetMade())
	forged := response.GetAnswers()[1].GetReclaim()
	forged.Victims, forged.Evictions = []*apportionv1.Victim{{Task: 1, Uid: "big"}}, []uint32{1}
	forged.Plan = &apportionv1.ReclaimPlan{Made: true, Line: apportionv1.FairLine_FAIR_LINE_ENTITLEMENT}
	require.Contains(t, faultsOf(t, r, response), "the plan does not lower what queues lack")
}
