package wire_test

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/wire"
)

// TestAnswersStayAsTheyAreWhenADecoderIsUsedAgain asks every kind of step, and compiles another snapshot in the memory of the first: an
// answer is encoded after its decoder may have gone to another call.
func TestAnswersStayAsTheyAreWhenADecoderIsUsedAgain(t *testing.T) {
	data, err := os.ReadFile("../../testdata/conformance/Simulate/every-kind-of-step/1.request.json")
	require.NoError(t, err)
	var request apportionv1.SimulateRequest
	require.NoError(t, protojson.Unmarshal(data, &request))
	first := request.GetInput().GetSnapshot()
	for _, node := range first.GetNodes() {
		node.Group = new("a-group-of-the-first-snapshot")
	}
	other := generate.Snapshot(generate.Shape{Queues: 20, Jobs: 200, Tasks: 2000, Nodes: 100, Seed: 1})
	for i, node := range other.GetNodes() {
		node.Group = new(strconv.Itoa(i))
	}
	encoded := func(m proto.Message) []byte {
		data, err := proto.Marshal(m)
		require.NoError(t, err)
		return data
	}

	fair, err := recordedPolicy()
	require.NoError(t, err)

	d := new(decode.Decoder)
	lists := [][]*apportionv1.Step{request.GetSteps()}
	for i := range request.GetSteps() {
		lists = append(lists, request.GetSteps()[i:i+1])
	}
	for _, steps := range lists {
		m, err := d.Compile(encoded(first))
		require.NoError(t, err)
		s, err := wire.Open(m, fair, wire.Options{})
		require.NoError(t, err)
		answers, err := s.DoAll(steps)
		require.NoError(t, err)
		want := make([]proto.Message, len(answers))
		for i, answer := range answers {
			want[i] = proto.Clone(answer)
		}
		_, err = d.Compile(encoded(other))
		require.NoError(t, err)
		for i, answer := range answers {
			require.True(t, proto.Equal(want[i], answer), "%s", steps[i])
		}
	}
}

// TestAModelKeepsNoTextOfItsRequest overwrites the bytes of the request before it asks.
func TestAModelKeepsNoTextOfItsRequest(t *testing.T) {
	left := func(text string) *apportionv1.Snapshot {
		s := generate.Snapshot(generate.Shape{Queues: 4, Jobs: 20, Tasks: 100, Nodes: 5, Seed: 1})
		for i := range 6 {
			s.LeftOuts = append(s.LeftOuts, &apportionv1.LeftOut{
				Cause: apportionv1.LeftOutCause(1 + i%4), Namespace: text + "-namespace", Name: text + strconv.Itoa(i), Queue: text + "-queue",
				Job: text + "-job", Scheduler: text + "-scheduler",
			})
		}
		for _, job := range s.GetJobs() {
			job.Condition = text + " was not scheduled"
		}
		return s
	}
	asked := func(d *decode.Decoder, meanwhile func(data []byte)) *apportionv1.Answer {
		data, err := proto.Marshal(left("first"))
		require.NoError(t, err)
		m, err := d.Compile(data)
		require.NoError(t, err)
		meanwhile(data)
		policy, err := recordedPolicy()
		require.NoError(t, err)
		s, err := wire.Open(m, policy, wire.Options{})
		require.NoError(t, err)
		answers, err := s.DoAll([]*apportionv1.Step{{Step: &apportionv1.Step_Explain{Explain: &apportionv1.ExplainStep{}}}})
		require.NoError(t, err)
		return answers[0]
	}
	want := asked(new(decode.Decoder), func([]byte) {})
	require.Len(t, want.GetExplain().GetLeftOuts(), 6)
	got := asked(new(decode.Decoder), func(data []byte) {
		for i := range data {
			data[i] = 'x'
		}
	})
	require.True(t, proto.Equal(want, got), "%v", got.GetExplain().GetLeftOuts())
}

func recordedPolicy() (*apportionv1.Policy, error) {
	rule, err := os.ReadFile("../../testdata/conformance/fair.json")
	if err != nil {
		return nil, err
	}
	var policy apportionv1.Policy
	return &policy, protojson.Unmarshal(rule, &policy)
}

// liveBytes returns the number of reachable bytes.
func liveBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestASessionKeepsNoneOfItsAnswers(t *testing.T) {
	shape := generate.Shape{Queues: 10, Jobs: 100, Tasks: 1000, Nodes: 50, Seed: 1}
	m, err := decode.Compile(generate.Snapshot(shape))
	require.NoError(t, err)
	policy := parse(t, &apportionv1.Policy{}, policies["proportion"])
	s, err := wire.Open(m, policy, wire.Options{})
	require.NoError(t, err)
	every := &apportionv1.Selector{}
	for task := range uint32(1000) {
		every.Indices = append(every.Indices, task)
	}
	for name, step := range map[string]*apportionv1.Step{
		"allocatable": {Step: &apportionv1.Step_Allocatable{Allocatable: &apportionv1.AllocatableStep{Tasks: every}}},
		"preemptive":  {Step: &apportionv1.Step_Preemptive{Preemptive: &apportionv1.PreemptiveStep{Tasks: every}}},
		"jobs":        {Step: &apportionv1.Step_Jobs{Jobs: &apportionv1.JobsStep{}}},
		"shares":      {Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}},
	} {
		t.Run(name, func(t *testing.T) {
			ask := func() {
				_, err := s.Ask(step)
				require.NoError(t, err)
			}
			ask()
			before := liveBytes()
			for range 100 {
				ask()
			}
			require.Less(t, liveBytes()-before, int64(4<<20), "bytes kept after a hundred answers")
		})
	}
	runtime.KeepAlive(s)
}
