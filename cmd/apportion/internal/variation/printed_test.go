package variation

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// named is a cluster with two queues, two jobs and two roles of each, which all have names.
type named struct{ queues, jobs, roles, nodes, dimensions [2]string }

func (n *named) cluster() *lookup.Snapshot {
	s := &apportionv1.Snapshot{Dimensions: []string{"cpu", "memory", n.dimensions[0], n.dimensions[1]}}
	for i := range 2 {
		amounts := &apportionv1.Resource{Dimensions: []uint32{0, 2, 3}, Amounts: []float64{8000, 8000, 8000}}
		s.Nodes = append(s.Nodes, &apportionv1.Node{Name: n.nodes[i], Allocatable: amounts, Unschedulable: &apportionv1.NodeUnschedulable{}})
		s.Queues = append(s.Queues, &apportionv1.Queue{Name: n.queues[i]})
		job := &apportionv1.Job{Uid: "uid-of-" + string(rune('a'+i)), Namespace: "ns", Name: n.jobs[i], Queue: n.queues[i], MinAvailable: 2}
		for k := range 2 {
			job.Groups = append(job.Groups, &apportionv1.TaskGroup{
				Role: n.roles[k], Request: amounts, Tasks: []*apportionv1.Task{{}}, NodeSet: "set",
			})
		}
		s.Jobs = append(s.Jobs, job)
	}
	s.NodeSets = []*apportionv1.NodeSet{{Name: "set", Nodes: []uint32{0}}}
	return lookup.Of(s)
}

// whatIf returns the arguments that are printed for an edit of a kind of the second job, queue, role and so on.
func whatIf(s *lookup.Snapshot, roles [2]string, kind apportionv1.EditKind) []string {
	names := s.Names(&apportionv1.Basis{Dimensions: s.GetDimensions()})
	names.Job, names.Node = s.JobName, s.NodeName
	second := &apportionv1.Ref{Index: new(uint32(1))}
	e := &apportionv1.Edit{Kind: kind, To: second, Dimension: new(uint32(3)), Amount: new(1.0)}
	switch {
	case kind <= apportionv1.EditKind_EDIT_KIND_FLAVOR && kind != apportionv1.EditKind_EDIT_KIND_PRIORITY:
		e.Object = &apportionv1.Edit_Queue{Queue: second}
	case kind >= apportionv1.EditKind_EDIT_KIND_NODES_LIKE:
		e.Object = &apportionv1.Edit_Node{Node: second}
	default:
		e.Object, e.Role = &apportionv1.Edit_Job{Job: second}, &roles[1]
	}
	return text.WhatIf(names, &apportionv1.Remedy{Edits: []*apportionv1.Edit{e}})
}

// of reads arguments of whatif.
func of(t require.TestingT, arguments []string) *Variation {
	v, flags := &Variation{}, pflag.NewFlagSet("whatif", pflag.ContinueOnError)
	v.Flags(flags)
	require.NoError(t, flags.Parse(arguments))
	return v
}

// TestAPrintedChangeIsReadBackWhateverTheNamesAre compares the change that each remedy's arguments make in a cluster with hostile names
// with that in the same cluster with plain names.
func TestAPrintedChangeIsReadBackWhateverTheNamesAre(t *testing.T) {
	words := []string{"a", "b", "=", `"`, "'", "$(x)", "`", " ", "\n", "\x1b[31m", `\`, ",", "--", "\u202e", "é", "1"}
	for _, known := range kinds {
		for field := range known {
			words = append(words, "."+strings.TrimSuffix(field, ".")+".", "."+strings.TrimSuffix(field, "."), strings.TrimSuffix(field, ".")+"=")
		}
	}
	words = append(words, ".request.", ".role.", ".", ".a.", "queue/")
	slices.Sort(words)
	name := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(words), 1, 5), func(parts []string) string { return strings.Join(parts, "") })
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
	plain := &named{
		queues: [2]string{"queue-1", "queue-2"}, jobs: [2]string{"job-1", "job-2"}, roles: [2]string{"role-1", "role-2"},
		nodes: [2]string{"node-1", "node-2"}, dimensions: [2]string{"example.com/a", "example.com/b"},
	}
	rapid.Check(t, func(t *rapid.T) {
		drawn := &named{
			two.Draw(t, "queues"), two.Draw(t, "jobs"), two.Draw(t, "roles"), two.Draw(t, "nodes"), [2]string{"example.com/a", "example.com/b"},
		}
		if rapid.Bool().Draw(t, "dimensions") {
			drawn.dimensions = [2]string{"x/" + drawn.roles[0], "x/" + drawn.roles[1]}
		}
		for number := range slices.Sorted(maps.Keys(apportionv1.EditKind_name)) {
			kind := apportionv1.EditKind(number)
			arguments := whatIf(plain.cluster(), plain.roles, kind)
			if arguments == nil || kind >= apportionv1.EditKind_EDIT_KIND_NOMINAL && kind <= apportionv1.EditKind_EDIT_KIND_FLAVOR {
				continue // It is not printed, or only for Kueue.
			}
			want, err := of(t, arguments).Of(plain.cluster(), nil)
			require.NoError(t, err, kind)
			printed := whatIf(drawn.cluster(), drawn.roles, kind)
			got, err := of(t, printed).Of(drawn.cluster(), nil)
			require.NoError(t, err, "%q", printed)
			require.Equal(t, shape(want.Change, plain), shape(got.Change, drawn), "%q", printed)
		}
	})
}

// shape writes a change with numbers in place of names.
func shape(change *apportionv1.Change, n *named) string {
	at := func(names [2]string, name string) string {
		if i := slices.Index(names[:], name); i >= 0 {
			return string(rune('1' + i))
		}
		return ""
	}
	for _, q := range change.GetQueues() {
		q.Name = at(n.queues, q.GetName())
	}
	for _, j := range change.GetJobs() {
		j.Name, j.Queue = at(n.jobs, j.GetName()), at(n.queues, j.GetQueue())
		for _, g := range j.GetGroups() {
			g.Role = at(n.roles, g.GetRole())
			for _, task := range g.GetTasks() {
				if task.GetDetail().GetNodeSet() != "" {
					task.Detail.NodeSet = "wider"
				}
			}
		}
	}
	for _, node := range change.GetNodes() {
		name, added := strings.CutSuffix(node.GetName(), "-new-1")
		if node.Name = at(n.nodes, name); added {
			node.Name += "-new-1"
		}
	}
	for _, set := range change.GetNodeSets() {
		set.Name = "wider"
	}
	return prototext.MarshalOptions{Multiline: true}.Format(change)
}

func TestANameWithAnyFieldInItIsPrintedInQuotationMarks(t *testing.T) {
	for _, known := range kinds {
		for field := range known {
			name := "a." + strings.TrimSuffix(field, ".") + ".b"
			names := text.Names{Queues: []string{name}}
			printed := text.WhatIf(names, &apportionv1.Remedy{Edits: []*apportionv1.Edit{{
				Kind: apportionv1.EditKind_EDIT_KIND_OPEN, Object: &apportionv1.Edit_Queue{Queue: &apportionv1.Ref{Index: new(uint32(0))}},
			}}})
			require.Equal(t, `queue/"`+name+`".state=open`, printed[1])
		}
	}
}
