package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/ledger"
)

func task(uid string, status apportionv1.TaskStatus, scheduled int64) *apportionv1.Task {
	out := &apportionv1.Task{Uid: uid, Status: status, Node: proto.Uint32(0)}
	if scheduled > 0 {
		out.Detail = &apportionv1.TaskDetail{ScheduleTime: new(scheduled * 1e9)}
	}
	return out
}

func cluster(tasks ...*apportionv1.Task) *apportionv1.Snapshot {
	return &apportionv1.Snapshot{
		Dimensions: []string{"cpu", "memory", "gpu"},
		Nodes:      []*apportionv1.Node{{Name: "n", Allocatable: resource(16000, 64<<30, 8000), UsedByOthers: resource(0, 0, 1000)}},
		Queues: []*apportionv1.Queue{
			{Name: "dept", CreateTime: 1},
			{Name: "a", Parent: "dept", CreateTime: 1},
			{Name: "b", Parent: "dept", CreateTime: 1},
			{Name: "lost", Parent: "nowhere", CreateTime: 1},
		},
		Jobs: []*apportionv1.Job{
			{Name: "j", Queue: "a", Owner: "ann", Groups: []*apportionv1.TaskGroup{{Request: resource(1500, 1<<30, 2000), Tasks: tasks}}},
		},
	}
}

func resource(amounts ...float64) *apportionv1.Resource {
	out := &apportionv1.Resource{}
	for d, amount := range amounts {
		out.Dimensions, out.Amounts = append(out.Dimensions, uint32(d)), append(out.Amounts, amount)
	}
	return out
}

const running = apportionv1.TaskStatus_TASK_STATUS_RUNNING

func TestAFollowedClusterIsChargedForWhatRuns(t *testing.T) {
	l, err := ledger.New(ledger.Options{Epoch: time.Hour, HalfLife: 1, Window: 8})
	require.NoError(t, err)
	const begin = 1000 * 3600
	s := cluster(task("t1", running, begin), task("t2", running, 0), task("t3", apportionv1.TaskStatus_TASK_STATUS_PENDING, 0),
		task("t4", apportionv1.TaskStatus_TASK_STATUS_PIPELINED, 0))
	l.Follow(s, begin+600)
	l.Follow(s, begin+1800)
	// t2 ended when it was last seen; it started when it was first seen.
	s = cluster(task("t1", running, begin))
	l.Follow(s, begin+3600)
	used := named(l, l.Spent(1000, 1001))
	seconds := int64(3600 + 1200)
	want := map[string]int64{"cpu": 1500 * seconds, "memory": 1024 * seconds, "gpu": 2 * seconds}
	for _, to := range []ledger.Line{{Queue: "a"}, {Queue: "dept"}, {Queue: "root"}, {Queue: "a", Owner: "ann", Owned: true}} {
		require.Equal(t, want, used[to], to)
	}
	require.Len(t, used, 4)
	require.Zero(t, l.Counts().Unseen)

	budgets := []ledger.Budget{{Queue: "a", Hard: true, Periods: []ledger.Period{{Begin: 0, Amount: map[string]int64{"gpu": 10000}}}}}
	l.Fill(s, begin+3600, budgets)
	require.Equal(t, int64(1001), s.GetMemory().GetEpoch())
	require.Equal(t, int64(3600), s.GetMemory().GetEpochSeconds())
	require.Equal(t, uint32(1), s.GetMemory().GetHalfLifeEpochs())
	require.Equal(t, int64(7)*3600*255/128, s.GetMemory().GetOffered().GetQuantumSeconds()[2], "8 devices, one of them used by others")
	require.Equal(t, []int64{1500 * seconds, 1024 * seconds, 2 * seconds}, s.GetQueues()[1].GetUsage().GetQuantumSeconds())
	require.NotNil(t, s.GetQueues()[2].GetUsage(), "an idle queue has used nothing, which is known")
	require.Empty(t, s.GetQueues()[2].GetUsage().GetQuantumSeconds())
	require.Equal(t, "ann", s.GetQueues()[1].GetOwners()[0].GetOwner())
	require.Empty(t, s.GetQueues()[0].GetOwners())
	require.Equal(t, apportionv1.BudgetKind_BUDGET_KIND_HARD, s.GetQueues()[1].GetBudget().GetKind())
	require.Equal(t, []int64{10000}, s.GetQueues()[1].GetBudget().GetAmount().GetQuantumSeconds())
	require.Equal(t, []int64{2 * seconds}, s.GetQueues()[1].GetBudget().GetSpent().GetQuantumSeconds())

	again := proto.CloneOf(s)
	l.Follow(again, begin+5000)
	l.Fill(again, begin+5000, budgets)
	require.True(t, proto.Equal(s, again), "it is the same for the whole epoch")
}

func TestTasksWithoutEvidenceAreCounted(t *testing.T) {
	l, err := ledger.New(ledger.Options{Epoch: time.Hour})
	require.NoError(t, err)
	s := cluster(task("t1", running, 3600), task("t4", apportionv1.TaskStatus_TASK_STATUS_PIPELINED, 0))
	s.Jobs[0].Groups[0].Counts = []*apportionv1.TaskCount{{Status: running, Count: 5}, {Status: apportionv1.TaskStatus_TASK_STATUS_PENDING, Count: 9}}
	s.Jobs = append(s.Jobs,
		&apportionv1.Job{Name: "x", Queue: "lost", Groups: []*apportionv1.TaskGroup{{Request: resource(0, 0, 3000), Tasks: []*apportionv1.Task{task("t5", running, 0)}}}},
		&apportionv1.Job{Name: "y", Queue: "dept", Groups: []*apportionv1.TaskGroup{{Request: resource(1), Tasks: []*apportionv1.Task{task("t6", running, 0)}}}})
	l.Follow(s, 7200)
	require.Equal(t, uint64(1+5+1+1), l.Counts().Unseen)
	require.Equal(t, 1, l.Records())
	l.Fill(s, 7200, nil)
	require.Less(t, s.GetMemory().GetOffered().GetQuantumSeconds()[2], int64(5)*3600*224, "what a queue that is set aside holds is not offered")
}

func TestATaskOfTheFutureIsRefused(t *testing.T) {
	l, err := ledger.New(ledger.Options{Epoch: time.Hour})
	require.NoError(t, err)
	l.Follow(cluster(task("t1", running, 99999)), 3600)
	require.Equal(t, uint64(1), l.Counts().Refused)
	require.Zero(t, l.Records())
}

func TestOwnersWithoutEndAreChargedToTheirQueue(t *testing.T) {
	l, err := ledger.New(ledger.Options{Epoch: time.Hour, HalfLife: 1, Window: 8})
	require.NoError(t, err)
	s, job := cluster(), cluster().GetJobs()[0]
	s.Jobs = nil
	const jobs = 5000
	for i := range jobs {
		own := proto.CloneOf(job)
		own.Name, own.Owner = fmt.Sprint(i), fmt.Sprint("owner-", i)
		own.Groups[0].Tasks = []*apportionv1.Task{task(own.GetName(), running, 3600)}
		s.Jobs = append(s.Jobs, own)
	}
	l.Follow(s, 7200)
	l.Fill(s, 7200, nil)
	for _, q := range s.GetQueues() {
		if q.GetName() == "a" {
			require.Len(t, q.GetOwners(), 4097, "those that have a name, and the rest")
			require.Equal(t, int64(jobs*1500*3600), q.GetUsage().GetQuantumSeconds()[0], "all of it is charged to the queue")
		}
	}
}
