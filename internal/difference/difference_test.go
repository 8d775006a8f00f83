package difference_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/difference"
)

func share(amounts ...float64) *apportionv1.QueueShare {
	return &apportionv1.QueueShare{Name: "q", Deserved: &apportionv1.Resource{Amounts: amounts}}
}

func TestADifferenceIsToldByItsPath(t *testing.T) {
	was := &apportionv1.PluginShares{Plugin: "capacity", Queues: []*apportionv1.QueueShare{share(1, 2), share(3)}}
	is := &apportionv1.PluginShares{Plugin: "capacity", Queues: []*apportionv1.QueueShare{share(1, 2.5, 7)}}
	is.Queues[0].Overused = true
	var texts []string
	for _, d := range difference.Between(was, is, 10) {
		texts = append(texts, d.Path)
	}
	require.Equal(t, []string{"queues[0].deserved.amounts[1]", "queues[0].deserved.amounts[2]", "queues[0].overused", "queues[1]"}, texts)
	require.Equal(t, "queues[0].deserved.amounts[1]: 2 -> 2.5", difference.Between(was, is, 1)[0].String())
	require.Len(t, difference.Between(was, is, 2), 2)
}

func TestWhatIsNoNumberIsTheSameAsWhatIsNone(t *testing.T) {
	require.Empty(t, difference.Between(share(math.NaN(), math.Inf(1)), share(math.NaN(), math.Inf(1)), 10))
	require.Len(t, difference.Between(share(0), share(math.Copysign(1, -1)), 10), 1)
}

func TestPackedDetailsAreTheSameWhateverTheOrderOfTheirMaps(t *testing.T) {
	info := &errdetails.ErrorInfo{Reason: "X", Metadata: map[string]string{}}
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		info.Metadata[key] = key
	}
	pack := func() *apportionv1.Answer {
		detail, err := anypb.New(info)
		require.NoError(t, err)
		return &apportionv1.Answer{Answer: &apportionv1.Answer_Error{Error: &rpcstatus.Status{Code: 3, Details: []*anypb.Any{detail}}}}
	}
	for range 50 {
		require.Empty(t, difference.Between(pack(), pack(), 10))
	}
}

func TestNothingDiffersExactlyWhereMessagesAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) *apportionv1.QueueShare {
			return share(rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1, 1.5, math.Inf(1)}), 0, 3).Draw(t, name)...)
		}
		was, is := draw("was"), draw("is")
		require.Equal(t, proto.Equal(was, is), len(difference.Between(was, is, 10)) == 0)
	})
}

func TestABareAnswerSaysWhatAndNotWhy(t *testing.T) {
	answer := &apportionv1.Answer{}
	require.NoError(t, protojson.Unmarshal([]byte(`{"reclaim": {"decided": true, "tier": 1, "victims": [{"task": 3}],
"plugins": [{"plugin": "gang"}], "protections": [{"task": 4, "plugin": "gang"}]}}`), answer))
	bare := &apportionv1.Answer{}
	require.NoError(t, protojson.Unmarshal([]byte(`{"reclaim": {"decided": true, "victims": [{"task": 3}], "protections": [{"task": 4}]}}`), bare))
	require.True(t, proto.Equal(bare, difference.Bare(answer)))
	require.Len(t, answer.GetReclaim().GetPlugins(), 1, "the answer itself stays as it is")
}

func TestOfCausesABareAnswerKeepsWhatTheyAreAbout(t *testing.T) {
	answer, bare := &apportionv1.Answer{}, &apportionv1.Answer{}
	require.NoError(t, protojson.Unmarshal([]byte(`{"explain": {"groups": [{"jobs": [1], "cause": {"code": "CAUSE_CODE_NOT_READY"}}], "jobs": [{"findings": [{
"causes": [{"plugin": "gang", "have": 1}, {"code": "CAUSE_CODE_INSUFFICIENT_RESOURCE", "dimensions": [0], "count": 3}],
"nodes": [{"code": "CAUSE_CODE_NODE_TOO_SMALL", "count": 2}]}]}]}}`), answer))
	require.NoError(t, protojson.Unmarshal([]byte(`{"explain": {"groups": [{"jobs": [1]}], "jobs": [{"findings": [{
"causes": [{"count": 3}], "nodes": [{"code": "CAUSE_CODE_NODE_TOO_SMALL", "count": 2}]}]}]}}`), bare))
	require.True(t, proto.Equal(bare, difference.Bare(answer)), "%v", difference.Bare(answer))

	require.NoError(t, protojson.Unmarshal([]byte(`{"nodes": {"tasks": [{"task": 1, "causes": [{"node": 2, "code": "CAUSE_CODE_NODE_NOT_IN_SET"}]}]}}`), answer))
	require.NoError(t, protojson.Unmarshal([]byte(`{"nodes": {"tasks": [{"task": 1, "causes": [{"node": 2}]}]}}`), bare))
	require.True(t, proto.Equal(bare, difference.Bare(answer)), "%v", difference.Bare(answer))

	require.NoError(t, protojson.Unmarshal([]byte(`{"preempt": {"decided": true, "checks": [{"task": 1, "passed": true}]}}`), answer))
	require.NoError(t, protojson.Unmarshal([]byte(`{"preempt": {"decided": true}}`), bare))
	require.True(t, proto.Equal(bare, difference.Bare(answer)), "%v", difference.Bare(answer))
}
