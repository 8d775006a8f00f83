package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/wire"
)

// TestWhatTheContractForbidsOfKueueIsNamedByItsPath has a fault of each kind, and requires that all are named.
func TestWhatTheContractForbidsOfKueueIsNamedByItsPath(t *testing.T) {
	m, err := decode.Compile(parse(t, &apportionv1.Snapshot{}, `
		kueue {
			flavors { name: "f" taints { effect: "NoSchedule" } }
			flavors { name: "f" }
			cohorts { groups { covered_resources: ["cpu", ""] } }
			local_queues { consumed_usages { amount: 1 } penalty_usages { name: "cpu" amount: -1 } }
			local_queues { name: "l" weight: -1 consumed_usages { name: "cpu" amount: nan } }
		}
		queues { name: "q" kueue {
			groups { covered_resources: ["cpu", "memory"] flavors { resources { name: "cpu" nominal: -1 } resources { name: "cpu" } } }
			groups { covered_resources: ["cpu"] flavors { name: "f" resources {} } }
		} }
		jobs { name: "j" queue: "q" kueue {
			local_queue: 7 pod_sets { name: "s" count: -1 reclaimable: -1 min_count: 9 requests {} } pod_sets { name: "s" }
			admission { pod_sets { count: -1 usages { amount: -1 } } }
		} }`))
	require.NoError(t, err)
	_, err = wire.Open(m, parse(t, &apportionv1.Policy{}, `tiers { plugins { kueue {} } }`), wire.Options{})
	require.Error(t, err)
	require.ElementsMatch(t, []string{
		`snapshot.kueue.flavors[0].taints[0].key: a key is needed`,
		`snapshot.kueue.flavors[1].name: "f" is there twice`,
		`snapshot.kueue.cohorts[0].name: a name is needed`,
		`snapshot.kueue.cohorts[0].groups[0].covered_resources[1]: the name of a resource is needed`,
		`snapshot.kueue.local_queues[0].name: a name is needed`,
		`snapshot.kueue.local_queues[0].consumed_usages[0].name: the name of a resource is needed`,
		`snapshot.kueue.local_queues[0].penalty_usages[0].amount: -1 is not a finite number of at least 0`,
		`snapshot.kueue.local_queues[1].weight: -1 is not a finite number of at least 0`,
		`snapshot.kueue.local_queues[1].consumed_usages[0].amount: NaN is not a finite number of at least 0`,
		`snapshot.queues[0].kueue.groups[0].flavors[0].name: a flavor needs a name`,
		`snapshot.queues[0].kueue.groups[0].flavors[0].resources[0].nominal: -1 is negative`,
		`snapshot.queues[0].kueue.groups[0].flavors[0].resources[1]: "cpu" is there twice`,
		`snapshot.queues[0].kueue.groups[1].covered_resources[0]: "cpu" is there twice`,
		`snapshot.queues[0].kueue.groups[1].flavors[0].resources[0].name: a quota needs the name of a resource`,
		`snapshot.jobs[0].kueue.local_queue: there is no local queue 7`,
		`snapshot.jobs[0].kueue.pod_sets[0].count: -1 is negative`,
		`snapshot.jobs[0].kueue.pod_sets[0].reclaimable: -1 is negative`,
		`snapshot.jobs[0].kueue.pod_sets[0].min_count: 9 is not from 0 to 0`,
		`snapshot.jobs[0].kueue.pod_sets[0].requests[0].name: the name of a resource is needed`,
		`snapshot.jobs[0].kueue.pod_sets[1].name: "s" is there twice`,
		`snapshot.jobs[0].kueue.admission.pod_sets[0].count: -1 is negative`,
		`snapshot.jobs[0].kueue.admission.pod_sets[0].usages[0].resource: the name of a resource is needed`,
		`snapshot.jobs[0].kueue.admission.pod_sets[0].usages[0].amount: -1 is negative`,
	}, fields(t, decode.Status(err)))
}
