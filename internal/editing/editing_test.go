package editing

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
)

// cluster has two of everything, with drawn or plain names. The second of each is what edits are about.
type cluster struct{ queues, jobs, roles, nodes, dimensions [2]string }

var plainNames = &cluster{
	queues: [2]string{"queue-1", "queue-2"}, jobs: [2]string{"job-1", "job-2"}, roles: [2]string{"role-1", "role-2"},
	nodes: [2]string{"node-1", "node-2"}, dimensions: [2]string{"example.com/a", "example.com/b"},
}

func (c *cluster) snapshot() *lookup.Snapshot {
	s := &apportionv1.Snapshot{
		Dimensions: []string{"cpu", "memory", c.dimensions[0], c.dimensions[1]}, Memory: &apportionv1.Memory{},
		NodeSets: []*apportionv1.NodeSet{{Name: "a.flavor@=", Nodes: []uint32{0}}},
	}
	amounts := func() *apportionv1.Resource {
		return &apportionv1.Resource{Dimensions: []uint32{0, 2, 3}, Amounts: []float64{8000, 8000, 8000}}
	}
	for i := range 2 {
		s.Nodes = append(s.Nodes, &apportionv1.Node{Name: c.nodes[i], Allocatable: amounts(), Reservations: []*apportionv1.NodeReservation{{StartUnixNano: 5}}})
		s.Queues = append(s.Queues, &apportionv1.Queue{
			Name: c.queues[i], Parent: "other", Capability: amounts(), Guarantee: amounts(), Deserved: amounts(),
			Usage:  &apportionv1.Usage{Dimensions: []uint32{3}, QuantumSeconds: []int64{7}},
			Budget: &apportionv1.Budget{Amount: &apportionv1.Usage{Dimensions: []uint32{3}, QuantumSeconds: []int64{7}}, Spent: &apportionv1.Usage{Dimensions: []uint32{3}, QuantumSeconds: []int64{7}}},
		})
		job := &apportionv1.Job{Uid: "uid-of-" + string(rune('a'+i)), Namespace: "ns", Name: c.jobs[i], Queue: c.queues[i], MinResources: amounts()}
		for _, role := range c.roles {
			job.Groups = append(job.Groups, &apportionv1.TaskGroup{Role: role, Request: amounts(), Tasks: []*apportionv1.Task{{}}})
		}
		s.Jobs = append(s.Jobs, job)
	}
	for i, kueue := range []*apportionv1.KueueQueue{{}, {Cohort: true}} {
		kueue.Quotas = []*apportionv1.Quota{{NodeSet: "a.flavor@=", Nominal: amounts(), BorrowingLimit: amounts(), LendingLimit: amounts()}}
		s.Queues = append(s.Queues, &apportionv1.Queue{Name: []string{"cq", "team"}[i], Parent: "other", Kueue: kueue})
	}
	return lookup.Of(s)
}

// edits returns an edit of every form, and where the value can be removed, one that removes it.
func (c *cluster) edits() []*apportionv1.Edit {
	var list []*apportionv1.Edit
	for i := range forms {
		f := &forms[i]
		e := &apportionv1.Edit{Kind: f.kind}
		second := &apportionv1.Ref{Index: new(uint32(1))}
		switch f.object {
		case "queue":
			second.Name = c.queues[1]
			e.Object = &apportionv1.Edit_Queue{Queue: second}
		case "clusterqueue":
			e.Object = &apportionv1.Edit_Queue{Queue: &apportionv1.Ref{Index: new(uint32(2)), Name: "cq"}}
		case "cohort":
			e.Object = &apportionv1.Edit_Queue{Queue: &apportionv1.Ref{Index: new(uint32(3)), Name: "team"}}
		case "job":
			second.Name = "uid-of-b"
			e.Object = &apportionv1.Edit_Job{Job: second}
		case "node":
			second.Name = c.nodes[1]
			e.Object = &apportionv1.Edit_Node{Node: second}
		default:
			e.NodeSet = "new.flavor"
		}
		switch f.value {
		case words:
			for _, w := range f.words {
				of := proto.CloneOf(e)
				of.Kind, of.Text = w.kind, w.text
				list = append(list, of)
			}
			continue
		case textual:
			if e.Text = "a=b"; f.setting == "maintenance" {
				e.Text = "2126-03-02T15:00:00Z/2126-03-02T17:00:00Z"
			}
		case toQueue:
			e.To = &apportionv1.Ref{Index: new(uint32(0)), Name: c.queues[0]}
		case toNode:
			e.To = &apportionv1.Ref{Index: new(uint32(0)), Name: c.nodes[0]}
		default:
			e.Amount = new(3000.0)
			if f.resourced() {
				e.Dimension = new(uint32(3))
			}
			if f.value == quota {
				e.NodeSet = "a.flavor@="
			}
		}
		if f.role {
			of := proto.CloneOf(e)
			of.Role = &c.roles[1]
			list = append(list, of)
		}
		if !f.ofRole {
			list = append(list, e)
		}
		if (f.resourced() || f.value == textual) && !f.kept {
			removed := proto.CloneOf(e)
			removed.Amount, removed.Text = nil, ""
			list = append(list, removed)
		}
	}
	return append(list, &apportionv1.Edit{Kind: apportionv1.EditKind_EDIT_KIND_FORGET})
}

// same requires that an edit is read as it was written.
func same(t require.TestingT, c *cluster) {
	s := c.snapshot()
	names := s.Names(&apportionv1.Basis{Dimensions: s.GetDimensions()})
	names.Job, names.Node = s.JobName, s.NodeName
	for _, e := range c.edits() {
		written := Write(names, e)
		read, err := NewReader(s).Read(written)
		if err != nil && strings.HasSuffix(err.Error(), "new tasks already") {
			continue
		}
		require.NoError(t, err, "%q", written)
		require.True(t, proto.Equal(e, read.Edit), "%q: %v is not %v", written, read.Edit, e)
	}
}

func TestEveryKindOfEditIsWrittenAndReadAgain(t *testing.T) {
	same(t, plainNames)
	kinds := map[apportionv1.EditKind]bool{apportionv1.EditKind_EDIT_KIND_UNSPECIFIED: true}
	for _, e := range plainNames.edits() {
		kinds[e.GetKind()] = true
	}
	for number := range apportionv1.EditKind_name {
		require.True(t, kinds[apportionv1.EditKind(number)], "%s has no form", apportionv1.EditKind(number))
	}
}

func TestEditsAreReadAgainWhateverTheNamesAre(t *testing.T) {
	parts := []string{"a", "b", "=", `"`, "'", "$(x)", "`", " ", "\n", "\x1b[31m", `\`, ",", "--", "\u202e", "é", "1", "@"}
	for i := range forms {
		word := forms[i].bare()
		parts = append(parts, "."+word+".", "."+word, word+"=")
	}
	parts = append(parts, ".request.", ".role.", ".", ".a.", "queue/")
	name := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 5), func(parts []string) string { return strings.Join(parts, "") })
	two := rapid.Custom(func(t *rapid.T) [2]string {
		first, second := name.Draw(t, "first"), name.Draw(t, "second")
		if rapid.Bool().Draw(t, "begins with it") {
			first = second + first
		} else if rapid.Bool().Draw(t, "continues it") {
			second = first + second
		}
		if first == second {
			second += "-"
		}
		return [2]string{first, second}
	})
	rapid.Check(t, func(t *rapid.T) {
		drawn := &cluster{two.Draw(t, "queues"), two.Draw(t, "jobs"), two.Draw(t, "roles"), two.Draw(t, "nodes"), plainNames.dimensions}
		if rapid.Bool().Draw(t, "dimensions") {
			drawn.dimensions = [2]string{"x/" + drawn.roles[0], "x/" + drawn.roles[1]}
		}
		same(t, drawn)
	})
}

// TestTheWordRoleMayBeLeftOut where the job has the role.
func TestTheWordRoleMayBeLeftOut(t *testing.T) {
	c := *plainNames
	c.jobs, c.roles = [2]string{"job.1", "job-2"}, [2]string{"worker.1", "request"}
	for _, setting := range []string{
		"worker.1.request.cpu=1", "worker.1.minAvailable=1", "request.request.example.com/a=2", `"worker.1".request.cpu=1`,
	} {
		want, err := NewReader(c.snapshot()).Read("job/job.1.role." + setting)
		require.NoError(t, err, setting)
		got, err := NewReader(c.snapshot()).Read("job/ns/job.1." + setting)
		require.NoError(t, err, setting)
		require.True(t, proto.Equal(want.Edit, got.Edit), setting)
	}
	for _, setting := range []string{"worker.2.request.cpu=1", "worker.1.request=1", "worker.1.=1", "=1", ".=1"} {
		_, err := NewReader(c.snapshot()).Read("job/job.1." + setting)
		require.ErrorContains(t, err, "a job has no such field", setting)
	}
}

func TestAFaultOfAnEditSaysWhatThereIs(t *testing.T) {
	s := plainNames.snapshot()
	for text, want := range map[string]string{
		"queue/queue-3.weight=1":                 `no queue "queue-3"; did you mean "queue-`,
		"queue/queue-1.wieght=1":                 `did you mean "weight"? There are budget.RESOURCE`,
		"clusterqueue/queue-1.weight=1":          "queue queue-1 is no ClusterQueue",
		"clusterqueue/team.weight=1":             "queue team is no ClusterQueue",
		"cohort/cq.nominal.a=1":                  "queue cq is no cohort",
		"clusterqueue/cq.nominal.memory=1":       "the queue has no quota of memory; it has cpu@a.flavor@=",
		"clusterqueue/cq.nominal.a=none":         "an amount is needed: 0 is the least",
		"queue/queue-1.capability.memory=none":   "there is no memory to remove",
		"queue/queue-1.usage.a=1.5":              `"1.5" is no amount of quantum-seconds`,
		"queue/queue-1.weight=many":              `"many" is not a number`,
		"queue/queue-1.state=ajar":               `"ajar" is not open, closing or closed`,
		"job/job-1.role.role-3.minAvailable=1":   `the job has no role "role-3"; there are "role-1", "role-2"`,
		"job/job-1.ended=false":                  `"false" is not true`,
		"job/job-1.queue=queue-3":                `no queue "queue-3"`,
		"node/node-1.cordoned=false":             "the node takes new tasks already",
		"queue/queue-1.capability.example.com=1": `no resource "example.com"`,
	} {
		_, err := NewReader(s).Read(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestAResourceThatTheSnapshotHasNotIsAdded(t *testing.T) {
	r := NewReader(plainNames.snapshot())
	read, err := r.Read("queue/queue-1.deserved.example.com/c=2")
	require.NoError(t, err)
	require.Equal(t, uint32(4), read.GetDimension())
	require.Equal(t, "example.com/c", r.Names[4])
	require.Equal(t, "set deserved.example.com/c of queue queue-1 to 2 (now none)", read.Said)
}

func TestTheHelpHasEverySettingOfTheTable(t *testing.T) {
	help := Help()
	for _, name := range slices.Sorted(maps.Keys(Settings())) {
		require.Contains(t, help, "  "+name+".")
		for _, setting := range Settings()[name] {
			require.Contains(t, help, "."+setting)
		}
	}
	for line := range strings.Lines(help) {
		require.LessOrEqual(t, len(line), 140, line)
	}
}
