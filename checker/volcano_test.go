package checker_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/checker"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
)

// asked requests the shares of a snapshot with their derivation.
func asked(t require.TestingT, snapshot *apportionv1.Snapshot, policy string, steps ...*apportionv1.Step) *apportionv1.SimulateRequest {
	p := &apportionv1.Policy{}
	require.NoError(t, prototext.Unmarshal([]byte(policy), p))
	return &apportionv1.SimulateRequest{
		Input: &apportionv1.Input{Source: &apportionv1.Input_Snapshot{Snapshot: snapshot}, Rule: &apportionv1.Input_Policy{Policy: p}},
		Steps: append([]*apportionv1.Step{{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Explain: &apportionv1.Explain{}}}}}, steps...),
	}
}

func TestTheNumbersOfVolcanosPluginsFollowFromEachOther(t *testing.T) {
	for name, policy := range map[string]string{
		"proportion":            `tiers { plugins { proportion {} } }`,
		"capacity":              `tiers { plugins { capacity {} } }`,
		"capacity hierarchical": `tiers { plugins { capacity { hierarchical: true } } }`,
	} {
		t.Run(name, func(t *testing.T) {
			all := 0
			rapid.Check(t, func(t *rapid.T) {
				snapshot := generate.Snapshot(generate.Shape{
					Queues: rapid.IntRange(1, 12).Draw(t, "queues"), Jobs: rapid.IntRange(1, 20).Draw(t, "jobs"), Tasks: rapid.IntRange(1, 60).Draw(t, "tasks"),
					Nodes: rapid.IntRange(1, 8).Draw(t, "nodes"), Depth: rapid.IntRange(1, 3).Draw(t, "depth"),
					Dimensions: rapid.IntRange(2, 6).Draw(t, "dimensions"), Seed: rapid.Uint64Range(0, 1<<20).Draw(t, "seed"),
				})
				request := asked(t, snapshot, policy)
				report, err := checker.Check(request, answered(t, request))
				require.NoError(t, err)
				require.Empty(t, report.Faults)
				all += report.Checked
			})
			require.Positive(t, all)
		})
	}
}

func TestADeservedAmountOfProportionThatIsChangedIsFound(t *testing.T) {
	snapshot := generate.Snapshot(generate.Shape{Queues: 5, Jobs: 20, Tasks: 100, Nodes: 4, Seed: 1})
	request := asked(t, snapshot, `tiers { plugins { proportion {} } }`)
	answer := answered(t, request)
	for _, change := range []func(*apportionv1.PluginShares) []float64{
		func(p *apportionv1.PluginShares) []float64 { return p.Queues[1].Deserved.Amount },
		func(p *apportionv1.PluginShares) []float64 { return p.Proportion.Rounds[1].Remaining.Amount },
		func(p *apportionv1.PluginShares) []float64 { return p.Proportion.Rounds[0].Shares[0].Weighted.Amount },
		func(p *apportionv1.PluginShares) []float64 { return p.Proportion.Rounds[0].Shares[0].Deserved.Amount },
	} {
		changed := proto.CloneOf(answer)
		change(changed.Answers[0].GetShares().Plugins[0])[0]++
		report, err := checker.Check(request, changed)
		require.NoError(t, err)
		require.NotEmpty(t, report.Faults)
	}
}

func TestAResourceWithTooFewAmountsIsAFault(t *testing.T) {
	request := asked(t, generate.Snapshot(generate.Shape{Queues: 5, Jobs: 20, Tasks: 100, Nodes: 4, Seed: 1}), `tiers { plugins { proportion {} } }`)
	response := answered(t, request)
	remaining := response.Answers[0].GetShares().Plugins[0].Proportion.Rounds[0].Remaining
	given := proto.CloneOf(remaining)
	remaining.Amount = nil
	report, err := checker.Check(request, response)
	require.NoError(t, err)
	require.NotEmpty(t, report.Faults)

	remaining.Dimension, remaining.Amount = append(given.GetDimension(), 99), append(given.GetAmount(), 0)
	report, err = checker.Check(request, response)
	require.NoError(t, err)
	require.NotEmpty(t, report.Faults, "a dimension that the snapshot does not have")
}

func TestFieldsThatAreNotCheckedAreListedAlsoWhereTheAnswerLacksThem(t *testing.T) {
	request := asked(t, generate.Snapshot(generate.Shape{Queues: 5, Jobs: 20, Tasks: 100, Nodes: 4, Seed: 1}), `tiers { plugins { capacity {} } }`)
	request.Steps = append(request.Steps, &apportionv1.Step{Step: &apportionv1.Step_Preempt{Preempt: &apportionv1.PreemptStep{
		Claimant: &apportionv1.Tasks{Index: []uint32{0}},
	}}})
	response := answered(t, request)
	last := len(response.GetAnswers()) - 1
	response.Answers[last] = &apportionv1.Answer{Answer: &apportionv1.Answer_Preempt{Preempt: &apportionv1.VictimsAnswer{}}}
	report, err := checker.Check(request, response)
	require.NoError(t, err)
	listed := map[string]bool{}
	for _, u := range report.Unchecked {
		listed[u.Field] = true
	}
	for _, field := range []string{"answers[1].preempt.decided", "answers[1].preempt.victims", "basis.policy_digest"} {
		require.True(t, listed[field] || len(report.Faults) > 0, "%s: %v", field, report.Unchecked)
	}
}

// TestACheckOfCapacityPassesWithinVolcanosTolerance asks for 0.05 of a milli-core more than a queue deserves: capacity compares with a
// tolerance of 0.1 there, so the check passes, and one that is said to fail is refused. Proportion has no tolerance: its check fails.
func TestACheckOfCapacityPassesWithinVolcanosTolerance(t *testing.T) {
	cpu := func(x float64) *apportionv1.Resource {
		return &apportionv1.Resource{Dimension: []uint32{0}, Amount: []float64{x}}
	}
	snapshot := &apportionv1.Snapshot{
		Dimensions: []string{"cpu", "memory"},
		Nodes:      []*apportionv1.Node{{Name: "n", Allocatable: cpu(1000)}},
		Queues:     []*apportionv1.Queue{{Name: "q", Deserved: cpu(100)}},
		Jobs: []*apportionv1.Job{{Namespace: "ns", Name: "j", Queue: "q", Groups: []*apportionv1.TaskGroup{{
			Request: cpu(100.05), Tasks: []*apportionv1.Task{{Name: "t", Status: apportionv1.TaskStatus_TASK_STATUS_PENDING}},
		}}}},
	}
	for policy, passes := range map[string]bool{`tiers { plugins { capacity {} } }`: true, `tiers { plugins { proportion {} } }`: false} {
		// The only queue of proportion deserves what the nodes have.
		snapshot.Nodes[0].Allocatable = cpu(map[bool]float64{true: 1000, false: 100}[passes])
		request := asked(t, snapshot, policy, &apportionv1.Step{Step: &apportionv1.Step_Preemptive{Preemptive: &apportionv1.PreemptiveStep{
			Tasks: &apportionv1.Tasks{Index: []uint32{0}}, Explain: true,
		}}})
		response := answered(t, request)
		report, err := checker.Check(request, response)
		require.NoError(t, err)
		require.Empty(t, report.Faults, policy)
		compared := 0
		for _, check := range response.GetAnswers()[1].GetPreemptive().GetTasks()[0].GetChecks() {
			if check.GetReason().GetCode() != apportionv1.ReasonCode_REASON_CODE_ABOVE_DESERVED {
				continue
			}
			compared++
			require.Equal(t, passes, check.GetPassed(), "%s: %v", policy, check)
			check.Passed = !passes
			report, err = checker.Check(request, response)
			require.NoError(t, err)
			require.NotEmpty(t, report.Faults, policy)
			check.Passed = passes
		}
		require.Equal(t, 1, compared, policy)
	}
}
