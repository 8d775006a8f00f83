package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/wire"
)

func TestWhatExplainsIsBoundApartFromWhatDoesNot(t *testing.T) {
	m, err := wire.Compile(generate.Snapshot(generate.Shape{Queues: 40, Jobs: 80, Tasks: 400, Nodes: 10, Seed: 1, Dimensions: 4}))
	require.NoError(t, err)
	policy := &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{
		{Plugin: &apportionv1.Plugin_Proportion{Proportion: &apportionv1.Proportion{}}},
	}}}}
	s, err := wire.Open(m, policy, wire.Options{ExplainBytes: 12 << 10})
	require.NoError(t, err)
	steps := func(explain *apportionv1.Explain) *apportionv1.Step {
		return &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Explain: explain}}}
	}
	all, one := &apportionv1.Explain{}, &apportionv1.Explain{Queues: &apportionv1.Queues{Index: []uint32{1}}}

	plain, err := s.Ask(steps(nil))
	require.NoError(t, err)
	_, err = s.Ask(steps(all))
	fault := wire.AsFault(err)
	require.Equal(t, apportionv1.ErrorReason_ERROR_REASON_ANSWER_TOO_LARGE, fault.Reason)
	require.Equal(t, "explain_bytes", fault.Metadata["limit"])
	require.Equal(t, "12288", fault.Metadata["maximum"])

	answers, err := s.DoAll([]*apportionv1.Step{steps(nil), steps(all), steps(one), steps(nil)})
	require.NoError(t, err)
	require.Nil(t, answers[0].GetError())
	require.NotNil(t, answers[1].GetError(), "the step alone fails")
	require.True(t, proto.Equal(plain, answers[3]))

	s, err = wire.Open(m, policy, wire.Options{AnswerBytes: 12 << 10})
	require.NoError(t, err)
	_, err = s.Ask(steps(all))
	require.Equal(t, "answer_bytes", wire.AsFault(err).Metadata["limit"], "the smaller one is named")
}

func TestEachPluginThatDividesIsExplained(t *testing.T) {
	m, err := wire.Compile(generate.Snapshot(generate.Shape{Queues: 12, Jobs: 20, Tasks: 60, Nodes: 4, Seed: 1, Depth: 2}))
	require.NoError(t, err)
	for policy, derived := range map[string]func(*apportionv1.PluginShares) int{
		`tiers { plugins { proportion {} } }`:                   func(p *apportionv1.PluginShares) int { return len(p.GetProportion().GetRounds()) },
		`tiers { plugins { capacity {} } }`:                     func(p *apportionv1.PluginShares) int { return len(p.GetCapacity().GetLevels()) },
		`tiers { plugins { capacity { hierarchical: true } } }`: func(p *apportionv1.PluginShares) int { return len(p.GetCapacity().GetLevels()) },
		`tiers { plugins { fair {} } }`:                         func(p *apportionv1.PluginShares) int { return len(p.GetFair().GetDivisions()) },
	} {
		s, err := wire.Open(m, parse(t, &apportionv1.Policy{}, policy), wire.Options{})
		require.NoError(t, err)
		require.Positive(t, derived(ask(t, s, `shares { explain {} }`).GetShares().GetPlugins()[0]), policy)
	}
}

func TestTextsNameTheDimensionsThatTheirNumbersMean(t *testing.T) {
	s := open(t, `
dimensions: "gpu" dimensions: "cpu"
nodes { name: "n" allocatable { dimension: [0, 1] amount: [4000, 8000] } }
queues { name: "q" capability { dimension: [0] amount: [1000] } }
jobs { name: "j" queue: "q" phase: JOB_PHASE_INQUEUE groups { request { dimension: [0, 1] amount: [2000, 1000] } tasks { uid: "t" } } }`, proportional)
	answer := ask(t, s, `explain { jobs { index: 0 } }`).GetExplain()
	require.NotEmpty(t, answer.GetJobs())
	require.Contains(t, answer.GetJobs()[0].GetText(), "gpu")
	require.NotContains(t, answer.GetJobs()[0].GetText(), "memory")
}
