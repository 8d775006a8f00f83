package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/wire"
)

func TestWhatExplainsIsBoundApartFromWhatDoesNot(t *testing.T) {
	m, err := decode.Compile(generate.Snapshot(generate.Shape{Queues: 40, Jobs: 80, Tasks: 400, Nodes: 10, Seed: 1, Dimensions: 4}))
	require.NoError(t, err)
	policy := &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{
		{Plugin: &apportionv1.Plugin_Proportion{Proportion: &apportionv1.Proportion{}}},
	}}}}
	s, err := wire.Open(m, policy, wire.Options{ExplainBytes: 12 << 10})
	require.NoError(t, err)
	steps := func(explain *apportionv1.Explain) *apportionv1.Step {
		return &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Explain: explain}}}
	}
	all, one := &apportionv1.Explain{}, &apportionv1.Explain{Queues: &apportionv1.Selector{Indices: []uint32{1}}}

	plain, err := s.Ask(steps(nil))
	require.NoError(t, err)
	_, err = s.Ask(steps(all))
	fault := decode.AsFault(err)
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
	require.Equal(t, "answer_bytes", decode.AsFault(err).Metadata["limit"], "the smaller one is named")
}

func TestEachPluginThatDividesIsExplained(t *testing.T) {
	m, err := decode.Compile(generate.Snapshot(generate.Shape{Queues: 12, Jobs: 20, Tasks: 60, Nodes: 4, Seed: 1, Depth: 2}))
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
nodes { name: "n" allocatable { dimensions: [0, 1] amounts: [4000, 8000] } }
queues { name: "q" capability { dimensions: [0] amounts: [1000] } }
jobs { name: "j" queue: "q" phase: JOB_PHASE_INQUEUE groups { request { dimensions: [0, 1] amounts: [2000, 1000] } tasks { uid: "t" } } }`, proportional)
	answer := ask(t, s, `explain { jobs { indices: 0 } }`).GetExplain()
	require.NotEmpty(t, answer.GetJobs())
	require.Contains(t, answer.GetJobs()[0].GetText(), "gpu")
	require.NotContains(t, answer.GetJobs()[0].GetText(), "memory")
}

func TestGroupsAloneAreThoseOfTheWholeAnswer(t *testing.T) {
	for seed := range uint64(6) {
		m, err := decode.Compile(generate.Snapshot(generate.Shape{
			Queues: 12, Jobs: 200, Tasks: 900, Nodes: 10, Seed: seed, Depth: int(seed % 3), Dimensions: 4,
		}))
		require.NoError(t, err)
		for _, policy := range []string{
			`tiers { plugins { priority {} } plugins { gang {} } } tiers { plugins { proportion {} } plugins { overcommit {} } }`,
			`tiers { plugins { gang {} } plugins { capacity { hierarchical: true } } }`,
			`tiers { plugins { gang {} } plugins { fair {} } }`,
		} {
			s, err := wire.Open(m, parse(t, &apportionv1.Policy{}, policy), wire.Options{})
			require.NoError(t, err)
			whole := ask(t, s, `explain {}`).GetExplain()
			require.NotEmpty(t, whole.GetGroups())
			whole.Jobs = nil
			require.True(t, proto.Equal(whole, ask(t, s, `explain { groups_only: true }`).GetExplain()), policy)
		}
	}
	m, err := decode.Compile(generate.Snapshot(generate.Shape{Queues: 2, Jobs: 3, Tasks: 6, Nodes: 2, Seed: 1}))
	require.NoError(t, err)
	s, err := wire.Open(m, parse(t, &apportionv1.Policy{}, `tiers { plugins { gang {} } }`), wire.Options{})
	require.NoError(t, err)
	_, err = s.Ask(parse(t, &apportionv1.Step{}, `explain { groups_only: true jobs {} }`))
	require.EqualError(t, err, "1 violation\nexplain.groups_only: groups and named jobs exclude each other")
}

func TestQueuesAndWhatBelongsToSomeJobsAreInspected(t *testing.T) {
	snapshot := generate.Snapshot(generate.Shape{Queues: 12, Jobs: 20, Tasks: 60, Nodes: 4, Seed: 1, Depth: 2, Dimensions: 4})
	m, err := decode.Compile(snapshot)
	require.NoError(t, err)
	s, err := wire.Open(m, parse(t, &apportionv1.Policy{}, `tiers { plugins { gang {} } }`), wire.Options{})
	require.NoError(t, err)
	answer := ask(t, s, `inspect { queues: true jobs: true tasks: true of { indices: [3, 1] } }`).GetInspect()
	described := decode.SnapshotOf(m)
	require.Len(t, answer.GetQueues(), len(described.GetQueues()))
	for i, q := range answer.GetQueues() {
		require.True(t, proto.Equal(described.GetQueues()[i], q.GetSettings()))
	}
	require.Len(t, answer.GetJobs(), 2)
	require.EqualValues(t, 3, answer.GetJobs()[0].GetJob())
	require.Equal(t, snapshot.GetJobs()[1].GetName(), answer.GetJobs()[1].GetName())
	require.Equal(t, snapshot.GetJobs()[1].GetNamespace(), answer.GetJobs()[1].GetNamespace())
	for _, task := range answer.GetTasks() {
		require.Contains(t, []uint32{1, 3}, task.GetJob())
	}
	_, err = s.Ask(parse(t, &apportionv1.Step{}, `inspect { nodes: true of { indices: [3] } }`))
	require.EqualError(t, err, "1 violation\ninspect.of: neither jobs nor tasks are selected")
}
