package schedulerconf

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// readConf reads a configuration that must be in order.
func readConf(t *testing.T, conf string) (*apportionv1.Policy, []string) {
	t.Helper()
	policy, warned, err := Read(objects.Source{Name: "volcano.conf", Data: []byte(conf)})
	require.NoError(t, err)
	return policy, texts(warned)
}

// plugins is a configuration with one tier of these plugins, from line 3 on.
func plugins(lines string) string { return "tiers:\n- plugins:\n" + lines + "actions: allocate\n" }

func TestVolcanosDefaultConfiguration(t *testing.T) {
	policy, warned := readConf(t, `
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
`)
	requireMessage(t, `{
		"source": "volcano.conf", "volcano": {"actions": ["enqueue", "allocate", "backfill"]}, "tierWalk": "TIER_WALK_VOLCANO",
		"tiers": [
			{"plugins": [{"priority": {}}, {"gang": {}}, {"conformance": {}}]},
			{"plugins": [
				{"overcommit": {}}, {"drf": {}}, {"predicates": {}}, {"proportion": {}}, {"nodeOrder": {}}
			]}
		]
	}`, policy)
	require.Empty(t, warned)
}

func TestSettingsOfPlugins(t *testing.T) {
	for name, c := range map[string]struct {
		conf, want string
		warned     []string
	}{
		"capacity": {conf: "  - name: capacity\n", want: `{"capacity": {}}`},
		"weights of scores": {
			conf: "  - name: nodeorder\n    arguments:\n      leastrequested.weight: 0\n      mostrequested.weight: -2\n" +
				"      balancedresource.weight: 3.5\n      tainttoleration.weight: 99999999999\n      nodeaffinity.weight: 4\n",
			want: `{"nodeOrder": {"leastRequested": 0, "mostRequested": -2, "taintToleration": 2147483647, "nodeAffinity": 4}}`,
			warned: []string{
				"volcano.conf:7: tiers[0].plugins[0].arguments.balancedresource.weight: not a whole number, so Volcano uses the default: \"3.5\"",
			},
		},
		"a waiting time": {
			conf: "  - name: sla\n    arguments: {sla-waiting-time: 1h2m}\n", want: `{"sla": {"waitingTime": "3720000000000"}}`,
		},
		"a waiting time that is none": {
			conf: "  - name: sla\n    arguments: {sla-waiting-time: 1d}\n", want: `{"sla": {}}`,
			warned: []string{`volcano.conf:4: tiers[0].plugins[0].arguments.sla-waiting-time: not a duration such as 1h30m, so in Volcano no time counts: "1d"`},
		},
		"a waiting time below zero": {
			conf: "  - name: sla\n    arguments: {sla-waiting-time: -1h}\n", want: `{"sla": {}}`,
			warned: []string{`volcano.conf:4: tiers[0].plugins[0].arguments.sla-waiting-time: not a duration such as 1h30m, so in Volcano no time counts: "-1h"`},
		},
		"zones": {
			conf: "  - name: tdm\n    arguments:\n      tdm.revocable-zone.rz1: 10:00-21:00\n      rz2.tdm.revocable-zone.: never\n      tdm.evict.period: 1m\n",
			want: `{"tdm": {"zones": [{"name": "rz1", "period": "10:00-21:00"}, {"name": "rz2.", "period": "never"}]}}`,
		},
		"quotas and budgets have no arguments": {
			conf: "  - name: pdb\n    enabledVictim: false\n    arguments: {a: 1}\n", want: `{"pdb": {}, "disabledDecisions": ["DECISION_VICTIM"]}`,
			warned: []string{`volcano.conf:5: tiers[0].plugins[0].arguments.a: pdb has no such argument`},
		},
		"rules about nodes": {
			conf: "  - name: predicates\n    enablePredicate: false\n    arguments:\n      predicate.CacheEnable: true\n" +
				"      predicate.TaintTolerationEnable: false\n      predicate.Taints: false\n",
			want: `{"predicates": {}, "disabledDecisions": ["DECISION_PREDICATE"]}`,
			warned: []string{
				"volcano.conf:7: tiers[0].plugins[0].arguments.predicate.TaintTolerationEnable: such rules are heeded here all the same",
				"volcano.conf:8: tiers[0].plugins[0].arguments.predicate.Taints: predicates has no such argument",
			},
		},
		"capacity, hierarchical": {
			conf: "  - name: capacity\n    enableHierarchy: true\n    arguments: {ancestorReclaimLevel: 2}\n",
			want: `{"capacity": {"hierarchical": true, "ancestorReclaimLevel": 2}}`,
		},
		"a negative level is none": {
			conf: "  - name: capacity\n    arguments: {ancestorReclaimLevel: -1}\n", want: `{"capacity": {}}`,
		},
		"a level beyond all trees": {
			conf: "  - name: capacity\n    arguments: {ancestorReclaimLevel: 99999999999}\n",
			want: `{"capacity": {"ancestorReclaimLevel": 2147483647}}`,
		},
		"a level in quotes is ignored": {
			conf: "  - name: capacity\n    arguments:\n      ancestorReclaimLevel: \"2\"\n", want: `{"capacity": {}}`,
			warned: []string{
				`volcano.conf:5: tiers[0].plugins[0].arguments.ancestorReclaimLevel: not a whole number, so Volcano uses the default: "2"`,
			},
		},
		"drf with hierarchy is another plugin": {
			conf: "  - name: drf\n    enableHierarchy: yes\n", want: `{"hierarchicalDrf": {}}`,
		},
		"drf without": {conf: "  - name: drf\n    enableHierarchy: false\n", want: `{"drf": {}}`},
		"cdp":         {conf: "  - name: cdp\n", want: `{"cooldown": {}}`},
		"nodegroup":   {conf: "  - name: nodegroup\n    arguments:\n", want: `{"nodeGroup": {}}`},
		"nodegroup, with texts that are booleans to Go": {
			conf: "  - name: nodegroup\n    enableHierarchy: true\n    arguments: {strict: \"0\", enablePreferredOrder: \"t\"}\n",
			want: `{"nodeGroup": {"strict": false, "preferredOrder": true, "hierarchical": true}}`,
		},
		"nodegroup, with what is no boolean": {
			conf: "  - name: nodegroup\n    arguments:\n      strict: 0\n      enablePreferredOrder: on\n",
			want: `{"nodeGroup": {"preferredOrder": true}}`,
			warned: []string{
				`volcano.conf:5: tiers[0].plugins[0].arguments.strict: neither true nor false, so Volcano uses the default: "0"`,
			},
		},
		"overcommit": {
			conf: "  - name: overcommit\n    arguments: {overcommit-factor: 2}\n", want: `{"overcommit": {"factor": 2}}`,
		},
		"overcommit without bound": {
			conf: "  - name: overcommit\n    arguments: {overcommit-factor: .inf}\n", want: `{"overcommit": {"factor": "Infinity"}}`,
		},
		"overcommit below 1 is kept as written": {
			conf: "  - name: overcommit\n    arguments: {overcommit-factor: 0.5}\n", want: `{"overcommit": {"factor": 0.5}}`,
		},
		"overcommit, indented as in Volcano's own examples, where it has no effect": {
			conf: "  - name: overcommit\n    arguments:\n    overcommit-factor: 1.0\n", want: `{"overcommit": {}}`,
			warned: []string{`volcano.conf:5: tiers[0].plugins[0].overcommit-factor: without effect here: it is an argument: indent it below arguments`},
		},
		"binpack": {
			conf: `  - name: binpack
    arguments:
      binpack.weight: -1
      binpack.cpu: 0
      binpack.memory: 3.0
      binpack.resources: "nvidia.com/gpu, ,pods,nvidia.com/gpu"
      binpack.resources.nvidia.com/gpu: 0x10
      binpack.resources.other: 7
`,
			want: `{"binpack": {"weight": -1, "cpu": 0, "resources": [{"name": "nvidia.com/gpu", "weight": 16}, {"name": "pods"}]}}`,
			warned: []string{
				`volcano.conf:7: tiers[0].plugins[0].arguments.binpack.memory: not a whole number, so Volcano uses the default: "3.0"`,
				`volcano.conf:10: tiers[0].plugins[0].arguments.binpack.resources.other: binpack has no such argument`,
			},
		},
		"binpack with a list for a text": {
			conf: "  - name: binpack\n    arguments: {binpack.resources: [a]}\n", want: `{"binpack": {}}`,
			warned: []string{`volcano.conf:4: tiers[0].plugins[0].arguments.binpack.resources: not a text, so Volcano ignores it`},
		},
		"arguments of a plugin that is not decided with": {
			conf: "  - name: usage\n    arguments: {usage.weight: 5}\n", want: `{"undecided": {"name": "usage"}}`,
			warned: []string{`volcano.conf:3: tiers[0].plugins[0]: plugin usage takes part in no decision of Apportion`},
		},
		"switches": {
			conf: `  - name: gang
    enableJobReady: false
    enabledOverused: off
    enableQueueOrder: true
    enabledVictim: false
    enableJobOrder: null
    enabledJobOrder: false
    enableHierachy: true
`,
			want: `{"gang": {}, "disabledDecisions": ["DECISION_JOB_READY", "DECISION_OVERUSED", "DECISION_VICTIM"]}`,
			warned: []string{
				`volcano.conf:9: tiers[0].plugins[0].enabledJobOrder: Volcano has no such switch; did you mean enableJobOrder?`,
				`volcano.conf:10: tiers[0].plugins[0].enableHierachy: Volcano has no such switch`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy, warned := readConf(t, plugins(c.conf))
			requireMessage(t, c.want, policy.Tiers[0].Plugins[0])
			require.Equal(t, c.warned, warned)
		})
	}
}

func TestEachSwitchDisablesItsDecision(t *testing.T) {
	for flag, decision := range decisionOf {
		policy, warned := readConf(t, plugins("  - name: gang\n    "+flag+": false\n"))
		require.Empty(t, warned, flag)
		disabled := policy.Tiers[0].Plugins[0].DisabledDecisions
		if decision == apportionv1.Decision_DECISION_UNSPECIFIED {
			require.Empty(t, disabled, flag)
		} else {
			require.Equal(t, []apportionv1.Decision{decision}, disabled)
		}
	}
}

func TestActionsAreReadAsVolcanoDoes(t *testing.T) {
	policy, warned := readConf(t, "  \n  actions: \"allocate,preempt , enqueue,allocate\"\n")
	require.Equal(t, []string{"allocate", "preempt", "enqueue", "allocate"}, policy.GetVolcano().GetActions())
	require.Len(t, warned, 1)
	require.True(t, strings.HasPrefix(warned[0], "volcano.conf:2: "), "the spaces before the first line are cut: %s", warned[0])
}

func TestPluginsThatVolcanoDoesNotHaveAreLeftOut(t *testing.T) {
	policy, warned := readConf(t, plugins("  - name: Gang\n  - name: priority\n  - enableJobOrder: false\n"))
	requireMessage(t, `{"plugins": [{"priority": {}}]}`, policy.Tiers[0])
	require.Equal(t, []string{
		`volcano.conf:3: tiers[0].plugins[0]: Volcano has no plugin Gang and leaves it out; did you mean "gang"?`,
		"volcano.conf:5: tiers[0].plugins[2]: a plugin without a name, which Volcano leaves out",
	}, warned)
}

func TestWhatVolcanoIgnoresIsAWarning(t *testing.T) {
	policy, warned := readConf(t, `actions: "enqueue"
configurations:
- name: enqueue
metrics: {interval: 30s}
tires: []
tiers:
- plugin: []
- plugins:
`)
	require.Len(t, policy.Tiers, 2)
	require.Equal(t, []string{
		"volcano.conf:3: configurations: settings of actions have no effect on decisions",
		"volcano.conf:5: tires: Volcano has no such setting",
		"volcano.conf:7: tiers[0].plugin: Volcano has no such setting of a tier",
	}, warned)
}

func TestAConfigurationWithoutTiersPermitsEverything(t *testing.T) {
	for _, conf := range []string{"actions: allocate\n", "actions: allocate\ntiers:\n"} {
		policy, warned := readConf(t, conf)
		require.Empty(t, policy.Tiers, conf)
		require.Equal(t, apportionv1.TierWalk_TIER_WALK_VOLCANO, policy.TierWalk)
		require.Len(t, warned, 1, conf)
		require.True(t, strings.HasSuffix(warned[0], "everything is permitted"), warned[0])
	}
}

func TestConfigurationsThatVolcanoRefuses(t *testing.T) {
	const all = "enqueue, allocate, backfill, preempt, reclaim, gangpreempt, gangreclaim, shuffle"
	for name, c := range map[string]struct {
		conf, want string
		// own says that only Apportion refuses it.
		own bool
	}{
		"nothing":                  {conf: "# nothing\n", want: "volcano.conf:1: nothing is configured, so there are no actions"},
		"no actions":               {conf: "tiers: []\n", want: "volcano.conf:1: there are no actions; known ones are " + all},
		"an empty list of actions": {conf: "actions: \"\"\n", want: "volcano.conf:1: actions: there are no actions; known ones are " + all},
		"a comma too many": {conf: "actions: enqueue,,allocate,\n", want: "volcano.conf:1: actions: an action without a name: a comma too many\n" +
			"volcano.conf:1: actions: an action without a name: a comma too many"},
		"semicolons":            {conf: "actions: enqueue; allocate\n", want: `volcano.conf:1: actions: there is no action "enqueue; allocate"; there are ` + all},
		"an unknown action":     {conf: "actions: enqueue, reclaims\n", want: `volcano.conf:1: actions: there is no action "reclaims"; did you mean "reclaim"? There are ` + all},
		"an action in capitals": {conf: "actions: Enqueue\n", want: `volcano.conf:1: actions: there is no action "Enqueue"; did you mean "enqueue"? There are ` + all},
		"indented as a whole":   {conf: "  actions: \"allocate\"\n  tiers: []\n", want: "volcano.conf:1: not YAML: did not find expected key"},
		"hierarchical drf beside proportion in a tier": {
			conf: plugins("  - name: proportion\n  - name: drf\n    enableHierarchy: true\n"),
			want: "volcano.conf:4: tiers[0].plugins[1]: drf with enableHierarchy and proportion exclude each other within a tier",
		},
		"all that is wrong": {
			conf: "actions: [allocate]\ntiers:\n- plugins:\n  - enableJobOrder: true\n  - gang\n  - name: gang\n    enableJobReady: \"false\"\n" +
				"    arguments: 3\n- plugins: {}\n- 3\n- plugins:\n  - name: overcommit\n    arguments: {overcommit-factor: .nan}\n",
			want: `volcano.conf:1: actions: not a text; write actions: "enqueue, allocate, backfill"
volcano.conf:5: tiers[0].plugins[1]: not a map
volcano.conf:7: tiers[0].plugins[2].enableJobReady: neither true nor false: "false"
volcano.conf:8: tiers[0].plugins[2].arguments: not a map
volcano.conf:9: tiers[1].plugins: not a list
volcano.conf:10: tiers[2]: not a map
volcano.conf:13: tiers[3].plugins[0].arguments.overcommit-factor: not a number`,
		},
		"a list of tiers that is none": {conf: "tiers: 3\nactions: allocate\n", want: "volcano.conf:1: tiers: not a list"},
		"a text":                       {conf: "hello\n", want: "volcano.conf:1: not a volcano-scheduler.conf"},
		"fair, without which no limit of a queue would hold": {
			own: true, conf: plugins("  - name: gang\n  - name: fair\n"),
			want: "volcano.conf:4: tiers[0].plugins[1]: fair is a policy of Apportion, not a plugin of Volcano: use the preset fair, or write it in a " +
				"policy file as tiers: [{plugins: [{priority: {}}, {gang: {}}, {conformance: {}}, {fair: {}}]}]",
		},
		"kueue": {
			own: true, conf: plugins("  - name: kueue\n"),
			want: "volcano.conf:3: tiers[0].plugins[0]: kueue is a policy of Apportion, not a plugin of Volcano: use the preset kueue, or write it in " +
				"a policy file as tiers: [{plugins: [{kueue: {}}]}]",
		},
		"the ConfigMap around it": {
			own:  true,
			conf: "apiVersion: v1\nkind: ConfigMap\n",
			want: "volcano.conf:2: kind: an object of Kubernetes; give only the text under data.volcano-scheduler.conf",
		},
		"compressed": {conf: "\x1f\x8b\x08", want: "volcano.conf:1: compressed by gzip: unpack it first, as gunzip does"},
		"no YAML":    {conf: "tiers:\n- plugins: [\n", want: "volcano.conf:2: not YAML: did not find expected node content"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Read(objects.Source{Name: "volcano.conf", Data: []byte(c.conf)})
			if !c.own {
				c.want += "\n" + Instead
			}
			require.EqualError(t, err, c.want)
		})
	}
}

func TestHierarchicalDrfAndProportionInDifferentTiersAreFine(t *testing.T) {
	policy, _ := readConf(t, plugins("  - name: drf\n    enableHierarchy: true\n- plugins:\n  - name: proportion\n"))
	require.Len(t, policy.Tiers, 2)
}
