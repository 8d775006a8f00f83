package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// Two sessions are asked the same; one makes its answers in a Room that is emptied once they were encoded.
func TestAnswersMadeInARoomAreThoseMadeInMemoryOfTheirOwn(t *testing.T) {
	questions := []string{
		`steps { shares { jobs {} tree: true explain {} } } steps { shares { omit_names: true } }`, `steps { shares {} }`, `steps { jobs {} }`,
		`steps { enqueue {} } steps { rollback {} }`, `steps { enqueue { omit_names: true } }`, `steps { order { queues {} } }`,
		`steps { allocatable { tasks { index: [0, 1, 2, 3, 0, 1, 2, 3] } explain: true } } steps { preemptive { tasks { index: 0 } } }`,
		`steps { reclaim { claimant { index: 0 } explain: true } }`, `steps { nodes { tasks { index: [0, 1] } explain: true } }`,
		`steps { inspect { nodes: true jobs: true tasks: true } }`, `steps { explain {} }`, `steps { mark {} }`,
	}
	everyPolicy(t, func(t *rapid.T, policy string) {
		snapshot := drawSnapshot(t, true)
		plain, roomy, room := opened(t, snapshot, policy), opened(t, snapshot, policy), &wire.Room{}
		texts := rapid.Bool().Draw(t, "texts")
		plain.Texts(texts)
		roomy.Texts(texts)
		roomy.Use(room)
		for range rapid.IntRange(2, 8).Draw(t, "batches") {
			text := rapid.SampledFrom(questions).Draw(t, "question")
			batch := &apportionv1.StepBatch{}
			require.NoError(t, prototext.Unmarshal([]byte(text), batch), text)
			wanted, err := plain.DoAll(batch.GetSteps())
			require.NoError(t, err)
			answers, err := roomy.DoAll(batch.GetSteps())
			require.NoError(t, err)
			require.Equal(t, bytesOf(t, wanted), bytesOf(t, answers), text)
			room.Empty()
		}
	})
}

func bytesOf(t require.TestingT, answers []*apportionv1.Answer) []byte {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(&apportionv1.AnswerBatch{Answers: answers})
	require.NoError(t, err)
	return data
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
	require.NoError(t, prototext.Unmarshal([]byte(`nodes { name: "n" allocatable { dimension: 0 amount: 16 } } dimensions: "cpu"`), snapshot))
	for i := range 16 {
		snapshot.Queues = append(snapshot.Queues, &apportionv1.Queue{Name: string(rune('a' + i))})
	}
	return snapshot
}
