package text_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/contract/text"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestAGangWithAGatedTaskNeedsMoreThanWhatWaits(t *testing.T) {
	failed := apportionv1.CheckOutcome_CHECK_OUTCOME_FAILED
	tasks := &apportionv1.Finding{
		Check: apportionv1.CheckKind_CHECK_KIND_TASKS, Outcome: failed,
		Reasons: []*apportionv1.Reason{
			{Code: apportionv1.ReasonCode_REASON_CODE_NOT_READY, Have: 2, Need: 2, Limit: 3},
			{Code: apportionv1.ReasonCode_REASON_CODE_TASKS_GATED, Have: 1, Need: 2},
		},
	}
	nodes := &apportionv1.Finding{
		Check: apportionv1.CheckKind_CHECK_KIND_NODES, Outcome: failed,
		Amount:  &apportionv1.Resource{Dimension: []uint32{0}, Amount: []float64{8000}},
		Reasons: []*apportionv1.Reason{{Code: apportionv1.ReasonCode_REASON_CODE_NO_JOINT_PLACEMENT, Have: 1, Limit: 2}},
	}
	job := &apportionv1.Explanation{
		WaitingTasks: 2, NeededTasks: 2, GatedTasks: 1, MinAvailable: 3, Findings: []*apportionv1.Finding{tasks, nodes},
	}
	require.Equal(t, "once 2 waiting tasks are placed, the job has 2 tasks ready and needs 3; a scheduling gate holds 1 task back",
		text.Finding(names, job, tasks))
	require.Equal(t, "the nodes have no room at the same time for 2 waiting tasks that no scheduling gate holds back (8 cpu); "+
		"best fit places 1", text.Finding(names, job, nodes))
}
