package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/client/audit"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// example reads a cluster of testdata/field.
func example(t *testing.T, name string) *apportionv1.Snapshot {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "field", name+".yaml"))
	require.NoError(t, err)
	var plain any
	require.NoError(t, yaml.Unmarshal(data, &plain))
	data, err = json.Marshal(plain)
	require.NoError(t, err)
	snapshot := &apportionv1.Snapshot{}
	require.NoError(t, protojson.Unmarshal(data, snapshot))
	return snapshot
}

// oneTier is Volcano's default configuration in one tier, so that gang alone does not choose the victims.
const oneTier = "proportion in one tier"

func found(t *testing.T, snapshot *apportionv1.Snapshot, preset string) *audit.Report {
	t.Helper()
	policy, ok := client.Preset(preset)
	if preset == oneTier {
		strict, err := client.Policy(client.Tier{"priority", "gang", "conformance", "proportion"})
		require.NoError(t, err)
		policy, ok = strict, true
	}
	require.True(t, ok)
	report, err := audit.Find(t.Context(), client.InProcess(), client.Input{Snapshot: snapshot, Policy: policy}, audit.Limits{})
	require.NoError(t, err)
	return report
}

func TestBreachesHaveWitnesses(t *testing.T) {
	for _, test := range []struct {
		example, preset string
		witness         []string
	}{
		{"drf", "proportion", []string{
			"nothing wanted is idle: b-1 of queue b asks for 3 cpu, 1Gi memory; node n0 has room, nothing else may start, and yet it waits: " +
				"queue b deserves 5 of cpu: 3 taken, 3 more asked (proportion)",
			"nothing wanted is idle: a-3 of queue a asks for 1 cpu, 4Gi memory; node n0 has room, nothing else may start, and yet it waits: " +
				"queue a deserves 15Gi of memory: 12Gi taken, 4Gi more asked (proportion)",
		}},
		{"guarantee", "proportion", []string{
			"no more than there is: the queues deserve 12.67 cpu together, and there are 10: a 6, b 3.33, c 3.33",
		}},
		{"guarantee-late", oneTier, []string{
			"no more than there is: the queues deserve 12.67 cpu together, and there are 10: a 6, b 3.33, c 3.33",
			"guarantees hold: queue a holds 4 of its guarantee of 6 cpu; a-4 of queue a asks for 1 cpu, 1Gi memory and waits, " +
				"while queues b, c keep what is beyond a guarantee: queue b is within what it deserves: 3 of 3.33 of cpu (proportion)",
		}},
		{"circle", "capacity", []string{
			"no circles: after 3 evictions the same tasks run on the same nodes as before: b-0 of queue b evicts a-1, a-0, " +
				"a-0 of queue a evicts b-0",
		}},
		{"too-many-guarantees", "capacity", []string{
			"no more than there is: the queues deserve 10 nvidia.com/gpu together, and there are 7: a 5, b 5",
		}},
	} {
		t.Run(test.example, func(t *testing.T) {
			var witness []string
			for _, b := range found(t, example(t, test.example), test.preset).Breaches {
				witness = append(witness, b.Title+": "+b.Witness)
			}
			require.Equal(t, test.witness, witness)
		})
	}
}

// TestFairBreachesNothing audits random clusters. The presets of Volcano show that the audit finds something in them.
func TestFairBreachesNothing(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(150) {
		snapshot := random(t, seed)
		for _, preset := range []string{"fair", "proportion", "capacity"} {
			report := found(t, snapshot, preset)
			count[preset] += len(report.Breaches)
			if preset == "fair" {
				require.Empty(t, report.Breaches, "seed %d", seed)
			}
			require.Empty(t, report.Partial)
		}
	}
	require.Greater(t, count["proportion"], 30)
	require.Greater(t, count["capacity"], 10)
}

// random is a cluster of two nodes and two or three queues with a job each, some of whose tasks run.
func random(t *testing.T, seed uint64) *apportionv1.Snapshot {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	room := []int{2 + r.IntN(6), 2 + r.IntN(6)}
	total := room[0] + room[1]
	b := client.NewSnapshot()
	for n, cores := range room {
		b.Node(client.Node{Name: fmt.Sprintf("n%d", n), Allocatable: client.Resources{"cpu": fmt.Sprint(cores), "memory": "32Gi"}})
	}
	left := total
	queues := 2 + r.IntN(2)
	for q := range queues {
		guarantee := 0
		if r.IntN(2) == 0 {
			guarantee = r.IntN(left + 1)
			left -= guarantee
		}
		b.Queue(client.Queue{
			Name: fmt.Sprintf("q%d", q), Weight: uint32(1 + r.IntN(2)),
			Guarantee: client.Resources{"cpu": fmt.Sprint(guarantee), "memory": fmt.Sprintf("%dGi", guarantee)},
			Deserved:  client.Resources{"cpu": fmt.Sprint(max(guarantee, r.IntN(total))), "memory": "16Gi"},
		})
	}
	for q := range queues {
		size := 1 + r.IntN(4)
		group := client.Group{Request: client.Resources{"cpu": fmt.Sprint(size), "memory": "1Gi"}}
		for k := range 1 + r.IntN(5) {
			task := client.Task{Name: fmt.Sprintf("t%d-%d", q, k)}
			if n := r.IntN(2); room[n] >= size && r.IntN(2) == 0 {
				task.Status, task.Node = apportionv1.TaskStatus_TASK_STATUS_RUNNING, fmt.Sprintf("n%d", n)
				room[n] -= size
			}
			group.Tasks = append(group.Tasks, task)
		}
		b.Job(client.Job{
			Name: fmt.Sprintf("j%d", q), Queue: fmt.Sprintf("q%d", q), MinAvailable: uint32(r.IntN(3)),
			Phase: apportionv1.JobPhase_JOB_PHASE_INQUEUE, Groups: []client.Group{group},
		})
	}
	snapshot, err := b.Build()
	require.NoError(t, err)
	return snapshot
}

func TestWithoutNodesOnlySharesAreJudged(t *testing.T) {
	snapshot, err := client.NewSnapshot().Total(client.Resources{"cpu": "4"}).Queue(client.Queue{Name: "a"}).Build()
	require.NoError(t, err)
	require.Contains(t, found(t, snapshot, "proportion").Partial, "no nodes")
}

func TestLimitsAreSaid(t *testing.T) {
	policy, _ := client.Preset("fair")
	for want, limits := range map[string]audit.Limits{
		"of 16 gangs and single tasks": {Blocks: 3}, "only the first 2 moves": {Moves: 2},
	} {
		in := client.Input{Snapshot: example(t, "eight-gpus"), Policy: policy}
		report, err := audit.Find(t.Context(), client.InProcess(), in, limits)
		require.NoError(t, err)
		require.Contains(t, report.Partial, want)
	}
}

// Two queues are guaranteed more than the cluster has.
func ExampleCheck() {
	half := client.Resources{"cpu": "6"}
	snapshot, err := client.NewSnapshot().
		Node(client.Node{Name: "n", Allocatable: client.Resources{"cpu": "8", "memory": "8Gi"}}).
		Queue(client.Queue{Name: "web", Guarantee: half}, client.Queue{Name: "batch", Guarantee: half}).
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, _ := client.Preset("capacity")
	in := client.Input{Snapshot: snapshot, Policy: policy}
	findings, _, err := audit.Check(context.Background(), client.InProcess(), in, audit.Limits{})
	if err != nil {
		fmt.Println(client.Describe(err))
		return
	}
	for _, f := range findings {
		fmt.Printf("%s %s: %s\n", f.Severity, f.Rule, f.Witness)
	}
	// Output:
	// error guarantees-do-not-fit: queues are guaranteed 12 of cpu together, the cluster has 8
}

// TestVictimsAreSoughtOnceForAllThatWaits whatever the limit of candidates: without plans it is looked at only after that.
func TestVictimsAreSoughtOnceForAllThatWaits(t *testing.T) {
	policy, _ := client.Preset("capacity")
	in := client.Input{Snapshot: example(t, "circle"), Policy: policy}
	report, err := audit.Find(t.Context(), client.InProcess(), in, audit.Limits{Candidates: 1})
	require.NoError(t, err)
	require.Empty(t, report.Partial)
	require.Equal(t, 3, report.Evictions)
}
