package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/wire"
)

// TestADimensionThatIsNamedTwiceIsRefusedOnEveryWayIn names dimensions twice in a snapshot, in a change, and in steps. The session
// continues unchanged.
func TestADimensionThatIsNamedTwiceIsRefusedOnEveryWayIn(t *testing.T) {
	for _, names := range [][]string{
		{"cpu", "cpu"},
		{"cpu", "cpu", "cpu"},
		{"memory", "memory", "memory", "memory"},
		{"cpu", "memory", "cpu", "memory"},
		{"gpu", "gpu"},
		{"cpu", "gpu", "memory", "gpu"},
	} {
		_, err := decode.Compile(&apportionv1.Snapshot{Dimensions: names})
		require.ErrorContains(t, err, "is named twice", names)

		s := opened(t, equalTimes(0, 1, 2), policies["fair"])
		before := askedAll(t, s)
		for _, step := range []*apportionv1.Step{
			event.Change(&apportionv1.Change{Dimensions: names}),
			event.Change(&apportionv1.Change{Dimensions: names, Jobs: []*apportionv1.Job{{Name: "x", Queue: "greedy"}}}),
		} {
			_, err := s.Ask(step)
			require.Error(t, err, names)
		}
		require.Equal(t, before, askedAll(t, s))
	}
}

func askedAll(t *testing.T, s *wire.Session) string {
	t.Helper()
	answer, err := s.Ask(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}})
	require.NoError(t, err)
	return prototext.Format(answer)
}

// equalTimes is a cluster whose queue greedy runs three jobs that differ in nothing but their names, sent in the given order, and whose
// queue late claims a part of it.
func equalTimes(order ...int) *apportionv1.Snapshot {
	cpu := func(n float64) *apportionv1.Resource {
		return &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{1000 * n}}
	}
	s := &apportionv1.Snapshot{
		Dimensions: []string{"cpu"}, Nodes: []*apportionv1.Node{{Name: "n", Allocatable: cpu(3)}},
		Queues: []*apportionv1.Queue{{Name: "greedy", Weight: proto.Uint32(1)}, {Name: "late", Weight: proto.Uint32(1)}},
	}
	for _, i := range order {
		s.Jobs = append(s.Jobs, equalJob(string(rune('a'+i)), cpu(1)))
	}
	s.Jobs = append(s.Jobs, &apportionv1.Job{Name: "claim", Queue: "late", Groups: []*apportionv1.TaskGroup{{
		Request: cpu(1), Tasks: []*apportionv1.Task{{Name: "claim-0"}},
	}}})
	return s
}

func equalJob(name string, request *apportionv1.Resource) *apportionv1.Job {
	return &apportionv1.Job{Name: name, Queue: "greedy", Groups: []*apportionv1.TaskGroup{{
		Request: request,
		Tasks: []*apportionv1.Task{{
			Name: name + "-0", Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING, Node: proto.Uint32(0),
		}},
	}}}
}

// TestTiesBetweenTasksOfDifferentJobsAreBrokenByNames sends equal jobs in every order, and one of them again by a change. The victim, the
// order of tasks and the order of eviction stay the same.
func TestTiesBetweenTasksOfDifferentJobsAreBrokenByNames(t *testing.T) {
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			var want string
			for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
				snapshot := equalTimes(order...)
				m, err := decode.Compile(snapshot)
				require.NoError(t, err)
				p := &apportionv1.Policy{}
				require.NoError(t, prototext.Unmarshal([]byte(policy), p))
				change, err := proto.Marshal(&apportionv1.Change{
					Dimensions: snapshot.GetDimensions(), Jobs: []*apportionv1.Job{equalJob("a", snapshot.GetJobs()[0].GetGroups()[0].GetRequest())},
				})
				require.NoError(t, err)
				changed, err := new(decode.Decoder).CompileChange(m, change, decode.Guard{})
				require.NoError(t, err)
				for _, m := range []*model.Model{m, changed} {
					s, err := wire.Open(m, p, wire.Options{})
					require.NoError(t, err)
					got := ties(t, m, s)
					if want == "" {
						want = got
					}
					require.Equal(t, want, got, order)
				}
			}
		})
	}
}

// ties returns, by name, the tasks in order, the victims of a reclaim without candidates, and those in order of eviction.
func ties(t *testing.T, m *model.Model, s *wire.Session) string {
	t.Helper()
	tasks := &apportionv1.Selector{Names: []string{"c-0", "a-0", "b-0"}}
	claimant := &apportionv1.OrderStep_ClaimantTaskUid{ClaimantTaskUid: "claim-0"}
	text := ""
	for _, step := range []*apportionv1.Step{
		{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{Subject: &apportionv1.OrderStep_Tasks{Tasks: tasks}}}},
		{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{Subject: &apportionv1.OrderStep_Tasks{Tasks: tasks}, Claimant: claimant}}},
		{Step: &apportionv1.Step_Reclaim{Reclaim: &apportionv1.ReclaimStep{Claimant: &apportionv1.Selector{Names: []string{"claim-0"}}}}},
	} {
		answer, err := s.Ask(step)
		require.NoError(t, err)
		for _, i := range answer.GetOrder().GetItems() {
			text += m.TaskName(model.TaskID(i)) + " "
		}
		for _, victim := range answer.GetReclaim().GetVictims() {
			text += m.TaskName(model.TaskID(victim.GetTask())) + " "
		}
		text += "\n"
	}
	return text
}

// TestAnExplicitZeroOfCPUOrMemoryMakesNoOtherRequest compiles requests that differ only in explicit zeros, as a whole and by a change.
func TestAnExplicitZeroOfCPUOrMemoryMakesNoOtherRequest(t *testing.T) {
	gpu := &apportionv1.Resource{Dimensions: []uint32{2}, Amounts: []float64{1}}
	zeros := &apportionv1.Resource{Dimensions: []uint32{0, 1, 2}, Amounts: []float64{0, 0, 1}}
	nothing := &apportionv1.Resource{Dimensions: []uint32{1}, Amounts: []float64{0}}
	snapshot := func(requests ...*apportionv1.Resource) *apportionv1.Snapshot {
		s := &apportionv1.Snapshot{Dimensions: []string{"cpu", "memory", "gpu"}, Queues: []*apportionv1.Queue{{Name: "greedy"}}}
		for i, r := range requests {
			s.Jobs = append(s.Jobs, equalJob(string(rune('a'+i)), r))
			s.Jobs[i].Groups[0].Tasks[0].Node = nil
		}
		return s
	}
	whole, err := decode.Compile(snapshot(gpu, zeros, nothing))
	require.NoError(t, err)
	base, err := decode.Compile(snapshot(gpu))
	require.NoError(t, err)
	rest := snapshot(gpu, zeros, nothing)
	data, err := proto.Marshal(&apportionv1.Change{Dimensions: rest.GetDimensions(), Jobs: rest.GetJobs()[1:]})
	require.NoError(t, err)
	changed, err := new(decode.Decoder).CompileChange(base, data, decode.Guard{})
	require.NoError(t, err)
	require.Equal(t, whole.Requests, changed.Requests)
	require.Len(t, whole.Requests, 2, "no request, and that of a GPU")
}
