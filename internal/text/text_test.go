package text_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/text"
)

var names = text.Names{Dimensions: []string{"cpu", "memory", "nvidia.com/gpu"}, Queues: []string{"root", "research"}}

func TestEveryReasonHasWords(t *testing.T) {
	for number, name := range apportionv1.CauseCode_name {
		if number == 0 {
			continue
		}
		reason := &apportionv1.Cause{Code: apportionv1.CauseCode(number)}
		clause := text.Reason(names, reason)
		require.NotContains(t, clause, "have 0, need 0", name)
		reason.Queue, reason.Dimensions, reason.Plugin, reason.Detail = new(uint32(1)), []uint32{2}, "gang", "worker"
		require.Contains(t, text.Reason(names, reason), "(gang)", name)
	}
}

func fairReason(code apportionv1.CauseCode, have, need, limit float64) *apportionv1.Cause {
	return &apportionv1.Cause{
		Plugin: "fair", Code: code, Queue: new(uint32(1)), Dimensions: []uint32{2}, Have: have, Need: need, Limit: limit,
	}
}

func TestReasonsNameTheirNumbers(t *testing.T) {
	for _, test := range []struct {
		name   string
		reason *apportionv1.Cause
		text   string
	}{
		{
			"a queue that would exceed its real capability",
			&apportionv1.Cause{
				Plugin: "proportion", Code: apportionv1.CauseCode_CAUSE_CODE_ABOVE_REAL_CAPABILITY,
				Queue: new(uint32(1)), Dimensions: []uint32{2}, Have: 20000, Need: 8000, Limit: 24000,
			},
			"queue research may hold at most 24 of nvidia.com/gpu: 20 taken, 8 more asked (proportion)",
		},
		{
			"memory in binary units",
			&apportionv1.Cause{
				Code:  apportionv1.CauseCode_CAUSE_CODE_GUARANTEE_KEPT,
				Queue: new(uint32(1)), Dimensions: []uint32{1}, Have: 3 << 30, Need: 2 << 30, Limit: 2 << 30,
			},
			"queue research holds 3Gi of memory, 2Gi less would break its guarantee of 2Gi",
		},
		{
			"counts of tasks",
			&apportionv1.Cause{Plugin: "gang", Code: apportionv1.CauseCode_CAUSE_CODE_GANG_MINIMUM, Have: 4, Limit: 4},
			"its job has 4 tasks ready and must keep 4 (gang)",
		},
		{
			"durations",
			&apportionv1.Cause{Plugin: "cdp", Code: apportionv1.CauseCode_CAUSE_CODE_COOLDOWN, Have: 90e9, Limit: 600e9},
			"it was scheduled 1m30s ago and is protected for 10m (cdp)",
		},
		{
			"a quota of a namespace",
			&apportionv1.Cause{
				Plugin: "resourcequota", Code: apportionv1.CauseCode_CAUSE_CODE_ABOVE_NAMESPACE_QUOTA, Dimensions: []uint32{2}, Have: 6000,
				Need: 4000, Limit: 8000, Detail: "requests.nvidia.com/gpu of quota team",
			},
			"its namespace may use at most 8 requests.nvidia.com/gpu of quota team: 6 used or permitted, 4 more asked (resourcequota)",
		},
		{
			"a disruption budget",
			&apportionv1.Cause{Plugin: "pdb", Code: apportionv1.CauseCode_CAUSE_CODE_DISRUPTION_BUDGET, Have: 1, Limit: 2, Detail: "db"},
			"disruption budget db allows 1 more eviction (pdb)",
		},
		{
			"a disruption budget that is used up",
			&apportionv1.Cause{Plugin: "pdb", Code: apportionv1.CauseCode_CAUSE_CODE_DISRUPTION_BUDGET, Limit: 2, Detail: "db"},
			"disruption budget db allows no more evictions (pdb)",
		},
		{
			"a disruption budget with many left",
			&apportionv1.Cause{Plugin: "pdb", Code: apportionv1.CauseCode_CAUSE_CODE_DISRUPTION_BUDGET, Have: 2, Limit: 2, Detail: "db"},
			"disruption budget db allows 2 more evictions (pdb)",
		},
		{
			"a job of which few may go",
			&apportionv1.Cause{Plugin: "tdm", Code: apportionv1.CauseCode_CAUSE_CODE_JOB_DISRUPTION, Limit: 1},
			"only 1 task of its job may be evicted at once (tdm)",
		},
		{
			"a job of which none may go",
			&apportionv1.Cause{Plugin: "tdm", Code: apportionv1.CauseCode_CAUSE_CODE_JOB_DISRUPTION},
			"none of its job may be evicted now (tdm)",
		},
		{
			"a node that is not lent",
			&apportionv1.Cause{Plugin: "tdm", Code: apportionv1.CauseCode_CAUSE_CODE_REVOCABLE_ZONE_CLOSED, Detail: "night"},
			"the node's revocable zone night is not lent now (tdm)",
		},
		{
			"a loan",
			fairReason(apportionv1.CauseCode_CAUSE_CODE_BORROWED, 7000, 4000, 8000),
			"queue research may borrow 3 nvidia.com/gpu that no entitled task can use now (fair)",
		},
		{
			"a loan to a queue that is above its entitlement",
			fairReason(apportionv1.CauseCode_CAUSE_CODE_BORROWED, 9000, 4000, 8000),
			"queue research may borrow 4 nvidia.com/gpu that no entitled task can use now (fair)",
		},
		{
			"no loan, for nothing is free",
			fairReason(apportionv1.CauseCode_CAUSE_CODE_NOT_IDLE, 0, 2000, -1000),
			"queue research is not entitled to 2 nvidia.com/gpu more and cannot borrow it: none is free (fair)",
		},
		{
			"no loan, for too little is free",
			fairReason(apportionv1.CauseCode_CAUSE_CODE_NOT_IDLE, 0, 2000, 1000),
			"queue research is not entitled to 2 nvidia.com/gpu more and cannot borrow it: 1 nvidia.com/gpu is free (fair)",
		},
		{
			"no loan, for some must be left to others",
			fairReason(apportionv1.CauseCode_CAUSE_CODE_NOT_IDLE, 3000, 2000, 4000),
			"queue research is not entitled to 2 nvidia.com/gpu more and cannot borrow it: of the 4 nvidia.com/gpu that is free, " +
				"3 is kept for entitled tasks of other queues (fair)",
		},
		{
			"no loan, for all must be left to others",
			fairReason(apportionv1.CauseCode_CAUSE_CODE_NOT_IDLE, 5000, 2000, 4000),
			"queue research is not entitled to 2 nvidia.com/gpu more and cannot borrow it: all that is free, 4 nvidia.com/gpu, " +
				"is kept for entitled tasks of other queues (fair)",
		},
		{
			"a victim that costs more than it brings",
			&apportionv1.Cause{
				Plugin: "fair", Code: apportionv1.CauseCode_CAUSE_CODE_NOT_CALM, Queue: new(uint32(1)), Dimensions: []uint32{0},
				Have: 0.4091, Need: 10000, Limit: 0.1818,
			},
			"taking this task of 10 cpu would cost queue research more than the claimant would gain: " +
				"0.409 against 0.182 of the cluster (fair)",
		},
		{
			"a victim of a queue that keeps its line",
			fairReason(apportionv1.CauseCode_CAUSE_CODE_WITHIN_ENTITLEMENT, 4000, 2000, 8000),
			"queue research holds 4 of nvidia.com/gpu and keeps up to 8 against this claimant (fair)",
		},
		{
			"nothing known of the queue",
			&apportionv1.Cause{Code: apportionv1.CauseCode_CAUSE_CODE_QUEUE_NOT_OPEN, Queue: new(uint32(7))},
			"queue #7 is not open",
		},
		{
			"a code of a newer server",
			&apportionv1.Cause{Code: 999, Dimensions: []uint32{0}, Have: 1000, Need: 500, Limit: math.Inf(1)},
			"999 of cpu: have 1, need 0.5, limit unlimited",
		},
	} {
		t.Run(test.name, func(t *testing.T) { require.Equal(t, test.text, text.Reason(names, test.reason)) })
	}
}

func TestPastUsageIsPutIntoWords(t *testing.T) {
	names := text.Names{Dimensions: []string{"cpu", "nvidia.com/gpu"}, Queues: []string{"vision", "language", "speech"}}
	e := &apportionv1.Explanation{
		Name: "train", Verdict: apportionv1.PendingVerdict_PENDING_VERDICT_IN_TURN, Phase: apportionv1.JobPhase_JOB_PHASE_RUNNING,
		Memory: &apportionv1.MemoryStanding{Dimension: new(uint32(1)), Used: 0.61, Part: 0.305, FirstQueues: []uint32{1}, Until: 1764007200e9},
	}
	require.Contains(t, text.Explanation(names, e), "Queue vision has 61 % of the recent usage of nvidia.com/gpu among its siblings, "+
		"2.0 times its part: what becomes free goes to queue language first, at least until 2025-11-24 18:00:00 UTC.")
	e.Memory.Dimension, e.Memory.FirstQueues, e.Memory.Until = nil, []uint32{1, 2}, 0
	require.Contains(t, text.Explanation(names, e), "61 % of the recent usage among its siblings, 2.0 times its part: "+
		"what becomes free goes to queues language and speech first.")
	e.Memory.Used = 0.3
	require.Contains(t, text.Explanation(names, e), "For its weight, queue vision has more of the recent usage than queues language and speech: "+
		"what becomes free goes to queues language and speech first.")
	e.Memory.Used, e.Memory.FirstQueues = 0.61, nil
	require.Contains(t, text.Explanation(names, e), "goes to queues that have used less first.")
}

func TestAReservationIsPutIntoWords(t *testing.T) {
	names := text.Names{Job: func(uint32) string { return "language/pretrain-7b" }}
	kept := &apportionv1.Reservation{StartTime: 1764007200e9, Tasks: []uint32{0, 1, 2, 3, 4}, Nodes: []uint32{7, 3, 5, 7, 9}}
	holder := &apportionv1.Explanation{Name: "language/pretrain-7b", Reservation: kept}
	other := &apportionv1.Explanation{Name: "vision/small", Job: 1, Reservation: kept}
	require.Contains(t, text.Explanation(names, holder), "It holds 4 nodes from 2025-11-24 18:00:00 UTC on.")
	require.Contains(t, text.Explanation(names, other), "4 nodes are kept free for language/pretrain-7b from 2025-11-24 18:00:00 UTC on.")
	kept.Nodes = []uint32{2, 2, 2, 2, 2}
	require.Contains(t, text.Explanation(names, other), "1 node is kept free for language/pretrain-7b from 2025-11-24 18:00:00 UTC on.")
	kept.Nodes = nil
	require.Contains(t, text.Explanation(names, other), "Room for 5 tasks is kept free for language/pretrain-7b from 2025-11-24 18:00:00 UTC on.")
}

func TestAGangWithAGatedTaskNeedsMoreThanWhatWaits(t *testing.T) {
	failed := apportionv1.CheckOutcome_CHECK_OUTCOME_FAILED
	tasks := &apportionv1.Finding{
		Check: apportionv1.CheckKind_CHECK_KIND_TASKS, Outcome: failed,
		Causes: []*apportionv1.Cause{
			{Code: apportionv1.CauseCode_CAUSE_CODE_NOT_READY, Have: 2, Need: 2, Limit: 3},
			{Code: apportionv1.CauseCode_CAUSE_CODE_TASKS_GATED, Have: 1, Need: 2},
		},
	}
	nodes := &apportionv1.Finding{
		Check: apportionv1.CheckKind_CHECK_KIND_NODES, Outcome: failed,
		Amount: &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{8000}},
		Causes: []*apportionv1.Cause{{Code: apportionv1.CauseCode_CAUSE_CODE_NO_JOINT_PLACEMENT, Have: 1, Limit: 2}},
	}
	job := &apportionv1.Explanation{
		WaitingTasks: 2, NeededTasks: 2, GatedTasks: 1, MinAvailable: 3, Findings: []*apportionv1.Finding{tasks, nodes},
	}
	require.Equal(t, "once 2 waiting tasks are placed, the job has 2 tasks ready and needs 3; a scheduling gate holds 1 task back",
		text.Finding(names, job, tasks))
	require.Equal(t, "the nodes have no room at the same time for 2 waiting tasks that no scheduling gate holds back (8 cpu); "+
		"best fit places 1", text.Finding(names, job, nodes))
}

func TestTheSentenceAboutALimitNamesGroupLimitAndUse(t *testing.T) {
	reason := &apportionv1.Cause{
		Plugin: "nodegroup", Code: apportionv1.CauseCode_CAUSE_CODE_ABOVE_NODE_GROUP_LIMIT, Queue: new(uint32(1)), Dimensions: []uint32{0},
		Have: 2000, Need: 1500, Limit: 3000, Detail: "g\x1b1",
	}
	require.Equal(t, "queue "+names.Queue(1)+` may hold at most 3 cpu on the nodes of group g\x1b1: 2 taken, 1.5 more asked (nodegroup)`,
		text.Reason(names, reason))
}

func TestWhatTheNodesLackIsSaidOnceAndEvictionsReferToIt(t *testing.T) {
	counts := []*apportionv1.Cause{{Count: 2, Code: apportionv1.CauseCode_CAUSE_CODE_NODE_NOT_IN_SET, Detail: "the claim"}}
	failed, task := apportionv1.CheckOutcome_CHECK_OUTCOME_FAILED, uint32(0)
	nodes := &apportionv1.Finding{
		Check: apportionv1.CheckKind_CHECK_KIND_NODES, Outcome: failed, Task: &task, Nodes: counts,
		Causes: counts,
	}
	eviction := &apportionv1.Finding{
		Check: apportionv1.CheckKind_CHECK_KIND_EVICTION,
		Miss:  &apportionv1.PlanMiss{Check: apportionv1.CheckKind_CHECK_KIND_NODES, Task: &task, Nodes: counts},
	}
	job := &apportionv1.Explanation{Findings: []*apportionv1.Finding{nodes, eviction}}
	require.Equal(t, "no evictions make room, for the reason found for the nodes", text.Finding(text.Names{}, job, eviction))
	eviction.Miss.Nodes = []*apportionv1.Cause{{Count: 1, Code: apportionv1.CauseCode_CAUSE_CODE_NODE_NOT_IN_SET, Detail: "another"}}
	require.Contains(t, text.Finding(text.Names{}, job, eviction), "no evictions make room: ")
}
