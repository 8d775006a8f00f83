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
		dimensions: "cpu" dimensions: "memory" dimensions: "gpu"
		node_sets { name: "f" flavor { taints { effect: "NoSchedule" } } }
		queues { name: "q" kueue {
			quotas { nominal { dimensions: [0, 1] amounts: [-1, 9e15] } lending_limit { dimensions: 2 amounts: 1 } }
			quotas { node_set: "f" nominal { dimensions: [1, 2] amounts: [1, 2] } }
			quotas { node_set: "f" nominal { dimensions: [2, 0] amounts: [3e18, 1] } borrowing_limit { dimensions: 2 } }
			checks {}
			local_queues { consumed { dimensions: 0 amounts: 1 } }
			local_queues { owner: "l" weight: -1 consumed { dimensions: 0 amounts: nan } penalty { dimensions: [0, 0] amounts: [-1, 1] } }
			local_queues { owner: "l" }
		} }
		queues { name: "c" kueue { cohort: true quotas { node_set: "f" nominal { dimensions: 9 amounts: 1 } } } }
		jobs { name: "j" queue: "q" kueue {
			admitted: true
			pod_sets {
				name: "s" count: -1 reclaimable: -1 min_count: 9 request { dimensions: 3 amounts: 1 } admitted_count: -1
				uses { used { dimensions: 0 amounts: -1 } unused_dimensions: [0, 4] }
			}
			pod_sets { name: "s" }
		} }
		jobs { name: "k" queue: "c" kueue {} }`))
	require.NoError(t, err)
	_, err = wire.Open(m, parse(t, &apportionv1.Policy{}, `tiers { plugins { kueue {} } }`), wire.Options{})
	require.Error(t, err)
	require.ElementsMatch(t, []string{
		`snapshot.node_sets[1].flavor.taints[0].key: a key is needed`,
		`snapshot.queues[0].kueue.quotas[0].node_set: a flavor needs a name`,
		`snapshot.queues[0].kueue.quotas[0].nominal.amounts[0]: -1 is not an amount from 0 to 2^53 of cpu, memory and pods, or to 2^51 whole units of another resource`,
		`snapshot.queues[0].kueue.quotas[0].lending_limit: there is no nominal quota of "gpu"`,
		`snapshot.queues[0].kueue.quotas[1].nominal: the quotas of a resource group have the same dimensions`,
		`snapshot.queues[0].kueue.quotas[2].nominal.amounts[0]: 3e+18 is not an amount from 0 to 2^53 of cpu, memory and pods, or to 2^51 whole units of another resource`,
		`snapshot.queues[0].kueue.quotas[2].borrowing_limit: 1 dimensions and 0 amounts`,
		`snapshot.queues[0].kueue.quotas[2].nominal: quotas of other dimensions have "cpu", too`,
		`snapshot.queues[0].kueue.checks[0].name: a name is needed`,
		`snapshot.queues[0].kueue.local_queues[0].owner: a name is needed`,
		`snapshot.queues[0].kueue.local_queues[1].weight: -1 is not a finite number of at least 0`,
		`snapshot.queues[0].kueue.local_queues[1].consumed.amounts[0]: NaN is not a finite number of at least 0`,
		`snapshot.queues[0].kueue.local_queues[1].penalty.amounts[0]: -1 is not a finite number of at least 0`,
		`snapshot.queues[0].kueue.local_queues[1].penalty.dimensions[1]: "cpu" is there twice`,
		`snapshot.queues[0].kueue.local_queues[2].owner: "l" is there twice`,
		`snapshot.queues[1].kueue.quotas[0].nominal.dimensions[0]: there is no such dimension`,
		`snapshot.jobs[0].kueue.pod_sets[0].count: -1 is negative`,
		`snapshot.jobs[0].kueue.pod_sets[0].reclaimable: -1 is negative`,
		`snapshot.jobs[0].kueue.pod_sets[0].min_count: 9 is not from 0 to 0`,
		`snapshot.jobs[0].kueue.pod_sets[0].request.dimensions[0]: there is no such dimension`,
		`snapshot.jobs[0].kueue.pod_sets[0].admitted_count: -1 is negative`,
		`snapshot.jobs[0].kueue.pod_sets[0].uses[0].used.amounts[0]: -1 is not an amount from 0 to 2^53 of cpu, memory and pods, or to 2^51 whole units of another resource`,
		`snapshot.jobs[0].kueue.pod_sets[0].uses[0].unused_dimensions: "cpu" is there twice`,
		`snapshot.jobs[0].kueue.pod_sets[0].uses[0].unused_dimensions[1]: there is no such dimension`,
		`snapshot.jobs[0].kueue.pod_sets[1].name: "s" is there twice`,
		`snapshot.jobs[1].queue: a cohort takes no jobs`,
	}, fields(t, decode.Status(err)))
}
