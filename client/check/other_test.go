package check_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/client/check"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/wire"
)

// moreQuestions asks about victims and plans in every way.
func moreQuestions(s *apportionv1.Snapshot, random *rand.Rand) []*apportionv1.Step {
	var all, pending []uint32
	jobOf := map[uint32]uint32{}
	number := uint32(0)
	for i, j := range s.GetJobs() {
		for _, g := range j.GetGroups() {
			for _, t := range g.GetTasks() {
				if t.GetStatus() <= apportionv1.TaskStatus_TASK_STATUS_PENDING {
					pending = append(pending, number)
				} else {
					all = append(all, number)
				}
				jobOf[number] = uint32(i)
				number++
			}
		}
	}
	var steps []*apportionv1.Step
	if len(pending) == 0 || len(all) == 0 {
		return steps
	}
	candidates := slices.Clone(all)
	random.Shuffle(len(candidates), func(i, k int) { candidates[i], candidates[k] = candidates[k], candidates[i] })
	for range 3 {
		first := pending[random.IntN(len(pending))]
		claim := []uint32{first}
		for _, t := range pending {
			if t != first && jobOf[t] == jobOf[first] && random.IntN(2) == 0 {
				claim = append(claim, t)
			}
		}
		step := &apportionv1.ReclaimStep{Claimant: &apportionv1.Selector{Indices: claim}, Room: apportionv1.ClaimRoom(random.IntN(4))}
		if step.GetRoom() == apportionv1.ClaimRoom_CLAIM_ROOM_NODE {
			step.Node = &apportionv1.Selector{Indices: []uint32{uint32(random.IntN(max(len(s.GetNodes()), 1)))}}
		}
		if random.IntN(2) == 0 {
			step.Candidates, step.EligibleOnly = &apportionv1.Selector{Indices: candidates}, random.IntN(2) == 0
		}
		if len(claim) > 1 && random.IntN(3) == 0 {
			step.Claimant.Indices = claim[:1]
		}
		step.Explain = random.IntN(3) == 0
		steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Reclaim{Reclaim: step}})
		plan := &apportionv1.PlanStep{Job: &apportionv1.Selector{Indices: []uint32{jobOf[first]}}, Means: apportionv1.PlanMeans(random.IntN(5)), MaxVictims: uint32(random.IntN(3))}
		if random.IntN(3) == 0 {
			plan.Job, plan.Tasks = nil, &apportionv1.Selector{Indices: claim}
		}
		steps = append(steps, &apportionv1.Step{Step: &apportionv1.Step_Plan{Plan: plan}})
	}
	jobs := &apportionv1.Selector{}
	for i := range s.GetJobs() {
		jobs.Indices = append(jobs.GetIndices(), uint32(i))
	}
	random.Shuffle(len(jobs.GetIndices()), func(i, k int) { jobs.Indices[i], jobs.Indices[k] = jobs.Indices[k], jobs.Indices[i] })
	return append(steps, &apportionv1.Step{Step: &apportionv1.Step_Enqueue{Enqueue: &apportionv1.EnqueueStep{Jobs: jobs, Mode: apportionv1.EnqueueMode(1 + random.IntN(2))}}})
}

// answerOrNil answers a request; nil if it is refused.
func answerOrNil(r *apportionv1.SimulateRequest) *apportionv1.SimulateResponse {
	m, err := decode.Compile(r.GetInput().GetSnapshot())
	if err != nil {
		return nil
	}
	s, err := wire.Open(m, r.GetInput().GetPolicy(), wire.Options{})
	if err != nil {
		return nil
	}
	s.Show(false, r.GetInput().GetOmitNames())
	answers, err := s.DoAll(r.GetSteps())
	if err != nil {
		return nil
	}
	return &apportionv1.SimulateResponse{Basis: s.Basis(), Answers: answers}
}

var others = flag.Int("others", 40, "how many requests TestATrueAnswerToAnotherRequestIsFound changes")

// TestATrueAnswerToAnotherRequestIsFound changes one field of a request, and checks the true answer to the changed request against the one
// before: it is refused, or all fields in which it differs are on the list of what was not checked.
func TestATrueAnswerToAnotherRequestIsFound(t *testing.T) {
	raced.Skip(t)
	refused, listedOnly, same := 0, 0, 0
	missed := map[string]string{}
	snapshots := rapid.Custom(drawSnapshot)
	for seed := range *others {
		random := rand.New(rand.NewPCG(uint64(seed), 1))
		s := snapshots.Example(seed)
		if seed%2 == 0 {
			for _, n := range s.GetNodes() {
				everyAmount(n.ProtoReflect(), func(x float64) float64 { return x / 2 })
			}
		}
		policy := policies[random.IntN(len(policies))]
		request := proto.CloneOf(asked(t, s, policy, append(fairQuestions(s, 4), moreQuestions(s, random)...)...))
		request.Input.OmitNames = random.IntN(3) == 0
		response := answerOrNil(request)
		if response == nil {
			continue
		}
		truth, err := check.Response(request, response)
		require.NoError(t, err)
		require.Empty(t, truth.Faults, "%d %s", seed, policy)
		list := mutants(request.ProtoReflect(), "")
		for range 60 {
			m := list[random.IntN(len(list))]
			m.do()
			other := answerOrNil(request)
			m.undo()
			if other == nil || len(other.GetAnswers()) != len(response.GetAnswers()) {
				continue
			}
			paths := differences(plain(response).ProtoReflect(), plain(other).ProtoReflect(), "")
			if len(paths) == 0 {
				same++
				continue
			}
			report, err := check.Response(request, other)
			require.NoError(t, err, m.path)
			if len(report.Faults) > 0 {
				refused++
				continue
			}
			for _, path := range paths {
				if !listed(report, path) && !listed(truth, path) {
					missed[bare(path)] = fmt.Sprintf("%d %s: %s %s: %s is changed, not found and not listed", seed, policy, m.path, m.kind, path)
				}
			}
			listedOnly++
		}
	}
	t.Logf("%d refused, %d only where nothing is checked, %d the same", refused, listedOnly, same)
	for _, k := range slices.Sorted(maps.Keys(missed)) {
		t.Error(missed[k])
	}
}
