package audit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/client/audit"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestWhatIsStatedOfPastUsageAndDoesNotCountIsFound(t *testing.T) {
	usage := func(dimension uint32, amount int64) *apportionv1.Usage {
		return &apportionv1.Usage{Dimensions: []uint32{dimension}, QuantumSeconds: []int64{amount}}
	}
	budget := func(kind apportionv1.BudgetKind, amount, spent int64) *apportionv1.Budget {
		return &apportionv1.Budget{Kind: kind, Amount: usage(0, amount), Spent: usage(0, spent)}
	}
	const hard, soft = apportionv1.BudgetKind_BUDGET_KIND_HARD, apportionv1.BudgetKind_BUDGET_KIND_SOFT
	memory := &apportionv1.Memory{EpochSeconds: 3600, HalfLifeEpochs: 8, Epoch: 1000}
	for name, test := range map[string]struct {
		policy string
		change func(s *apportionv1.Snapshot)
		// witnesses by rule.
		want map[string]string
	}{
		"nothing is stated": {change: func(s *apportionv1.Snapshot) { s.Memory = memory }},
		"what is stated is in order": {change: func(s *apportionv1.Snapshot) {
			s.Memory, s.Queues[0].Usage, s.Queues[0].Budget = memory, usage(0, 5), budget(hard, 10, 5)
		}},
		"usage without a half-life": {
			change: func(s *apportionv1.Snapshot) { s.Queues[0].Usage = usage(0, 5) },
			want:   map[string]string{"usage-ignored": "1 queue states usage, a budget or owners, and the snapshot has no memory"},
		},
		"a policy that does not remember": {
			policy: "proportion", change: func(s *apportionv1.Snapshot) { s.Memory, s.Queues[0].Usage = memory, usage(0, 5) },
			want: map[string]string{"usage-ignored": "1 queue states usage, a budget or owners, and the policy fair does not decide"},
		},
		"a hard budget that is used up": {
			change: func(s *apportionv1.Snapshot) { s.Memory, s.Queues[0].Budget = memory, budget(hard, 10, 12) },
			want:   map[string]string{"budget-used-up": "queue a has spent 12 of 10 quantum-seconds of cpu: it is entitled to nothing"},
		},
		"a soft budget that is used up": {
			change: func(s *apportionv1.Snapshot) { s.Memory, s.Queues[0].Budget = memory, budget(soft, 10, 10) },
			want: map[string]string{
				"budget-used-up": "queue a has spent 10 of 10 quantum-seconds of cpu: its weight with memory is next to nothing",
			},
		},
		"a budget that earlier periods have used up": {
			change: func(s *apportionv1.Snapshot) { s.Memory, s.Queues[0].Budget = memory, budget(hard, 0, 0) },
			want:   map[string]string{"budget-of-nothing": "queue a may use 0 of cpu in this period: it is entitled to nothing"},
		},
		"a resource that no node has": {
			change: func(s *apportionv1.Snapshot) {
				s.Memory, s.Dimensions = memory, append(s.Dimensions, "nvidia.com/gup")
				s.Queues[0].Usage = usage(uint32(len(s.Dimensions)-1), 5)
			},
			want: map[string]string{"usage-of-no-resource": "queue a states usage or a budget of nvidia.com/gup, and no node has it"},
		},
		"tasks that run for days": {
			change: func(s *apportionv1.Snapshot) {
				s.Memory, s.Queues[0].Usage, s.AsOf = memory, usage(0, 5), int64(72*time.Hour)
				for _, task := range s.Jobs[0].Groups[0].Tasks {
					task.Detail = &apportionv1.TaskDetail{ScheduleTime: new(int64(24 * time.Hour))}
				}
			},
			want: map[string]string{
				"half-life-shorter-than-tasks": "half of the running tasks have run for 2d or longer, and usage counts half after 8h",
			},
		},
		"some jobs without an owner": {
			change: func(s *apportionv1.Snapshot) {
				s.Memory, s.Queues[0].Usage, s.Jobs[1].Owner = memory, usage(0, 5), "ann"
			},
			want: map[string]string{"jobs-without-owner": "1 job of queue a names no owner, 1 names one"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			running := client.Resources{"cpu": "1"}
			snapshot, err := client.NewSnapshot().Node(client.Node{Name: "n", Allocatable: client.Resources{"cpu": "8"}}).
				Queue(client.Queue{Name: "a"}, client.Queue{Name: "b"}).Job(
				client.Job{
					Name: "first", Queue: "a", MinAvailable: 1, MinResources: running, Phase: apportionv1.JobPhase_JOB_PHASE_RUNNING,
					Groups: []client.Group{{Request: running, Tasks: []client.Task{{UID: "t", Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING, Node: "n"}}}},
				},
				client.Job{
					Name: "second", Queue: "a", MinAvailable: 1, MinResources: running, Phase: apportionv1.JobPhase_JOB_PHASE_RUNNING,
					Groups: []client.Group{{Request: running, Running: 1}},
				}).Build()
			require.NoError(t, err)
			test.change(snapshot)
			if test.policy == "" {
				test.policy = "fair"
			}
			policy, ok := client.Preset(test.policy)
			require.True(t, ok)
			found, _, err := audit.Check(t.Context(), client.InProcess(), client.Input{Snapshot: snapshot, Policy: policy}, audit.Limits{Moves: -1})
			require.NoError(t, err)
			got := map[string]string{}
			for _, f := range found {
				got[f.Rule] = f.Witness
			}
			if test.want == nil {
				test.want = map[string]string{}
			}
			require.Equal(t, test.want, got)
		})
	}
}
