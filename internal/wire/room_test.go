package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/wire"
)

// Two sessions are asked the same; one makes its answers in a Room that is emptied after they were encoded.
func TestAnswersMadeInARoomAreThoseMadeInMemoryOfTheirOwn(t *testing.T) {
	questions := []string{
		`steps { shares { jobs {} tree: true explain {} } } steps { shares {} }`, `steps { shares {} }`, `steps { jobs {} }`,
		`steps { enqueue {} } steps { rollback {} }`, `steps { enqueue {} }`, `steps { order { queues {} } }`,
		`steps { allocatable { tasks { indices: [0, 1, 2, 3, 0, 1, 2, 3] } explain: true } } steps { preemptive { tasks { indices: 0 } } }`,
		`steps { reclaim { claimant { indices: 0 } explain: true } }`, `steps { nodes { tasks { indices: [0, 1] } explain: true } }`,
		`steps { inspect { nodes: true jobs: true tasks: true } }`, `steps { explain {} }`, `steps { mark {} }`,
	}
	everyPolicy(t, func(t *rapid.T, policy string) {
		snapshot := drawSnapshot(t, true)
		plain, roomy, room := opened(t, snapshot, policy), opened(t, snapshot, policy), &wire.Room{}
		texts := rapid.Bool().Draw(t, "texts")
		omit := rapid.Bool().Draw(t, "omit names")
		plain.Show(texts, omit)
		roomy.Show(texts, omit)
		roomy.Use(room)
		for range rapid.IntRange(2, 8).Draw(t, "batches") {
			text := rapid.SampledFrom(questions).Draw(t, "question")
			batch := &apportionv1.StepBatch{}
			require.NoError(t, prototext.Unmarshal([]byte(text), batch), text)
			wanted, err := plain.DoAll(batch.GetSteps())
			require.NoError(t, err)
			answers, err := roomy.DoAll(batch.GetSteps())
			require.NoError(t, err)
			requireSent(t, wanted, answers)
			room.Empty()
		}
	})
}

// requireSent requires that a caller receives the wanted answers.
func requireSent(t require.TestingT, wanted, answers []*apportionv1.Answer) {
	encoded, err := responseOf(answers).MarshalVT()
	require.NoError(t, err)
	received := &apportionv1.RunSessionResponse{}
	require.NoError(t, proto.Unmarshal(encoded, received))
	require.True(t, proto.Equal(responseOf(wanted), received), "%v\n%v", wanted, received)
}

func responseOf(answers []*apportionv1.Answer) *apportionv1.RunSessionResponse {
	return &apportionv1.RunSessionResponse{Message: &apportionv1.RunSessionResponse_Answers{
		Answers: &apportionv1.AnswerBatch{Answers: answers},
	}}
}

// In a Room, shares are written as bytes at once.
func TestSharesMadeInARoomAreThoseMadeInMemoryOfTheirOwn(t *testing.T) {
	everyPolicy(t, func(t *rapid.T, policy string) {
		snapshot := generate.Snapshot(generate.Shape{
			Queues: rapid.IntRange(1, 200).Draw(t, "queues"), Jobs: 40, Tasks: 100, Nodes: 4, Depth: rapid.IntRange(0, 3).Draw(t, "depth"),
			Dimensions: rapid.IntRange(2, 24).Draw(t, "dimensions"), Seed: rapid.Uint64Range(0, 1<<20).Draw(t, "seed"),
		})
		m, err := decode.Compile(snapshot)
		require.NoError(t, err)
		p := &apportionv1.Policy{}
		require.NoError(t, prototext.Unmarshal([]byte(policy), p))
		q := &apportionv1.SharesStep{}
		for field := apportionv1.ShareField_SHARE_FIELD_WEIGHT; int(field) < len(apportionv1.ShareField_name); field++ {
			if rapid.IntRange(0, 3).Draw(t, "field") == 0 {
				q.Fields = append(q.Fields, field)
			}
		}
		step := &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: q}}
		ask := func(maximum int, room *wire.Room) (answer *apportionv1.Answer, bytes int, err error) {
			s, err := wire.Open(m, p, wire.Options{AnswerBytes: maximum})
			require.NoError(t, err)
			s.Use(room)
			answer, err = s.Ask(step)
			return answer, s.AnswerBytes(), err
		}
		wanted, bytes, err := ask(0, nil)
		require.NoError(t, err)
		answer, roomy, err := ask(bytes, &wire.Room{})
		require.NoError(t, err)
		require.Equal(t, bytes, roomy)
		requireSent(t, []*apportionv1.Answer{wanted}, []*apportionv1.Answer{answer})
		maximum := rapid.IntRange(1, bytes-1).Draw(t, "maximum")
		_, _, wantedError := ask(maximum, nil)
		_, _, err = ask(maximum, &wire.Room{})
		require.Error(t, wantedError)
		require.Equal(t, wantedError, err)
	})
}

func TestARoomIsUsedAgain(t *testing.T) {
	s := opened(t, sixteenQueues(t), policies["proportion"])
	step := &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}}
	ask := func(room *wire.Room) func() {
		s.Use(room)
		return func() {
			_, err := s.Ask(step)
			require.NoError(t, err)
			if room != nil {
				room.Empty()
			}
		}
	}
	own := testing.AllocsPerRun(100, ask(nil))
	again := testing.AllocsPerRun(100, ask(&wire.Room{}))
	require.Less(t, again, own)
}

func sixteenQueues(t *testing.T) *apportionv1.Snapshot {
	t.Helper()
	snapshot := &apportionv1.Snapshot{}
	require.NoError(t, prototext.Unmarshal([]byte(`nodes { name: "n" allocatable { dimensions: 0 amounts: 16 } } dimensions: "cpu"`), snapshot))
	for i := range 16 {
		snapshot.Queues = append(snapshot.Queues, &apportionv1.Queue{Name: string(rune('a' + i))})
	}
	return snapshot
}
