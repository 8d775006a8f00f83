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
