package schedulerconf

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestWhatOfAConfigurationFairTakesOver(t *testing.T) {
	for _, test := range []struct {
		name, conf, policy string
		warned             []string
	}{
		{
			"proportion in the second tier", "tiers:\n- plugins:\n  - name: priority\n  - name: gang\n- plugins:\n  - name: drf\n  - name: proportion\nactions: allocate\n",
			`{"tierWalk": "TIER_WALK_STRICT", "tiers": [{"plugins": [{"priority": {}}, {"gang": {}}, {"fair": {"base": "FAIR_BASE_NONE", "turns": {"singleWaitSeconds": 43200}}}]}]}`,
			[]string{
				"volcano.conf:6: tiers[1].plugins[0]: all plugins are in one tier: in Volcano the first tier with victims decides alone, beside fair " +
					"each plugin protects its tasks",
				"volcano.conf:6: tiers[1].plugins[0]: drf is left out: it orders jobs by dominant share, but fair reserves room for jobs by priority " +
					"and age, and they must be served in that order",
				"volcano.conf:7: tiers[1].plugins[1]: proportion becomes fair with base NONE: weights decide the whole share, a guarantee lifts it; " +
					"shares are whole units and add up to no more than there is",
				"volcano.conf:7: tiers[1].plugins[1]: what a queue cannot use is lent; in Volcano a queue never holds more than it deserves",
				"volcano.conf:7: tiers[1].plugins[1]: a guarantee that is not used is lent and taken back when it is needed; set reserve_guarantee to " +
					"withhold it as Volcano does",
			},
		},
		{
			"capacity with a tree and a switch", plugins("  - name: capacity\n    enableHierarchy: true\n    enabledOverused: false\n" +
				"    arguments:\n      ancestorReclaimLevel: 2\n"),
			`{"tierWalk": "TIER_WALK_STRICT", "tiers": [{"plugins": [{"fair": {"base": "FAIR_BASE_DESERVED", "turns": {"singleWaitSeconds": 43200}}, "disabledDecisions": ["DECISION_OVERUSED"]}]}]}`,
			[]string{
				"volcano.conf:3: tiers[0].plugins[0]: capacity becomes fair with base DESERVED: each queue is entitled to what it deserves, as far as " +
					"it has a use for it",
				"volcano.conf:3: tiers[0].plugins[0]: what is left beyond that is divided by weight, which capacity does not look at; in Volcano it " +
					"goes to the queue that comes first",
				"volcano.conf:3: tiers[0].plugins[0]: deserved amounts that do not fit together are cut in proportion; in Volcano they are promised " +
					"all the same",
				"volcano.conf:3: tiers[0].plugins[0]: a guarantee that is not used is lent and taken back when it is needed; set reserve_guarantee to " +
					"withhold it as Volcano does",
				"volcano.conf:3: tiers[0].plugins[0]: ancestorReclaimLevel 2 is not carried over: under fair every queue between the victim and the " +
					"nearest common ancestor must hold more than its line",
				"volcano.conf:3: tiers[0].plugins[0]: decisions that are switched off stay so (overused); the properties of fair hold only if it takes " +
					"all of them",
			},
		},
		{
			"two plugins that divide", plugins("  - name: proportion\n  - name: capacity\n  - name: overcommit\n"),
			`{"tierWalk": "TIER_WALK_STRICT", "tiers": [{"plugins": [{"overcommit": {}}, {"fair": {"base": "FAIR_BASE_NONE", "turns": {"singleWaitSeconds": 43200}}}]}]}`,
			nil,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			policy, warned, err := ReadAsFair(objects.Source{Name: "volcano.conf", Data: []byte(test.conf)})
			require.NoError(t, err)
			requireMessage(t, test.policy, policy)
			if test.warned != nil {
				require.Equal(t, test.warned, texts(warned))
			} else {
				require.Contains(t, texts(warned)[0], "capacity is left out: proportion divides among the queues already")
			}
		})
	}
}

func TestAConfigurationThatIsNoneIsNoProposal(t *testing.T) {
	_, _, err := ReadAsFair(objects.Source{Name: "volcano.conf", Data: []byte("tiers: 5\n")})
	require.Error(t, err)
}

func TestAPolicyThatWasReadIsProposedWithoutLines(t *testing.T) {
	proportion := &apportionv1.Plugin{Plugin: &apportionv1.Plugin_Proportion{Proportion: &apportionv1.Proportion{}}}
	policy, warned := AsFair(&apportionv1.Policy{Tiers: []*apportionv1.Tier{{Plugins: []*apportionv1.Plugin{proportion}}}})
	requireMessage(t, `{"tierWalk": "TIER_WALK_STRICT", "tiers": [{"plugins": [{"fair": {"base": "FAIR_BASE_NONE", "turns": {"singleWaitSeconds": 43200}}}]}]}`, policy)
	require.Contains(t, texts(warned)[0], "policy: proportion becomes fair")
}
