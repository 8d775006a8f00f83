package decode_test

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

// some draws which of a few names there are.
func some(t *rapid.T, label string, names ...string) []string {
	list := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(t, label)
	return list
}

func drawAmounts(t *rapid.T, label string) []*apportionv1.NamedAmount {
	var list []*apportionv1.NamedAmount
	for _, name := range some(t, label, "cpu", "requests.memory", "count/pods") {
		list = append(list, &apportionv1.NamedAmount{Name: name, Amount: float64(rapid.IntRange(0, 9).Draw(t, name))})
	}
	return list
}

func drawUnstated(t *rapid.T, label string) *apportionv1.Unstated {
	if !rapid.Bool().Draw(t, label) {
		return nil
	}
	return &apportionv1.Unstated{Cpu: uint32(rapid.IntRange(0, 3).Draw(t, label)), Memory: uint32(rapid.IntRange(0, 3).Draw(t, label))}
}

// drawRare draws a snapshot of what hardly any has.
func drawRare(t *rapid.T) *apportionv1.Snapshot {
	s := &apportionv1.Snapshot{Queues: []*apportionv1.Queue{{Name: "q"}}}
	nodes := some(t, "nodes", "n0", "n1", "n2", "n3")
	for _, name := range nodes {
		s.Nodes = append(s.Nodes, &apportionv1.Node{Name: name, RevocableZone: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone")})
	}
	budgets := some(t, "budgets", "b0", "b1", "b2")
	for _, name := range budgets {
		s.DisruptionBudgets = append(s.DisruptionBudgets, &apportionv1.DisruptionBudget{
			Namespace: "ns", Name: name, DisruptionsAllowed: rapid.Int32Range(-1, 3).Draw(t, "allowed"),
		})
	}
	for _, name := range some(t, "quotas", "x", "y") {
		s.Quotas = append(s.Quotas, &apportionv1.NamespaceQuota{
			Namespace: rapid.SampledFrom([]string{"ns", "", "other"}).Draw(t, "of"), Name: name, HardAmounts: drawAmounts(t, "hard"), UsedAmounts: drawAmounts(t, "used"),
		})
	}
	for _, name := range some(t, "sets", "s0", "s1") {
		set := &apportionv1.NodeSet{Name: name}
		for i := range nodes {
			switch at := uint32(i); rapid.IntRange(0, 3).Draw(t, "preferred") {
			case 0:
				set.Preferences = append(set.Preferences, &apportionv1.NodePreference{Nodes: []uint32{at}, Affinity: -7, Untolerated: 1})
			case 1:
				set.Preferences = append(set.Preferences, &apportionv1.NodePreference{Nodes: []uint32{at}, Affinity: int32(i)})
			}
		}
		s.NodeSets = append(s.NodeSets, set)
	}
	for _, name := range some(t, "jobs", "j0", "j1", "j2") {
		s.Jobs = append(s.Jobs, drawRareJob(t, name, budgets))
	}
	return s
}

func drawRareJob(t *rapid.T, name string, budgets []string) *apportionv1.Job {
	group := &apportionv1.TaskGroup{Unstated: drawUnstated(t, "unstated")}
	job := &apportionv1.Job{Name: name, Namespace: "ns", Queue: "q", Groups: []*apportionv1.TaskGroup{group}}
	if rapid.Bool().Draw(t, "detailed") {
		job.Detail = &apportionv1.JobDetail{
			QuotaRequests: drawAmounts(t, "asked"), DisruptionMaxUnavailable: rapid.SampledFrom([]string{"", "50%"}).Draw(t, "unavailable"),
			DisruptionMinAvailable: rapid.SampledFrom([]string{"", "2"}).Draw(t, "available"),
		}
		if rapid.Bool().Draw(t, "marked") {
			job.Detail.Preemptable = new(rapid.Bool().Draw(t, "preemptable"))
		}
		if rapid.Bool().Draw(t, "limited") {
			job.Detail.WaitingLimit = new(rapid.Int64Range(1, 9).Draw(t, "limit"))
		}
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "tasks") {
		task := &apportionv1.Task{Name: fmt.Sprint(name, "-", i)}
		if rapid.Bool().Draw(t, "rare") {
			task.Detail = &apportionv1.TaskDetail{
				NominatedNode: rapid.SampledFrom([]string{"", "n0", "n1", "none"}).Draw(t, "nominated"), Unstated: drawUnstated(t, "own"),
				RevocableZone: rapid.SampledFrom([]string{"", "a", "*"}).Draw(t, "zone"),
				NeverPreempts: rapid.Bool().Draw(t, "never"), Unlabelled: rapid.Bool().Draw(t, "unlabelled"),
			}
			if len(budgets) > 0 && rapid.Bool().Draw(t, "guarded") {
				names := rapid.SliceOfNDistinct(rapid.SampledFrom(budgets), 1, -1, rapid.ID).Draw(t, "guards")
				task.Detail.DisruptionBudgets = &apportionv1.DisruptionBudgetNames{Names: names}
			}
		}
		group.Tasks = append(group.Tasks, task)
	}
	return job
}

// rareText describes what a model has of all this, by names and in their order.
func rareText(m *model.Model) string {
	var lines []string
	note := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	names := func(nodes []model.NodeID) (list []string) {
		for _, n := range nodes {
			if m.HasNode(n) {
				list = append(list, m.Nodes[n].Name)
			}
		}
		slices.Sort(list)
		return list
	}
	for i := range m.Nodes {
		if n := model.NodeID(i); m.HasNode(n) {
			note("node %s in %q", m.Nodes[n].Name, m.ZoneOf(n))
		}
	}
	for i := range m.NodeSets {
		set := &m.NodeSets[i]
		for _, p := range set.Preferences {
			if of := names(p.Nodes); set.Name != "" && len(of) > 0 {
				note("set %s prefers %v %d %d", set.Name, of, p.Untolerated, p.Affinity)
			}
		}
	}
	for _, b := range m.DisruptionBudgets {
		if b.Name != "" {
			note("budget %v", b)
		}
	}
	for _, q := range m.Quotas {
		if q.Name != "" {
			note("quota %v", q)
		}
	}
	for _, j := range m.JobOrder {
		job := m.Jobs.At(j)
		if d := job.Detail; d != nil {
			note("job %s: %v %v", job.UID, d.Preemptable == nil || *d.Preemptable, *d)
			lines[len(lines)-1] = strings.ReplaceAll(lines[len(lines)-1], fmt.Sprint(d.Preemptable), fmt.Sprint(d.Preemptable != nil))
		}
		for t := job.FirstTask; t < job.EndTask; t++ {
			nominated := ""
			if n := m.NominatedNode(t); n != model.None {
				nominated = m.Nodes[n].Name
			}
			var budgets []string
			for _, at := range m.BudgetsOf(t) {
				budgets = append(budgets, m.DisruptionBudgets[at].Name)
			}
			slices.Sort(budgets)
			note("task %s: %q %v %v %q %v %v", m.TaskKey(t), nominated, m.NeverPreempts(t), m.Unlabelled(t), m.RevocableZone(t), budgets, m.UnstatedOf(t))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// changeOf returns the change of one snapshot to another, in which jobs and node sets are stated again and all else only if it differs. at
// are the positions of nodes in the result.
func changeOf(from, to *apportionv1.Snapshot, at map[string]uint32) *apportionv1.Change {
	c := &apportionv1.Change{}
	key := func(namespace, name string) string { return strings.TrimPrefix(namespace+"/"+name, "/") }
	c.RemoveNodes, c.Nodes = parted(from.GetNodes(), to.GetNodes(), (*apportionv1.Node).GetName)
	c.RemoveNodeSets, c.NodeSets = parted(from.GetNodeSets(), to.GetNodeSets(), (*apportionv1.NodeSet).GetName)
	c.RemoveDisruptionBudgets, c.DisruptionBudgets = parted(from.GetDisruptionBudgets(), to.GetDisruptionBudgets(),
		func(b *apportionv1.DisruptionBudget) string { return key(b.GetNamespace(), b.GetName()) })
	c.RemoveQuotas, c.Quotas = parted(from.GetQuotas(), to.GetQuotas(),
		func(q *apportionv1.NamespaceQuota) string { return key(q.GetNamespace(), q.GetName()) })
	c.RemoveJobs, c.Jobs = parted(from.GetJobs(), to.GetJobs(), func(j *apportionv1.Job) string { return key(j.GetNamespace(), j.GetName()) })
	c.NodeSets = nil
	for _, set := range to.GetNodeSets() {
		set = proto.CloneOf(set)
		for _, p := range set.GetPreferences() {
			for i, n := range p.GetNodes() {
				p.Nodes[i] = at[to.GetNodes()[n].GetName()]
			}
		}
		c.NodeSets = append(c.NodeSets, set)
	}
	return c
}

// parted returns the keys that only the first list has, and the entries of the second that the first has not.
func parted[M proto.Message](from, to []M, key func(M) string) (gone []string, set []M) {
	was := map[string]M{}
	for _, m := range from {
		was[key(m)] = m
	}
	for _, m := range to {
		if before, known := was[key(m)]; !known || !proto.Equal(before, m) {
			set = append(set, m)
		}
		delete(was, key(m))
	}
	for k := range was {
		gone = append(gone, k)
	}
	slices.Sort(gone)
	return gone, set
}

func TestWhatHardlyAnyTaskHasIsThatOfTheWholeAfterEveryChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := drawRare(t)
		m, err := decode.Compile(state)
		require.NoError(t, err)
		at, next := map[string]uint32{}, uint32(0)
		place := func(s *apportionv1.Snapshot) {
			here := map[string]uint32{}
			for _, n := range s.GetNodes() {
				p, known := at[n.GetName()]
				if !known {
					p, next = next, next+1
				}
				here[n.GetName()] = p
			}
			at = here
		}
		place(state)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			other := drawRare(t)
			place(other)
			data, err := proto.Marshal(changeOf(state, other, at))
			require.NoError(t, err)
			m, err = new(decode.Decoder).CompileChange(m, data, decode.Guard{Parts: rapid.IntRange(1, 3).Draw(t, "parts")})
			require.NoError(t, err)
			whole, err := decode.Compile(other)
			require.NoError(t, err)
			require.Equal(t, rareText(whole), rareText(m))
			again, err := decode.Compile(decode.SnapshotOf(m))
			require.NoError(t, err)
			require.Equal(t, rareText(whole), rareText(again), "described")
			state = other
		}
	})
}

func TestWhatHardlyAnyTaskHasIsReadAlikeInEveryWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawRare(t)
		whole, err := decode.Compile(s)
		require.NoError(t, err)
		data, err := proto.Marshal(s)
		require.NoError(t, err)
		for _, guard := range []decode.Guard{{}, {Parts: 2}, {Parts: 3}} {
			m, err := new(decode.Decoder).CompileWithin(data, guard)
			require.NoError(t, err)
			require.Equal(t, rareText(whole), rareText(m))
		}
		sums, err := new(decode.Decoder).CompileWithin(data, decode.Guard{Sums: true})
		require.NoError(t, err)
		for _, j := range whole.JobOrder {
			require.Equal(t, whole.Jobs.At(j).Detail, sums.Jobs.At(j).Detail)
		}
	})
}

func TestFaultsOfWhatHardlyAnyHasAreNamedByPath(t *testing.T) {
	job := func(d *apportionv1.TaskDetail) *apportionv1.Snapshot {
		return &apportionv1.Snapshot{
			Queues: []*apportionv1.Queue{{Name: "q"}}, DisruptionBudgets: []*apportionv1.DisruptionBudget{{Namespace: "ns", Name: "b"}},
			Jobs: []*apportionv1.Job{{Name: "j", Namespace: "ns", Queue: "q", Groups: []*apportionv1.TaskGroup{{Tasks: []*apportionv1.Task{{Detail: d}}}}}},
		}
	}
	names := func(list ...string) *apportionv1.TaskDetail {
		return &apportionv1.TaskDetail{DisruptionBudgets: &apportionv1.DisruptionBudgetNames{Names: list}}
	}
	jobDetail := func(d *apportionv1.JobDetail) *apportionv1.Snapshot {
		s := job(nil)
		s.Jobs[0].Detail = d
		return s
	}
	for want, s := range map[string]*apportionv1.Snapshot{
		`snapshot.jobs[0].groups[0].tasks[0].detail.disruption_budgets.names[1]: no disruption budget "c" in namespace "ns"`: job(names("b", "c")),
		`snapshot.jobs[0].groups[0].tasks[0].detail.disruption_budgets.names[1]: disruption budget "b" is given twice`:       job(names("b", "b")),
		`snapshot.jobs[0].groups[0].tasks[0].detail.disruption_budgets.names: 65 budgets, at most 64 are taken`:              job(names(slices.Repeat([]string{"b"}, 65)...)),
		`snapshot.jobs[0].groups[0].tasks[0].detail.unstated.memory: 65536 is above 65535`:                                   job(&apportionv1.TaskDetail{Unstated: &apportionv1.Unstated{Memory: 65536}}),
		`snapshot.jobs[0].detail.waiting_limit: 0 is not above 0`:                                                            jobDetail(&apportionv1.JobDetail{WaitingLimit: new(int64(0))}),
		`snapshot.jobs[0].detail.quota_requests[0].amount: cpu is negative: -1`:                                              jobDetail(&apportionv1.JobDetail{QuotaRequests: []*apportionv1.NamedAmount{{Name: "cpu", Amount: -1}}}),
		`snapshot.disruption_budgets[1].name: disruption budget "ns/b" is disruption_budgets[0].name already`: {
			DisruptionBudgets: []*apportionv1.DisruptionBudget{{Namespace: "ns", Name: "b"}, {Namespace: "ns", Name: "b"}},
		},
		`snapshot.quotas[0].name: a quota needs a name`: {Quotas: []*apportionv1.NamespaceQuota{{Namespace: "ns"}}},
		`snapshot.quotas[0].hard_amounts[1].name: "cpu" is [0] already`: {Quotas: []*apportionv1.NamespaceQuota{{
			Name: "q", HardAmounts: []*apportionv1.NamedAmount{{Name: "cpu"}, {Name: "cpu"}},
		}}},
		`snapshot.node_sets[0].preferences[1].nodes: node 0 is in preferences[0] already`: {
			Nodes:    []*apportionv1.Node{{Name: "n"}},
			NodeSets: []*apportionv1.NodeSet{{Name: "s", Preferences: []*apportionv1.NodePreference{{Nodes: []uint32{0}}, {Nodes: []uint32{0}}}}},
		},
	} {
		data, err := proto.Marshal(s)
		require.NoError(t, err)
		for _, sums := range []bool{false, true} {
			_, err = new(decode.Decoder).CompileWithin(data, decode.Guard{Sums: sums})
			require.ErrorContains(t, err, want)
		}
	}
}

func TestADisruptionBudgetThatTasksNameIsNotRemoved(t *testing.T) {
	s := &apportionv1.Snapshot{
		Queues: []*apportionv1.Queue{{Name: "q"}}, DisruptionBudgets: []*apportionv1.DisruptionBudget{{Namespace: "ns", Name: "b"}},
		Jobs: []*apportionv1.Job{{Name: "j", Namespace: "ns", Queue: "q", Groups: []*apportionv1.TaskGroup{{Tasks: []*apportionv1.Task{{
			Name: "t", Detail: &apportionv1.TaskDetail{DisruptionBudgets: &apportionv1.DisruptionBudgetNames{Names: []string{"b"}}},
		}}}}}},
	}
	m, err := decode.Compile(s)
	require.NoError(t, err)
	change := func(c *apportionv1.Change) error {
		data, err := proto.Marshal(c)
		require.NoError(t, err)
		_, err = new(decode.Decoder).CompileChange(m, data, decode.Guard{})
		return err
	}
	gone := []string{"ns/b"}
	require.ErrorContains(t, change(&apportionv1.Change{RemoveDisruptionBudgets: gone}),
		`change.remove_disruption_budgets[0]: task "ns/t" of job "ns/j" names the disruption budget`)
	require.NoError(t, change(&apportionv1.Change{RemoveDisruptionBudgets: gone, RemoveJobs: []string{"ns/j"}}))
	require.ErrorContains(t, change(&apportionv1.Change{RemoveQuotas: gone}), `change.remove_quotas[0]: no quota "ns/b"`)
}
