package checker_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/checker"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/wire"
)

func explained(t require.TestingT, snapshot *apportionv1.Snapshot, policy string) *apportionv1.SharesAnswer {
	p := &apportionv1.Policy{}
	require.NoError(t, prototext.Unmarshal([]byte(policy), p))
	m, err := wire.Compile(snapshot)
	require.NoError(t, err)
	s, err := wire.Open(m, p, wire.Options{})
	require.NoError(t, err)
	return s.Do(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{Explain: &apportionv1.Explain{}}}}).GetShares()
}

func TestTheNumbersOfVolcanosPluginsFollowFromEachOther(t *testing.T) {
	for name, policy := range map[string]string{
		"proportion":            `tiers { plugins { proportion {} } }`,
		"capacity":              `tiers { plugins { capacity {} } }`,
		"capacity hierarchical": `tiers { plugins { capacity { hierarchical: true } } }`,
	} {
		t.Run(name, func(t *testing.T) {
			all := 0
			rapid.Check(t, func(t *rapid.T) {
				snapshot := generate.Snapshot(generate.Shape{
					Queues: rapid.IntRange(1, 12).Draw(t, "queues"), Jobs: rapid.IntRange(1, 20).Draw(t, "jobs"), Tasks: rapid.IntRange(1, 60).Draw(t, "tasks"),
					Nodes: rapid.IntRange(1, 8).Draw(t, "nodes"), Depth: rapid.IntRange(1, 3).Draw(t, "depth"),
					Dimensions: rapid.IntRange(2, 6).Draw(t, "dimensions"), Seed: rapid.Uint64Range(0, 1<<20).Draw(t, "seed"),
				})
				faults, checked := checker.CheckVolcano(explained(t, snapshot, policy))
				require.Empty(t, faults)
				all += checked
			})
			require.Positive(t, all)
		})
	}
}

func TestADeservedAmountOfProportionThatIsChangedIsFound(t *testing.T) {
	snapshot := generate.Snapshot(generate.Shape{Queues: 5, Jobs: 20, Tasks: 100, Nodes: 4, Seed: 1})
	answer := explained(t, snapshot, `tiers { plugins { proportion {} } }`)
	for _, change := range []func(*apportionv1.PluginShares) []float64{
		func(p *apportionv1.PluginShares) []float64 { return p.Queues[1].Deserved.Amount },
		func(p *apportionv1.PluginShares) []float64 { return p.Proportion.Rounds[1].Remaining.Amount },
		func(p *apportionv1.PluginShares) []float64 { return p.Proportion.Rounds[0].Shares[0].Weighted.Amount },
		func(p *apportionv1.PluginShares) []float64 { return p.Proportion.Rounds[0].Shares[0].Deserved.Amount },
	} {
		changed := proto.CloneOf(answer)
		change(changed.Plugins[0])[0]++
		faults, _ := checker.CheckVolcano(changed)
		require.NotEmpty(t, faults)
	}
}

func TestAResourceWithTooFewAmountsIsAFault(t *testing.T) {
	answer := explained(t, generate.Snapshot(generate.Shape{Queues: 5, Jobs: 20, Tasks: 100, Nodes: 4, Seed: 1}), `tiers { plugins { proportion {} } }`)
	answer.Plugins[0].Proportion.Rounds[0].Remaining.Amount = nil
	faults, _ := checker.CheckVolcano(answer)
	require.NotEmpty(t, faults)
}
