package catalogue_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/catalogue"
	"github.com/apportion/apportion/internal/decode"
)

func members() protoreflect.FieldDescriptors {
	return (&apportionv1.Plugin{}).ProtoReflect().Descriptor().Oneofs().ByName("plugin").Fields()
}

func pluginOf(member protoreflect.FieldDescriptor) *apportionv1.Plugin {
	p := &apportionv1.Plugin{}
	p.ProtoReflect().Mutable(member)
	return p
}

func TestEveryMemberOfTheContractHasOneRow(t *testing.T) {
	rows := map[*catalogue.Policy]bool{}
	for i := range members().Len() {
		row, ok := catalogue.Of(pluginOf(members().Get(i)))
		require.True(t, ok, members().Get(i).Name())
		require.False(t, rows[row], "%s has the row of another member", members().Get(i).Name())
		rows[row] = true
	}
	require.Len(t, catalogue.Policies, len(rows), "a row without a member can never be chosen")
	_, ok := catalogue.Of(&apportionv1.Plugin{})
	require.False(t, ok)
	_, ok = catalogue.Of(nil)
	require.False(t, ok)
}

func TestRowsSayWhatTheirPluginsAre(t *testing.T) {
	m, err := decode.Compile(&apportionv1.Snapshot{Queues: []*apportionv1.Queue{{Name: "root"}, {Name: "q"}}})
	require.NoError(t, err)
	decisions := map[*catalogue.Policy]engine.Decisions{}
	for _, form := range catalogue.Forms() {
		p, _ := catalogue.Plugin(form)
		row, _ := catalogue.Of(p)
		plugin := row.Read(p, func(path, format string, args ...any) { t.Errorf(path+": "+format, args...) })
		require.Equal(t, row.Name, plugin.Name())
		require.True(t, catalogue.Named(plugin.Name()))
		state, err := plugin.Open(policy.NewView(m, nil))
		require.NoError(t, err)
		decisions[row] |= taken(state)
	}
	for i := range catalogue.Policies {
		row := &catalogue.Policies[i]
		require.Equal(t, decisions[row], row.Decisions, "%s takes part in %b", row.Name, decisions[row])
	}
}

// taken returns the decisions that a plugin takes part in, by the interfaces that its state implements.
func taken(state policy.State) engine.Decisions {
	var out engine.Decisions
	for d, takes := range map[engine.Decision]bool{
		engine.QueueOrder:       is[policy.QueueOrderer](state),
		engine.JobOrder:         is[policy.JobOrderer](state),
		engine.TaskOrder:        is[policy.TaskOrderer](state),
		engine.JobReady:         is[policy.Readier](state),
		engine.JobPipelined:     is[policy.Pipeliner](state),
		engine.JobStarving:      is[policy.Starver](state),
		engine.JobEnqueued:      is[policy.Enqueuer](state),
		engine.Overused:         is[policy.Overuser](state),
		engine.Allocatable:      is[policy.Allocater](state),
		engine.Preemptive:       is[policy.Preempter](state),
		engine.Reclaimable:      is[policy.Reclaimer](state) || is[policy.Planner](state),
		engine.Preemptable:      is[policy.Preemptor](state),
		engine.Predicate:        is[policy.Predicater](state) || is[policy.NodeFilter](state),
		engine.NodeOrder:        is[policy.NodeScorer](state),
		engine.JobValid:         is[policy.Validator](state),
		engine.VictimQueueOrder: is[policy.VictimQueueOrderer](state),
		engine.Victim:           is[policy.Shuffler](state),
	} {
		if takes {
			out = out.With(d)
		}
	}
	return out
}

func is[T any](state policy.State) bool {
	_, ok := state.(T)
	return ok
}

func TestFormsHaveNamesOfTheirOwnAndPresetsHoldForms(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range catalogue.Forms() {
		require.False(t, seen[name], name)
		seen[name] = true
		p, ok := catalogue.Plugin(name)
		require.True(t, ok)
		row, ok := catalogue.Of(p)
		require.True(t, ok)
		require.Regexp(t, "^"+row.Name+"(/|$)", name)
	}
	for preset, tiers := range catalogue.Presets() {
		for _, tier := range tiers {
			for _, name := range tier {
				require.True(t, seen[name], "preset %s: %s", preset, name)
			}
		}
	}
}

func TestACallerMayChangeAForm(t *testing.T) {
	first, _ := catalogue.Plugin("capacity/hierarchical")
	first.GetCapacity().AncestorReclaimLevel = 7
	second, _ := catalogue.Plugin("capacity/hierarchical")
	require.Zero(t, second.GetCapacity().GetAncestorReclaimLevel())
	require.True(t, second.GetCapacity().GetHierarchical())
}

func TestVolcanoKnowsItsOwnPluginsOnly(t *testing.T) {
	for name, want := range map[string]string{"drf": "drf {}", "capacity": "capacity {}", "gang": "gang {}"} {
		p, ok := catalogue.VolcanoPlugin(name, false)
		require.True(t, ok)
		requireText(t, want, p)
	}
	for name, want := range map[string]string{"drf": "hierarchical_drf {}", "capacity": "capacity { hierarchical: true }", "gang": "gang {}"} {
		p, ok := catalogue.VolcanoPlugin(name, true)
		require.True(t, ok)
		requireText(t, want, p)
	}
	for _, name := range []string{"", "undecided", "drf/hierarchical", "usage"} {
		_, ok := catalogue.VolcanoPlugin(name, false)
		require.False(t, ok, name)
	}
}

func requireText(t *testing.T, want string, got *apportionv1.Plugin) {
	t.Helper()
	expected := &apportionv1.Plugin{}
	require.NoError(t, prototext.Unmarshal([]byte(want), expected))
	require.True(t, proto.Equal(expected, got), "%s, not %s", want, got)
}

func TestWhatIsCanonicalStaysAsItIs(t *testing.T) {
	for i := range members().Len() {
		p := pluginOf(members().Get(i))
		row, _ := catalogue.Of(p)
		once := row.Canonical(p)
		require.True(t, proto.Equal(once, row.Canonical(once)), "%s", once)
	}
}

func TestAMemberWithoutAMessageCountsAsAnEmptyOne(t *testing.T) {
	for _, p := range []*apportionv1.Plugin{
		{Plugin: &apportionv1.Plugin_Binpack{}}, {Plugin: &apportionv1.Plugin_Capacity{}}, {Plugin: &apportionv1.Plugin_Gang{}},
	} {
		row, ok := catalogue.Of(p)
		require.True(t, ok)
		require.NotNil(t, row.Read(p, nil))
		require.NotNil(t, row.Canonical(p))
	}
}
