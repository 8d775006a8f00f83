package check

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

func TestStepsThatChangeTheStateAreThoseOfTheServer(t *testing.T) {
	var names []protoreflect.Name
	for _, q := range wire.Questions {
		if q.Changes {
			names = append(names, protoreflect.Name(q.Name))
		}
	}
	require.ElementsMatch(t, names, append(beside, changing...))
}

func TestPluginsThatHaveSharesAreThoseOfTheServer(t *testing.T) {
	plugins := (*apportionv1.Plugin)(nil).ProtoReflect().Descriptor().Oneofs().Get(0).Fields()
	for i := range plugins.Len() {
		plugin := &apportionv1.Plugin{}
		plugin.ProtoReflect().Set(plugins.Get(i), plugin.ProtoReflect().NewField(plugins.Get(i)))
		m, err := decode.Compile(&apportionv1.Snapshot{Queues: []*apportionv1.Queue{{Name: "q"}}})
		require.NoError(t, err)
		policy := &apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{plugin}}}}
		if plugin.GetUndecided() != nil {
			plugin.GetUndecided().Name = "other"
		}
		session, err := wire.Open(m, policy, wire.Options{})
		require.NoError(t, err, plugins.Get(i).Name())
		answer, err := session.Ask(&apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}})
		require.NoError(t, err)
		has := len(answer.GetShares().GetPlugins()) > 0
		require.Equal(t, slices.Contains(sharing, plugins.Get(i).Name()), has, plugins.Get(i).Name())
	}
}
