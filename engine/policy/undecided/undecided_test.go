package undecided_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/undecided"
)

func TestAPluginThatDecidesNothingIsNamedInAWarning(t *testing.T) {
	m, err := model.NewBuilder(0).Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{Tiers: []engine.Tier{{{Plugin: undecided.Plugin{Called: "predicates"}}}}}, nil)
	require.NoError(t, err)

	require.Equal(t, []policy.Warning{{
		Code: policy.PluginUndecided, Queue: model.None, Text: `the plugin "predicates" takes part in no decision of Apportion`,
	}}, s.Warnings())
	require.False(t, s.Reclaim().Choose(&policy.Claim{Tasks: []model.TaskID{0}}, false).Decided)
}

func TestWhatAPluginVotesOnThatIsNotModelledIsNotKnown(t *testing.T) {
	m, err := model.NewBuilder(0).Build()
	require.NoError(t, err)
	plugin := undecided.Plugin{Called: "extender", VotesOn: uint32(engine.DecisionsOf(engine.JobEnqueued, engine.Predicate))}
	s, err := engine.Open(m, engine.Policy{Tiers: []engine.Tier{{
		{Plugin: undecided.Plugin{Called: "metrics"}}, {Plugin: plugin, Disabled: engine.DecisionsOf(engine.Predicate)},
	}}}, nil)
	require.NoError(t, err)
	why, votes := s.Host().NotModelled(engine.JobEnqueued)
	require.True(t, votes)
	require.Equal(t, policy.Because("extender", policy.PluginNotModelled, model.None), why)
	for _, d := range []engine.Decision{engine.Predicate, engine.Reclaimable} {
		_, votes = s.Host().NotModelled(d)
		require.False(t, votes, "decision %d: it is excluded, or has no vote", d)
	}
	require.Equal(t, `the plugin "extender" is not modelled: what it votes on is decided without it`, s.Warnings()[1].Text)
}
