package wire_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/wire"
)

// TestAnswersStayAsTheyAreWhenADecoderIsUsedAgain asks every kind of step, and compiles another snapshot in the memory of the first: an
// answer is encoded after its decoder may have gone to another call.
func TestAnswersStayAsTheyAreWhenADecoderIsUsedAgain(t *testing.T) {
	data, err := os.ReadFile("../testdata/conformance/Simulate/every-kind-of-step/1.request.json")
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

	rule, err := os.ReadFile("../testdata/conformance/fair.json")
	require.NoError(t, err)
	var fair apportionv1.Policy
	require.NoError(t, protojson.Unmarshal(rule, &fair))

	d := new(wire.Decoder)
	lists := [][]*apportionv1.Step{request.GetSteps()}
	for i := range request.GetSteps() {
		lists = append(lists, request.GetSteps()[i:i+1])
	}
	for _, steps := range lists {
		m, err := d.Compile(encoded(first))
		require.NoError(t, err)
		s, err := wire.Open(m, &fair, wire.Options{})
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
