package wire_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/policy/binpack"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/nodegroup"
	"github.com/apportion/apportion/engine/policy/overcommit"
	"github.com/apportion/apportion/engine/policy/undecided"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

func TestAPolicyIsReadWithItsSettings(t *testing.T) {
	p, err := decode.Policy(parse(t, &apportionv1.Policy{}, `tier_walk: TIER_WALK_VOLCANO volcano { actions: ["reclaim", "enqueue", "reclaim"] }
	tiers { plugins { proportion {} disabled_decisions: [DECISION_OVERUSED, DECISION_JOB_ENQUEUED] } plugins { capacity { hierarchical: true ancestor_reclaim_level: -3 } } }
	tiers {}
	tiers { plugins { binpack { weight: 0 memory: 2 resources { name: "gpu" } resources { name: "x" weight: -1 } } }
	  plugins { node_group { strict: false hierarchical: true } } plugins { overcommit { factor: 1.5 } } plugins { undecided { name: "tdm" } } }`))
	require.NoError(t, err)
	require.Equal(t, engine.Volcano, p.Walk)
	require.Equal(t, []string{"reclaim", "enqueue", "reclaim"}, p.Actions, "in order, repetition counts")
	require.Len(t, p.Tiers, 3, "an empty tier keeps its number")
	require.Equal(t, engine.Decisions(0).With(engine.Overused).With(engine.JobEnqueued), p.Tiers[0][0].Disabled)
	require.Equal(t, capacity.Plugin{Hierarchical: true, AncestorReclaimLevel: -3}, p.Tiers[0][1].Plugin)
	require.Equal(t, binpack.Plugin{CPU: 1, Memory: 2, Resources: []binpack.Weight{{Name: "gpu", Weight: 1}, {Name: "x", Weight: -1}}}, p.Tiers[2][0].Plugin)
	require.Equal(t, nodegroup.Plugin{Hierarchical: true}, p.Tiers[2][1].Plugin)
	require.Equal(t, overcommit.Plugin{Factor: 1.5}, p.Tiers[2][2].Plugin)
	require.Equal(t, undecided.Plugin{Called: "tdm"}, p.Tiers[2][3].Plugin)
}

func TestEveryPluginOfTheContractIsKnown(t *testing.T) {
	plugins := (&apportionv1.Plugin{}).ProtoReflect().Descriptor().Oneofs().ByName("plugin").Fields()
	for i := range plugins.Len() {
		p := &apportionv1.Plugin{}
		p.ProtoReflect().Mutable(plugins.Get(i))
		if p.GetUndecided() != nil {
			p.GetUndecided().Name = "tdm"
		}
		compiled, err := decode.Policy(&apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{p}}}})
		require.NoError(t, err, plugins.Get(i).Name())
		require.NotEmpty(t, compiled.Tiers[0][0].Plugin.Name())
		open(t, twoQueues, `tiers { plugins { `+strings.ReplaceAll(p.String(), "  ", " ")+` } }`)
	}
}

func TestAFaultyPolicyNamesItsFields(t *testing.T) {
	for text, want := range map[string]string{
		`tier_walk: 9`:       `policy.tier_walk: no tier walk 9`,
		`volcano_release: 9`: `policy.volcano_release: no release 9`,
		`volcano { actions: ["enqueue", "realocate"] }`: `policy.volcano.actions[1]: no action "realocate"; did you mean "allocate"? There are ` +
			`enqueue, allocate, backfill, preempt, reclaim, gangpreempt, gangreclaim, shuffle`,
		`volcano { ` + strings.Repeat(`actions: "shuffle" `, 101) + `}`: `policy.volcano.actions: 101 actions are more than 100`,
		`source: "` + strings.Repeat("s", 1001) + `"`:                   `policy.source: 1001 bytes are more than 1000`,
		`tiers { plugins { gang {} disabled_decisions: [1, 0] } }`:      `policy.tiers[0].plugins[0].disabled_decisions[1]: no decision 0`,
		`tiers { plugins { gang {} disabled_decisions: 18 } }`:          `policy.tiers[0].plugins[0].disabled_decisions[0]: no decision 18`,
		`tiers { plugins { undecided {} } }`:                            `policy.tiers[0].plugins[0].undecided.name: a plugin needs a name`,
		`tiers { plugins { gang {} } } tiers { plugins { gang {} } }`:   `policy.tiers[1].plugins[0]: plugin "gang" is tiers[0].plugins[0] already`,
		`tiers { plugins { fair {} } } tiers { plugins { backfill {} } }`: `policy.tiers[1].plugins[0]: plugin "backfill" does not go with "fair", which is tiers[0].plugins[0]: ` +
			`it would keep room for borrowers on nodes from which entitled queues take back; turns {} of fair keep room for gangs`,
		`tiers { plugins { backfill { kind: BACKFILL_KIND_CONSERVATIVE } } plugins { kueue {} } }`: `policy.tiers[0].plugins[0]: plugin "backfill" does not go with "kueue", ` +
			`which is tiers[0].plugins[1]: kueue admits by quota and looks at no node, so no room would be kept`,
		`tiers { plugins { binpack { cpu: nan } } }`:                  `policy.tiers[0].plugins[0].binpack.cpu: NaN is not a finite number`,
		`tiers { plugins { binpack { resources { weight: inf } } } }`: `policy.tiers[0].plugins[0].binpack.resources[0].weight: +Inf is not a finite number`,
		`tiers { plugins { overcommit { factor: nan } } }`:            `policy.tiers[0].plugins[0].overcommit.factor: NaN is not a finite number`,
	} {
		_, err := decode.Policy(parse(t, &apportionv1.Policy{}, text))
		require.Error(t, err, text)
		st := decode.Status(err)
		require.Equal(t, "INVALID_POLICY", errorInfo(t, st).GetReason())
		require.Equal(t, []string{want}, fields(t, st))
	}
}

func TestPoliciesThatAreReadAsTheSameHaveTheSameDigest(t *testing.T) {
	digest := func(text string) string { return decode.PolicyDigest(parse(t, &apportionv1.Policy{}, text)) }
	for _, same := range [][2]string{
		{``, `tier_walk: TIER_WALK_STRICT`},
		{``, `volcano_release: VOLCANO_RELEASE_1_15`},
		{``, `volcano {}`},
		{``, `source: "volcano-scheduler.conf"`},
		{`tiers { plugins { capacity { ancestor_reclaim_level: 3 } } }`, `tiers { plugins { capacity {} } }`},
		{`tiers { plugins { capacity { hierarchical: true ancestor_reclaim_level: -1 } } }`, `tiers { plugins { capacity { hierarchical: true } } }`},
		{`tiers { plugins { binpack {} } }`, `tiers { plugins { binpack { weight: 1 cpu: 1 memory: -5 resources { name: "cpu" weight: 7 } } } }`},
		{`tiers { plugins { node_group {} } }`, `tiers { plugins { node_group { strict: true } } }`},
		{`tiers { plugins { overcommit { factor: 0.5 } } }`, `tiers { plugins { overcommit { factor: 1.2 } } }`},
		{`tiers { plugins { gang {} disabled_decisions: [3, 1, 3] } }`, `tiers { plugins { gang {} disabled_decisions: [1, 3] } }`},
	} {
		require.Equal(t, digest(same[0]), digest(same[1]), same[0])
	}
	seen := map[string]string{}
	for _, text := range []string{
		``, `tier_walk: TIER_WALK_VOLCANO`, `volcano_release: VOLCANO_RELEASE_1_16`, `tiers {}`, `tiers { plugins { gang {} } }`, `tiers { plugins { priority {} } }`,
		`tiers { plugins { gang {} } plugins { priority {} } }`, `tiers { plugins { gang {} } } tiers { plugins { priority {} } }`,
		`tiers { plugins { gang {} disabled_decisions: 1 } }`, `tiers { plugins { capacity {} } }`, `tiers { plugins { capacity { hierarchical: true } } }`,
		`tiers { plugins { binpack {} } }`, `tiers { plugins { binpack { weight: 0 } } }`, `tiers { plugins { undecided { name: "a" } } }`,
		`tiers { plugins { undecided { name: "b" } } }`, `volcano { actions: ["enqueue", "allocate"] }`, `volcano { actions: ["allocate", "enqueue"] }`,
		`volcano { actions: ["allocate"] }`,
	} {
		d := digest(text)
		require.Regexp(t, "^sha256:[0-9a-f]{64}$", d)
		require.Empty(t, seen[d], text)
		seen[d] = text + " "
	}
}

func TestWhatIsNotKnownChangesNoDigest(t *testing.T) {
	p := parse(t, &apportionv1.Policy{}, `tiers { plugins { gang {} } }`)
	want := decode.PolicyDigest(p)
	unknown := []byte{0xf8, 0x07, 0x01}
	p.ProtoReflect().SetUnknown(unknown)
	p.GetTiers()[0].GetPlugins()[0].ProtoReflect().SetUnknown(unknown)
	p.GetTiers()[0].GetPlugins()[0].GetGang().ProtoReflect().SetUnknown(unknown)
	before := proto.CloneOf(p)
	require.Equal(t, want, decode.PolicyDigest(p))
	require.True(t, proto.Equal(before, p), "the caller's policy is left alone")
}

func TestUnknownNumbersInASnapshotAreNamed(t *testing.T) {
	_, err := decode.Compile(parse(t, &apportionv1.Snapshot{}, `queues { name: "q" state: 9 }
	  jobs { uid: "j" queue: "q" phase: 9 groups { tasks { status: 11 index: 4000000000 detail { gate: 7 } } counts { status: -1 gate: 3 count: 1 } } }
	  jobs { uid: "k" queue: "q" groups { tasks { node: 4294967295 } } }`))
	require.Equal(t, []string{
		"snapshot.queues[0].state: no state 9", "snapshot.jobs[0].phase: no phase 9",
		"snapshot.jobs[0].groups[0].tasks[0].status: no status 11",
		"snapshot.jobs[0].groups[0].tasks[0].index: 4000000000 is above 2147483647",
		"snapshot.jobs[0].groups[0].tasks[0].detail.gate: no gate 7",
		"snapshot.jobs[0].groups[0].counts[0].status: no status -1",
		"snapshot.jobs[0].groups[0].counts[0].gate: no gate 3",
		"snapshot.jobs[1].groups[0].tasks[0].node: no node 2147483647, there are 0 nodes",
	}, fields(t, decode.Status(err)))
}

func TestAFaultOfTheProgramTellsNothingOfItself(t *testing.T) {
	st := decode.Status(io.ErrUnexpectedEOF)
	require.Equal(t, "internal error", st.GetMessage())
	require.Equal(t, "INTERNAL", errorInfo(t, st).GetReason())
}

func TestSharesAndEnqueuesAskForSumsOnly(t *testing.T) {
	shares := &apportionv1.Step{Step: &apportionv1.Step_Shares{Shares: &apportionv1.SharesStep{}}}
	withoutSettings := &apportionv1.Step{Step: &apportionv1.Step_Shares{}}
	order := &apportionv1.Step{Step: &apportionv1.Step_Order{Order: &apportionv1.OrderStep{}}}
	for name, c := range map[string]struct {
		policy string
		steps  []*apportionv1.Step
		want   bool
	}{
		"shares":                              {"proportion", []*apportionv1.Step{shares}, true},
		"shares without settings":             {"proportion", []*apportionv1.Step{withoutSettings}, true},
		"shares twice":                        {"capacity flat", []*apportionv1.Step{shares, withoutSettings}, true},
		"who may be enqueued":                 {"proportion", []*apportionv1.Step{enqueue(0), {Step: &apportionv1.Step_Enqueue{}}}, true},
		"shares and an order":                 {"proportion", []*apportionv1.Step{shares, order}, false},
		"an order":                            {"proportion", []*apportionv1.Step{order}, false},
		"a step that is empty":                {"proportion", []*apportionv1.Step{{}}, false},
		"shares under a policy that looks on": {"hierarchical drf", []*apportionv1.Step{shares}, false},
		"shares under Volcano's default":      {"default", []*apportionv1.Step{shares, shares}, true},
		"who may be enqueued under it":        {"default", []*apportionv1.Step{shares, enqueue(0)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &apportionv1.Policy{}
			require.NoError(t, prototext.Unmarshal([]byte(policies[c.policy]), p))
			require.Equal(t, c.want, wire.OnlySums(p, c.steps))
		})
	}
}
