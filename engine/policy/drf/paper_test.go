package drf_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/policy/drf"
	"github.com/apportion/apportion/engine/policy/policytest"
)

// The first example is the one of Ghodsi et al., Dominant Resource Fairness, NSDI 2011, sections 4 and 4.1; the other figures are computed
// by its rule. Volcano's rule differs in one thing: `pods` is a resource like any other.
func TestExamplesOfTheDRFPaper(t *testing.T) {
	const cpu, gigabyte = 1000, 1e9
	for name, c := range map[string]struct {
		total policytest.Amounts
		users map[string]policytest.Amounts
		// paper is who gets a task, in order, if pods are bounded but no resource.
		paper string
		// volcano is the same by Volcano's rule, if that gives another result.
		volcano string
	}{
		"9 CPUs and 18 GB for tasks of <1 CPU, 4 GB> and <3 CPUs, 1 GB>: 3 and 2 tasks": {
			total: policytest.Amounts{"cpu": 9 * cpu, "memory": 18 * gigabyte},
			users: map[string]policytest.Amounts{
				"A": {"cpu": 1 * cpu, "memory": 4 * gigabyte},
				"B": {"cpu": 3 * cpu, "memory": 1 * gigabyte},
			},
			paper: "ABABA",
		},
		"the same with room for 110 pods": {
			total: policytest.Amounts{"cpu": 9 * cpu, "memory": 18 * gigabyte, "pods": 110},
			users: map[string]policytest.Amounts{
				"A": {"cpu": 1 * cpu, "memory": 4 * gigabyte, "pods": 1},
				"B": {"cpu": 3 * cpu, "memory": 1 * gigabyte, "pods": 1},
			},
			paper: "ABABA",
		},
		"one resource: equal parts, whatever the size of tasks": {
			total: policytest.Amounts{"cpu": 12 * cpu},
			users: map[string]policytest.Amounts{"A": {"cpu": 1 * cpu}, "B": {"cpu": 2 * cpu}},
			paper: "ABAABAABA",
		},
		"different dominant resources: both may have all of theirs": {
			total: policytest.Amounts{"cpu": 3 * cpu, "memory": 3 * gigabyte},
			users: map[string]policytest.Amounts{"A": {"cpu": 1 * cpu}, "B": {"memory": 1 * gigabyte}},
			paper: "ABABAB",
		},
		"few pods: Volcano shares them out": {
			total: policytest.Amounts{"cpu": 10 * cpu, "pods": 6},
			users: map[string]policytest.Amounts{"A": {"cpu": 1 * cpu, "pods": 1}, "B": {"cpu": 2 * cpu, "pods": 1}},
			paper: "ABAABA", volcano: "ABABAB",
		},
	} {
		t.Run(name, func(t *testing.T) {
			play := func(total policytest.Amounts) string {
				cluster := policytest.Cluster{Total: total, Queues: policytest.Queues("q")}
				for user, request := range c.users {
					cluster.Jobs = append(cluster.Jobs, policytest.Job{Name: user, Queue: "q", Tasks: []policytest.Tasks{{N: 20, Request: request}}})
				}
				v := cluster.View(t)
				state, err := drf.Plugin{}.Open(v)
				require.NoError(t, err)
				s := state.(*drf.State)
				game := policytest.Game{View: v, Compare: s.CompareJobs, Events: s, Left: maps.Clone(c.total)}
				return strings.Join(game.Play(t, 100), "")
			}
			resources := maps.Clone(c.total)
			delete(resources, "pods")
			require.Equal(t, c.paper, play(resources), "the paper")
			if c.volcano == "" {
				c.volcano = c.paper
			}
			require.Equal(t, c.volcano, play(c.total), "Volcano")
		})
	}
}
