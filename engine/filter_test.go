package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/predicates"
)

func TestWhetherVolcanoFiltersNodesAndPlacesAnything(t *testing.T) {
	b := model.NewBuilder(0)
	b.Node(model.NodeSpec{Name: "cordoned", Unschedulable: &model.Unschedulable{}})
	b.Queue(model.QueueSpec{Name: "q"})
	b.Job(model.JobSpec{UID: "j", Queue: "q"})
	b.Group(model.GroupSpec{})
	b.Task(&model.TaskSpec{UID: "t", Node: model.None})
	m, err := b.Build()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		tiers           []engine.Tier
		filters, places bool
	}{
		"without the plugin":     {[]engine.Tier{{{Plugin: gang.Plugin{}}}}, false, true},
		"with it":                {[]engine.Tier{{{Plugin: gang.Plugin{}}}, {{Plugin: predicates.Plugin{}}}}, true, true},
		"excluded from decision": {[]engine.Tier{{{Plugin: predicates.Plugin{}, Disabled: engine.DecisionsOf(engine.Predicate)}}}, false, false},
		"excluded from another":  {[]engine.Tier{{{Plugin: predicates.Plugin{}, Disabled: engine.DecisionsOf(engine.NodeOrder)}}}, true, true},
	} {
		s, err := engine.Open(m, engine.Policy{Tiers: c.tiers}, nil)
		require.NoError(t, err)
		require.Equal(t, c.filters, s.Host().FiltersNodes(), name)
		require.Equal(t, c.places, !s.Host().PlacesNothing(), name)
		require.False(t, s.Nodes().Fits(0, 0, nil), "%s: questions heed what nodes say all the same", name)
	}
}
