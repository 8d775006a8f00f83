package audit_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/client/audit"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestConfigurationsThatDoNotDoWhatPeopleMeanAreFound(t *testing.T) {
	cpu := func(amount string) client.Resources { return client.Resources{"cpu": amount} }
	of := func(name, queue, asks string, phase apportionv1.JobPhase, group client.Group) client.Job {
		return client.Job{
			Name: name, Queue: queue, MinAvailable: 1, MinResources: cpu(asks), Phase: phase, Groups: []client.Group{group},
		}
	}
	over := of("runs", "a", "1", apportionv1.JobPhase_JOB_PHASE_RUNNING, client.Group{Request: cpu("1"), Running: 6})
	short := of("waits", "b", "3", apportionv1.JobPhase_JOB_PHASE_PENDING, client.Group{Request: cpu("3"), Pending: 1})
	never := of("huge", "b", "9", apportionv1.JobPhase_JOB_PHASE_INQUEUE, client.Group{Request: cpu("9"), Pending: 1})
	queues := []client.Queue{{Name: "a", Deserved: cpu("4")}, {Name: "b", Deserved: cpu("4")}}
	const gangOff = `plugins { gang {} disabled_decisions: [DECISION_RECLAIMABLE, DECISION_PREEMPTABLE] }`
	for name, c := range map[string]struct {
		policy string
		jobs   []client.Job
		rules  []string
	}{
		"no action takes back": {
			`volcano { actions: ["enqueue", "allocate"] } tiers { plugins { capacity {} } }`, []client.Job{over, short}, []string{"no-action-evicts"},
		},
		"one takes back, and gang votes beside capacity": {
			`volcano { actions: ["allocate", "reclaim"] } tiers { plugins { gang {} } plugins { capacity {} } }`, []client.Job{over, short}, nil,
		},
		"gang alone before capacity": {
			`volcano { actions: ["allocate", "reclaim"] } tiers { plugins { gang {} } } tiers { plugins { capacity {} } }`,
			[]client.Job{over},
			[]string{"shares-not-protected", "gangs-not-protected"},
		},
		"gang is off": {
			`volcano { actions: ["allocate", "reclaim"] } tiers { ` + gangOff + ` plugins { capacity {} } }`,
			[]client.Job{over},
			[]string{"gangs-not-protected"},
		},
		"drf after priority": {
			`volcano { actions: ["allocate", "preempt"] } tiers { plugins { priority {} } plugins { gang {} } } tiers { plugins { drf {} } plugins { capacity {} } }`,
			[]client.Job{over},
			[]string{"gangs-not-protected", "low-priority-evicts-high"},
		},
		"two dividers": {
			`volcano { actions: ["allocate"] } tiers { plugins { proportion {} } plugins { capacity {} } }`, nil, []string{"two-dividers"},
		},
		"enqueue in front of reclaim": {
			`volcano { actions: ["enqueue", "allocate", "reclaim"] } tiers { plugins { gang {} } plugins { capacity {} } plugins { overcommit {} } }`,
			[]client.Job{over, short},
			[]string{"enqueue-blocks-eviction"},
		},
		"a promise": {
			`volcano { actions: ["enqueue", "allocate"] } tiers { plugins { capacity {} } }`,
			[]client.Job{never},
			[]string{"promise-that-cannot-be-kept"},
		},
		"without enqueue nothing is promised": {
			`volcano { actions: ["allocate"] } tiers { plugins { capacity {} } }`, []client.Job{never}, nil,
		},
		"a switch that takes all back": {
			`volcano { actions: ["allocate"] } tiers { plugins { undecided { name: "predicates" } disabled_decisions: DECISION_PREDICATE } }`, nil,
			[]string{"nothing-is-placed"},
		},
		"deserved under proportion": {
			`tier_walk: TIER_WALK_VOLCANO tiers { plugins { proportion {} } }`, nil, []string{"setting-without-effect"},
		},
		"a policy that says nothing of actions": {`tiers { plugins { capacity {} } }`, []client.Job{over, short}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			policy := &apportionv1.Policy{}
			require.NoError(t, prototext.Unmarshal([]byte(c.policy), policy))
			snapshot, err := client.NewSnapshot().Node(client.Node{Name: "n", Allocatable: client.Resources{"cpu": "8", "memory": "8Gi"}}).
				Queue(queues...).Job(c.jobs...).Build()
			require.NoError(t, err)
			found, _, err := audit.Check(t.Context(), client.InProcess(), client.Input{Snapshot: snapshot, Policy: policy}, audit.Limits{Moves: -1})
			require.NoError(t, err)
			known := map[string]bool{}
			for _, id := range []string{
				"no-action-evicts", "shares-not-protected", "gangs-not-protected", "low-priority-evicts-high", "two-dividers",
				"enqueue-blocks-eviction", "promise-that-cannot-be-kept", "nothing-is-placed", "setting-without-effect",
			} {
				known[id] = true
			}
			var rules []string
			for _, f := range found {
				if known[f.Rule] {
					rules = append(rules, f.Rule)
				}
			}
			require.ElementsMatch(t, c.rules, rules, "%+v", found)
		})
	}
}
