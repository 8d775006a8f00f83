package text_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

func TestTheSentencesOfAnExplanationHaveOneUnit(t *testing.T) {
	const gi = 1 << 30
	names := text.Names{Dimensions: []string{"memory"}, Queues: []string{"ml"}}
	blocking := uint32(0)
	e := &apportionv1.Explanation{
		Name: "ml/train", Verdict: apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED, Blocking: &blocking,
		Findings: []*apportionv1.Finding{
			{
				Check: apportionv1.CheckKind_CHECK_KIND_ADMISSION, Outcome: apportionv1.CheckOutcome_CHECK_OUTCOME_FAILED,
				Causes: []*apportionv1.Cause{{
					Code: apportionv1.CauseCode_CAUSE_CODE_ABOVE_REAL_CAPABILITY, Dimensions: []uint32{0}, Queue: new(uint32(0)),
					Have: 8 * gi, Need: 4 * gi, Limit: 10 * gi,
				}},
			},
			{
				Check: apportionv1.CheckKind_CHECK_KIND_NODES, Outcome: apportionv1.CheckOutcome_CHECK_OUTCOME_FAILED, Task: new(uint32(0)),
				Causes: []*apportionv1.Cause{{
					Code: apportionv1.CauseCode_CAUSE_CODE_INSUFFICIENT_RESOURCE, Dimensions: []uint32{0},
					Have: 8 * gi, Need: 4 * gi, Limit: 8*gi + 100<<20, Count: 1,
				}},
				Nodes: []*apportionv1.Cause{{
					Count: 1, Code: apportionv1.CauseCode_CAUSE_CODE_INSUFFICIENT_RESOURCE, Dimensions: []uint32{0},
				}},
			},
		},
	}
	text.Explain(names, e)
	require.Equal(t, "queue ml may hold at most 10240Mi of memory: 8192Mi taken, 4096Mi more asked", e.GetFindings()[0].GetText())
	require.Contains(t, e.GetFindings()[1].GetText(), "it asks for 4096Mi memory, at most 100Mi is left on the node")
	require.Contains(t, e.GetText(), "because queue ml may hold at most 10240Mi of memory: 8192Mi taken, 4096Mi more asked. "+
		"Either at least 2048Mi memory")
}

func TestACauseNamesWhatKeepsTasksFromNodesWithEnoughLeft(t *testing.T) {
	const reserved, excluded = apportionv1.CauseCode_CAUSE_CODE_NODE_RESERVED, apportionv1.CauseCode_CAUSE_CODE_NODE_NOT_IN_SET
	const closed, full = apportionv1.CauseCode_CAUSE_CODE_NODE_UNSCHEDULABLE, apportionv1.CauseCode_CAUSE_CODE_INSUFFICIENT_RESOURCE
	group := func(code apportionv1.CauseCode, detail string, free bool) string {
		return text.Group(text.Names{Dimensions: []string{"cpu"}}, &apportionv1.PendingGroup{
			Verdict: apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED, Check: apportionv1.CheckKind_CHECK_KIND_NODES, Free: free,
			Cause: &apportionv1.Cause{Code: code, Detail: detail, Dimensions: []uint32{0}},
		}, nil)
	}
	for want, got := range map[string]string{
		"because nodes with enough left are reserved for maintenance": group(reserved, "maintenance", true),
		"because nodes with enough left are excluded: taint x":        group(excluded, "taint x", true),
		"because nodes are excluded: taint x":                         group(excluded, "taint x", false),
		"because nodes with enough left take no new tasks: cordoned":  group(closed, "cordoned", true),
		"because no usable node has enough cpu left":                  group(full, "", false),
	} {
		require.Equal(t, want, got)
	}
}

func TestTheWaitingJobsAreCountedBesideTheirCauses(t *testing.T) {
	kind := func(verdict apportionv1.PendingVerdict, jobs uint32) *apportionv1.PendingKind {
		return &apportionv1.PendingKind{Verdict: verdict, JobCount: jobs}
	}
	answer := &apportionv1.ExplainAnswer{
		WaitingCount: 13, NodeCount: 3, SchedulableNodeCount: 2, Queues: make([]*apportionv1.PendingQueue, 2),
		Kinds: []*apportionv1.PendingKind{
			kind(apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED, 7), kind(apportionv1.PendingVerdict_PENDING_VERDICT_BLOCKED, 2),
			kind(apportionv1.PendingVerdict_PENDING_VERDICT_UNDETERMINED, 3), kind(apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN, 1),
		},
	}
	require.Equal(t, "13 jobs wait in 2 queues: 9 are blocked for 2 causes, 1 only waits for its turn, of 3 it is not known. "+
		"2 of 3 nodes can take new tasks.", text.Waiting(answer))
	answer.WaitingCount = 20
	require.Contains(t, text.Waiting(answer), "13 of 20 jobs that wait match in 2 queues: 9 are blocked")
}
