package client

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// entriesOf describes what a model has of disruption budgets, quotas and preferences, and of the details of jobs and tasks, by names.
func entriesOf(m *model.Model) string {
	s := decode.SnapshotOf(m)
	name := func(n uint32) string { return s.GetNodes()[n].GetName() }
	var lines []string
	note := func(kind string, message proto.Message) {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
		if err == nil {
			lines = append(lines, fmt.Sprintf("%s %q", kind, data))
		}
	}
	for _, b := range s.GetDisruptionBudgets() {
		note("budget", b)
	}
	for _, q := range s.GetQuotas() {
		note("quota", q)
	}
	for _, set := range s.GetNodeSets() {
		for _, p := range namedPreferences(set.GetPreferences(), name) {
			if slices.Sort(p.Nodes); len(p.Nodes) > 0 {
				lines = append(lines, fmt.Sprint(set.GetName(), p))
			}
		}
	}
	for _, n := range s.GetNodes() {
		lines = append(lines, fmt.Sprint(n.GetName(), n.GetRevocableZone()))
	}
	for _, job := range s.GetJobs() {
		note(job.GetName(), job.GetDetail())
		for _, task := range job.GetGroups()[0].GetTasks() {
			// A model has budgets by their positions, which differ.
			slices.Sort(task.GetDetail().GetDisruptionBudgets().GetNames())
			note(task.GetName(), task.GetDetail())
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// editEntries draws a change of a mirror. used has the budgets that jobs name.
func editEntries(t *rapid.T, m *Mirror, used map[string][]string) {
	pick := func(label string, names ...string) string { return rapid.SampledFrom(names).Draw(t, label) }
	budget := pick("budget", "b0", "b1", "b2")
	_, known := m.budgetOf.of["ns/"+budget]
	named := false
	for _, list := range used {
		named = named || slices.Contains(list, budget)
	}
	job := pick("job", "j0", "j1")
	switch pick("edit", "budget", "budget", "remove budget", "quota", "remove quota", "set", "job", "job", "remove job", "node", "remove node") {
	case "budget":
		require.NoError(t, m.SetDisruptionBudget(&apportionv1.DisruptionBudget{
			Namespace: "ns", Name: budget, DisruptionsAllowed: rapid.Int32Range(0, 2).Draw(t, "allowed"),
		}))
	case "remove budget":
		if !named {
			require.Equal(t, known, m.RemoveDisruptionBudget("ns/"+budget) == nil)
		}
	case "quota":
		require.NoError(t, m.SetQuota(&apportionv1.NamespaceQuota{Namespace: "ns", Name: pick("quota", "x", "y"), HardAmounts: []*apportionv1.NamedAmount{
			{Name: "cpu", Amount: rapid.Float64Range(0, 2).Draw(t, "hard")},
		}}))
	case "remove quota":
		_ = m.RemoveQuota("ns/" + pick("quota", "x", "y"))
	case "set":
		set := NodeSet{Name: "s", Preferences: []NodePreference{{Affinity: 3, Nodes: []string{"n0"}}, {Untolerated: 2}}}
		set.Preferences[1].Nodes = rapid.SliceOfDistinct(rapid.SampledFrom([]string{"n1", "n2"}), rapid.ID).Draw(t, "avoided")
		require.NoError(t, m.SetNodeSet(set))
	case "job":
		task := Task{Name: job + "-0", UID: job + "-0", NominatedNode: pick("nominated", "", "n0", "n1"), Unlabelled: true, RevocableZone: "z"}
		task.DisruptionBudgets = rapid.SliceOfDistinct(rapid.SampledFrom([]string{"b0", "b1", "b2"}), rapid.ID).Draw(t, "budgets")
		for _, name := range task.DisruptionBudgets {
			if _, there := m.budgetOf.of["ns/"+name]; !there {
				require.ErrorContains(t, m.SetJob(Job{Name: job, Namespace: "ns", Queue: "q", Groups: []Group{{Tasks: []Task{task}}}}), "no disruption budget")
				return
			}
		}
		used[job] = task.DisruptionBudgets
		require.NoError(t, m.SetJob(Job{
			Name: job, Namespace: "ns", Queue: "q", Detail: &apportionv1.JobDetail{WaitingLimit: new(int64(5))},
			Groups: []Group{{Tasks: []Task{task}, Unstated: &apportionv1.Unstated{Cpu: 1}}},
		}))
	case "remove job":
		delete(used, job)
		_ = m.RemoveJob("ns/" + job)
	case "node":
		require.NoError(t, m.SetNode(Node{Name: pick("node", "n0", "n1", "n2"), RevocableZone: pick("zone", "", "z")}))
	case "remove node":
		_ = m.RemoveNode(pick("node", "n0", "n1", "n2"))
	}
}

func TestAChangeOfAMirrorHasTheEntriesOfTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, used := NewMirror(nil), map[string][]string{}
		require.NoError(t, m.SetQueue(Queue{Name: "q"}))
		base := m.State()
		data, place := base.encode()
		held, err := decode.CompileBytes(data)
		require.NoError(t, err)
		for range rapid.IntRange(1, 6).Draw(t, "states") {
			for range rapid.IntRange(1, 6).Draw(t, "edits") {
				editEntries(t, m, used)
			}
			next := m.State()
			change, after, ok := next.change(base, place)
			require.True(t, ok)
			held, err = new(decode.Decoder).CompileChange(held, change, decode.Guard{})
			require.NoError(t, err)
			whole, err := decode.Compile(next.Snapshot())
			require.NoError(t, err)
			require.Equal(t, entriesOf(whole), entriesOf(held))
			replaced := NewMirror(nil)
			require.NoError(t, replaced.SetQueue(Queue{Name: "old"}))
			require.NoError(t, replaced.SetDisruptionBudget(&apportionv1.DisruptionBudget{Name: "old"}))
			require.NoError(t, replaced.Replace(next.Snapshot()))
			again, err := decode.Compile(replaced.State().Snapshot())
			require.NoError(t, err)
			require.Equal(t, entriesOf(whole), entriesOf(again), "replaced")
			base, place = next, after
		}
	})
}

func TestABuiltSnapshotHasItsEntries(t *testing.T) {
	s, err := NewSnapshot().Queue(Queue{Name: "q"}).Node(Node{Name: "n", RevocableZone: "z"}).
		DisruptionBudget(&apportionv1.DisruptionBudget{Namespace: "ns", Name: "b"}).
		Quota(&apportionv1.NamespaceQuota{Namespace: "ns", Name: "x"}).
		NodeSet(NodeSet{Name: "s", Nodes: []string{"n"}, Preferences: []NodePreference{{Affinity: 1, Nodes: []string{"n"}}}}).
		Job(Job{Name: "j", Namespace: "ns", Queue: "q", Groups: []Group{{Tasks: []Task{
			{Name: "t", DisruptionBudgets: []string{"b"}, NeverPreempts: true, Unstated: &apportionv1.Unstated{Memory: 1}},
		}}}}).Build()
	require.NoError(t, err)
	m, err := decode.Compile(s)
	require.NoError(t, err)
	require.Equal(t, "z", m.ZoneOf(0))
	require.Equal(t, []int32{0}, m.BudgetsOf(0))
	require.True(t, m.NeverPreempts(0))
	require.Equal(t, model.Unstated{Memory: 1}, m.UnstatedOf(0))
	_, affinity := m.NodeSets[1].Preference(0)
	require.Equal(t, int32(1), affinity)
	require.Equal(t, "x", m.Quotas[0].Name)
	_, err = NewSnapshot().NodeSet(NodeSet{Name: "s", Preferences: []NodePreference{{Nodes: []string{"gone"}}}}).Build()
	require.ErrorContains(t, err, `node_sets[0]: node "gone" is not in the snapshot`)
}
