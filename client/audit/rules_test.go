package audit_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/client/audit"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func TestEveryRuleIsDescribed(t *testing.T) {
	docs, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	for _, rule := range audit.Rules() {
		require.Contains(t, string(docs), "| `"+rule.ID+"` | "+string(rule.Severity)+" |")
		require.NotEmpty(t, rule.Text)
		require.NotEmpty(t, rule.Help)
	}
}

// ruled are the rules of what is found in a cluster of 8 cpu with one running job of queue a on 6 of them, in the order of findings.
func ruled(t *testing.T, queues []client.Queue, jobs ...client.Job) []string {
	t.Helper()
	running := client.Job{
		Name: "running", Queue: "a", MinAvailable: 1, MinResources: client.Resources{"cpu": "1"},
		Phase:  apportionv1.JobPhase_JOB_PHASE_RUNNING,
		Groups: []client.Group{{Request: client.Resources{"cpu": "1"}, Running: 6}},
	}
	snapshot, err := client.NewSnapshot().Node(client.Node{Name: "n", Allocatable: client.Resources{"cpu": "8", "memory": "8Gi"}}).
		Queue(append(queues, client.Queue{Name: "root"})...).Job(append(jobs, running)...).Build()
	require.NoError(t, err)
	policy, ok := client.Preset("capacity")
	require.True(t, ok)
	found, _, err := audit.Check(t.Context(), client.InProcess(), client.Input{Snapshot: snapshot, Policy: policy}, audit.Limits{Moves: -1})
	require.NoError(t, err)
	rules := []string{}
	for _, f := range found {
		rules = append(rules, f.Rule)
		require.NotEmpty(t, f.Witness)
	}
	return rules
}

func waits(cpu, minimum string) client.Job {
	job := client.Job{
		Name: "waits", Queue: "b", MinAvailable: 2, Groups: []client.Group{{Request: client.Resources{"cpu": cpu}, Pending: 2}},
	}
	if minimum != "" {
		job.MinResources = client.Resources{"cpu": minimum}
	}
	return job
}

func TestSettingsThatDoNotSayWhatPeopleMeanAreFound(t *testing.T) {
	cpu := func(amount string) client.Resources { return client.Resources{"cpu": amount} }
	for name, test := range map[string]struct {
		queues []client.Queue
		jobs   []client.Job
		rules  []string
	}{
		"nothing": {[]client.Queue{{Name: "a", Deserved: cpu("6")}, {Name: "b", Deserved: cpu("2")}}, nil, []string{}},
		"guarantees that do not fit": {
			[]client.Queue{{Name: "a", Guarantee: cpu("6"), Deserved: cpu("6")}, {Name: "b", Guarantee: cpu("4")}},
			nil,
			[]string{"guarantees-do-not-fit"},
		},
		"deserved shares that do not fit": {
			[]client.Queue{{Name: "a", Deserved: cpu("6")}, {Name: "b", Deserved: cpu("4")}}, nil, []string{"deserved-does-not-fit"},
		},
		"limits that contradict each other": {
			[]client.Queue{{Name: "a", Deserved: cpu("6")}, {Name: "b", Guarantee: cpu("2"), Deserved: cpu("1"), Capability: cpu("1")}},
			nil,
			[]string{"guarantee-above-capability", "deserved-below-guarantee"},
		},
		"a minimum that is too small": {
			[]client.Queue{{Name: "a", Deserved: cpu("6")}, {Name: "b", Deserved: cpu("2")}},
			[]client.Job{waits("2", "1")},
			[]string{"min-resources-too-small"},
		},
		"a minimum that is missing": {
			[]client.Queue{{Name: "a", Deserved: cpu("6")}, {Name: "b", Deserved: cpu("2")}},
			[]client.Job{waits("2", "")},
			[]string{"no-min-resources"},
		},
		"a job that is too large": {
			[]client.Queue{{Name: "a", Deserved: cpu("6")}, {Name: "b", Deserved: cpu("2"), Capability: cpu("4")}},
			[]client.Job{waits("9", "18")},
			[]string{"larger-than-any-node", "larger-than-its-queue"},
		},
	} {
		t.Run(name, func(t *testing.T) { require.ElementsMatch(t, test.rules, ruled(t, test.queues, test.jobs...)) })
	}
}

// checkedIn returns the findings about a cluster of nodes with 4 cpu each.
func checkedIn(t *testing.T, preset string, nodes int, queues []client.Queue, jobs ...client.Job) ([]audit.Finding, *audit.Report) {
	t.Helper()
	b := client.NewSnapshot()
	for n := range nodes {
		b.Node(client.Node{Name: fmt.Sprintf("n%d", n), Allocatable: client.Resources{"cpu": "4", "memory": "8Gi"}})
	}
	snapshot, err := b.Queue(queues...).Job(jobs...).Build()
	require.NoError(t, err)
	policy, ok := client.Preset(preset)
	require.True(t, ok)
	found, report, err := audit.Check(t.Context(), client.InProcess(), client.Input{Snapshot: snapshot, Policy: policy}, audit.Limits{})
	require.NoError(t, err)
	return found, report
}

func TestARefusedQueueTreeIsTheFirstFinding(t *testing.T) {
	queues := []client.Queue{
		{Name: "root"}, {Name: "lab", Parent: "root", Guarantee: client.Resources{"cpu": "9"}}, {Name: "vision", Parent: "lab"},
	}
	job := client.Job{
		Namespace: "ml", Name: "train", Queue: "lab", MinAvailable: 1,
		Groups: []client.Group{{Request: client.Resources{"cpu": "1"}, Pending: 1}},
	}
	found, _ := checkedIn(t, "capacity-hierarchical", 1, queues, job)
	require.Greater(t, len(found), 1)
	require.Equal(t, "queue-tree-refused", found[0].Rule)
	require.Equal(t, audit.Error, found[0].Severity)
	require.Equal(t, []string{"lab", "ml/train"}, []string{found[0].Queue, found[0].Job})
	require.Contains(t, found[0].Witness, "queue lab has jobs and children (capacity): 1 job is in it, ml/train")
}

func TestAGangThatTheEmptyClusterCannotHoldIsAnError(t *testing.T) {
	gang := func(requests string, minimum uint32) client.Job {
		return client.Job{
			Namespace: "ml", Name: "gang", Queue: "q", MinAvailable: minimum,
			MinResources: client.Resources{"cpu": "1"}, Groups: []client.Group{{Request: client.Resources{"cpu": requests}, Pending: minimum}},
		}
	}
	rules := func(found []audit.Finding) map[string]string {
		list := map[string]string{}
		for _, f := range found {
			list[f.Rule] = f.Witness
		}
		return list
	}
	running := client.Job{Name: "r", Queue: "q", Groups: []client.Group{{Request: client.Resources{"cpu": "4"}, Running: 2}}}
	found, _ := checkedIn(t, "proportion", 2, []client.Queue{{Name: "q"}}, gang("3", 3), running)
	require.Equal(t, "even empty, the nodes hold 2 of the 3 tasks that job ml/gang needs at the same time",
		rules(found)["larger-than-the-cluster"])
	found, _ = checkedIn(t, "proportion", 2, []client.Queue{{Name: "q"}}, gang("2", 3), running)
	require.NotContains(t, rules(found), "larger-than-the-cluster", "two fit on a node once it is empty")
	found, _ = checkedIn(t, "proportion", 2, []client.Queue{{Name: "q"}}, gang("5", 3), running)
	require.NotContains(t, rules(found), "larger-than-the-cluster", "no node holds one: that is said")
	require.Contains(t, rules(found), "larger-than-any-node")
}

func TestWithoutNodesNothingIsSaidAboutWhatThereIs(t *testing.T) {
	queues := []client.Queue{{Name: "q", Guarantee: client.Resources{"cpu": "4"}, Deserved: client.Resources{"cpu": "4"}}}
	found, report := checkedIn(t, "capacity", 0, queues, func() client.Job { j := waits("1", "2"); j.Queue = "q"; return j }(), client.Job{
		Name: "runs", Queue: "q", Groups: []client.Group{{Request: client.Resources{"cpu": "1"}, Running: 6}},
	})
	require.True(t, report.Unjudged)
	require.Contains(t, report.Partial, "what there is to divide is not known")
	for _, f := range found {
		require.NotContains(t, f.Witness, "the cluster has")
		require.NotEqual(t, "larger-than-its-queue", f.Rule)
	}
}
