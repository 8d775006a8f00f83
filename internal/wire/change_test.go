package wire_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/wire"
)

var positions = regexp.MustCompile(`(queues|jobs|nodes)\[(\d+)\]`)

// basis is a Basis with its positions as n has them, and without the warning that only the result of a change has.
func (n numbers) basis(b *apportionv1.Basis) string {
	b.Warnings = slices.DeleteFunc(b.Warnings, func(w *apportionv1.Warning) bool {
		return w.GetCode() == apportionv1.WarningCode_WARNING_CODE_TASKS_OFF_NODE
	})
	n.renumber(b.ProtoReflect(), nil)
	for _, w := range b.GetWarnings() {
		w.Path = positions.ReplaceAllStringFunc(w.GetPath(), func(s string) string {
			part := positions.FindStringSubmatch(s)
			at, _ := strconv.ParseUint(part[2], 10, 64)
			if to := map[string]map[uint64]uint64{"queues": n.queues, "jobs": n.jobs, "nodes": n.nodes}[part[1]]; to != nil {
				at = to[at]
			}
			return fmt.Sprintf("%s[%d]", part[1], at)
		})
	}
	return prototext.Format(b)
}

// aResultAnswersAsTheWhole draws a snapshot and a chain of changes, and requires that each result answers as its snapshot sent whole.
func aResultAnswersAsTheWhole(t *rapid.T, policy string) {
	aChainAnswersAsTheWhole(t, rapid.IntRange(1, 4).Draw(t, "changes"), 1, policy)
}

// aChainAnswersAsTheWhole draws a snapshot and so many changes, and requires that every so many of the results, and the last, answer as
// their snapshots sent whole.
func aChainAnswersAsTheWhole(t *rapid.T, changes, every int, asked ...string) {
	snapshot := drawSnapshot(t, rapid.Bool().Draw(t, "uids"))
	rough := rapid.Bool().Draw(t, "rough")
	if rough {
		roughen(snapshot, rapid.Uint64().Draw(t, "roughness"))
	}
	twin := mirror(snapshot)
	m, err := decode.Compile(snapshot)
	require.NoError(t, err)
	var decoder decode.Decoder
	for i := range changes {
		other := drawSnapshot(t, rapid.Bool().Draw(t, "other uids"))
		if rough {
			roughen(other, rapid.Uint64().Draw(t, "other roughness"))
		}
		change := twin.drawn(t, other)
		data, err := proto.Marshal(change)
		require.NoError(t, err)
		base := decode.SnapshotOf(m)
		result, err := decoder.CompileChange(m, data, decode.Guard{Parts: rapid.IntRange(1, 3).Draw(t, "parts")})
		require.NoError(t, err, "%v", change)
		require.True(t, proto.Equal(base, decode.SnapshotOf(m)), "the base stays as it is")
		m = result
		twin.apply(change)
		if (i+1)%every != 0 && i+1 < changes {
			continue
		}
		for _, policy := range asked {
			requireSame(t, twin, m, policy)
		}
	}
}

func TestALongChainOfChangesAnswersAsTheWhole(t *testing.T) {
	raced.Skip(t)
	asked := []string{`tiers { plugins { fair {} } }`}
	for _, name := range policyNames {
		asked = append(asked, policies[name])
	}
	rapid.Check(t, func(t *rapid.T) { aChainAnswersAsTheWhole(t, 24, 24, asked...) })
}

func requireSame(t *rapid.T, twin *mirrored, m *model.Model, policy string) {
	p := &apportionv1.Policy{}
	require.NoError(t, prototext.Unmarshal([]byte(policy), p))
	state, n := twin.whole()
	whole, err := decode.Compile(state)
	require.NoError(t, err)
	fresh, wrong := wire.Open(whole, p, wire.Options{})
	s, err := wire.Open(m, p, wire.Options{})
	if wrong != nil {
		require.Error(t, err)
		return
	}
	require.NoError(t, err)
	requireAnswers(t, fresh, s, state, n)
}

// requireAnswers compares what two sessions say of a state, whose numbers in the second one n replaces by those of the first one.
func requireAnswers(t *rapid.T, fresh, s *wire.Session, state *apportionv1.Snapshot, n numbers) {
	require.Equal(t, numbers{}.basis(fresh.Basis()), n.basis(s.Basis()))
	for _, step := range everything(state) {
		here := proto.CloneOf(step)
		n.inverse().renumber(here.ProtoReflect(), nil)
		got := s.Do(here)
		ordered := n.queues
		if step.GetOrder().GetJobs() != nil {
			ordered = n.jobs
		}
		n.renumber(got.ProtoReflect(), ordered)
		requireBits(t, fresh.Do(step), got, step)
	}
}

// requireBits requires two answers to a step to be equal to the last bit. Texts are written for those alone that are not.
func requireBits(t require.TestingT, want, got proto.Message, step *apportionv1.Step) {
	exactly := proto.MarshalOptions{Deterministic: true}
	l, err := exactly.Marshal(want)
	require.NoError(t, err)
	r, err := exactly.Marshal(got)
	require.NoError(t, err)
	if !bytes.Equal(l, r) {
		require.Equal(t, prototext.Format(want), prototext.Format(got), "%v", step)
	}
}

func TestTheResultOfAChangeAnswersAsTheWholeBitForBit(t *testing.T) {
	raced.Skip(t)
	everyPolicy(t, aResultAnswersAsTheWhole)
	t.Run("fair", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { aResultAnswersAsTheWhole(t, `tiers { plugins { fair {} } }`) })
	})
}

func FuzzTheResultOfAChangeAnswersAsTheWhole(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		names := make([]string, 0, len(policies))
		for name := range policies {
			names = append(names, name)
		}
		slices.Sort(names)
		aResultAnswersAsTheWhole(t, policies[rapid.SampledFrom(names).Draw(t, "policy")])
	}))
}

// flaws make a valid change faulty, each under the path that it returns. n is the number of tasks of the snapshot that is changed.
var flaws = []func(c *apportionv1.Change, n int) string{
	func(c *apportionv1.Change, _ int) string {
		c.RemoveNodes = append(c.RemoveNodes, "no such node")
		return fmt.Sprintf("change.remove_nodes[%d]", len(c.GetRemoveNodes())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.RemoveQueues = append(c.RemoveQueues, "no such queue")
		return fmt.Sprintf("change.remove_queues[%d]", len(c.GetRemoveQueues())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.RemoveNodeSets = append(c.RemoveNodeSets, "no such set")
		return fmt.Sprintf("change.remove_node_sets[%d]", len(c.GetRemoveNodeSets())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.RemoveJobs = append(c.RemoveJobs, "no such job")
		return fmt.Sprintf("change.remove_jobs[%d]", len(c.GetRemoveJobs())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.Nodes = append(c.Nodes, &apportionv1.Node{Name: "twice"}, &apportionv1.Node{Name: "twice"})
		return fmt.Sprintf("change.nodes[%d].name", len(c.GetNodes())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.Queues = append(c.Queues, &apportionv1.Queue{})
		return fmt.Sprintf("change.queues[%d].name", len(c.GetQueues())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.Jobs = append(c.Jobs, &apportionv1.Job{Name: "flawed", Queue: "no such queue"})
		return fmt.Sprintf("change.jobs[%d].queue", len(c.GetJobs())-1)
	},
	func(c *apportionv1.Change, n int) string {
		c.Tasks = append(c.Tasks, &apportionv1.TaskUpdate{Task: &apportionv1.TaskUpdate_Number{Number: uint32(n)}})
		return fmt.Sprintf("change.tasks[%d].number", len(c.GetTasks())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.Tasks = append(c.Tasks, &apportionv1.TaskUpdate{Status: apportionv1.TaskStatus_TASK_STATUS_FAILED})
		return fmt.Sprintf("change.tasks[%d].uid", len(c.GetTasks())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.Tasks = append(c.Tasks, &apportionv1.TaskUpdate{Status: 77})
		return fmt.Sprintf("change.tasks[%d].status", len(c.GetTasks())-1)
	},
	func(c *apportionv1.Change, _ int) string {
		c.ClearTotal, c.Total = true, &apportionv1.Resource{}
		return "change.clear_total"
	},
	func(c *apportionv1.Change, _ int) string {
		c.Nodes = append(c.Nodes, &apportionv1.Node{Name: "flawed", Allocatable: &apportionv1.Resource{Dimensions: []uint32{999}, Amounts: []float64{1}}})
		return fmt.Sprintf("change.nodes[%d].allocatable.dimensions", len(c.GetNodes())-1)
	},
}

// aFlawedChangeIsRefused draws a snapshot and a change with some flaws, and requires that each flaw is named and that the snapshot stays as
// it is: the same change without them has the same result as before.
func aFlawedChangeIsRefused(t *rapid.T) {
	snapshot := drawSnapshot(t, rapid.Bool().Draw(t, "uids"))
	m, err := decode.Compile(snapshot)
	require.NoError(t, err)
	change := mirror(snapshot).drawn(t, drawSnapshot(t, rapid.Bool().Draw(t, "other uids")))
	result := func(c *apportionv1.Change) (*model.Model, error) {
		data, err := proto.Marshal(c)
		require.NoError(t, err)
		n := rapid.IntRange(1, 3).Draw(t, "parts")
		return new(decode.Decoder).CompileChange(m, data, decode.Guard{Parts: n})
	}
	want, err := result(change)
	require.NoError(t, err)
	before := prototext.Format(decode.SnapshotOf(m))
	flawed := proto.CloneOf(change)
	var paths []string
	for _, flaw := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(flaws)-1), 1, len(flaws), rapid.ID[int]).Draw(t, "flaws") {
		paths = append(paths, flaws[flaw](flawed, m.Tasks.Len()))
	}
	_, err = result(flawed)
	var fault *decode.Fault
	require.ErrorAs(t, err, &fault)
	named := map[string]bool{}
	for _, v := range fault.Violations.Violations {
		named[v.Path] = true
	}
	for _, path := range paths {
		require.True(t, named[path], "%s is not among %v", path, fault)
	}
	require.Equal(t, before, prototext.Format(decode.SnapshotOf(m)))
	again, err := result(change)
	require.NoError(t, err)
	require.Equal(t, prototext.Format(decode.SnapshotOf(want)), prototext.Format(decode.SnapshotOf(again)))
}

func TestAFlawedChangeIsRefusedAndLeavesTheSnapshotAsItIs(t *testing.T) {
	rapid.Check(t, aFlawedChangeIsRefused)
}

func FuzzAFlawedChangeIsRefused(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(rapid.MakeFuzz(aFlawedChangeIsRefused))
}

func TestAChangeReadInPartsIsThatReadInOneGo(t *testing.T) {
	snapshot := generate.Snapshot(generate.Shape{Queues: 20, Jobs: 60, Tasks: 400, Nodes: 30, Seed: 1, Depth: 2, Dimensions: 5, UIDs: true})
	base, err := decode.Compile(snapshot)
	require.NoError(t, err)
	first := func(j *apportionv1.Job) *apportionv1.Task { return j.GetGroups()[0].GetTasks()[0] }
	for name, spoil := range map[string]func(c *apportionv1.Change){
		"sound":                 func(*apportionv1.Change) {},
		"a uid in two parts":    func(c *apportionv1.Change) { first(c.GetJobs()[19]).Uid = first(c.GetJobs()[0]).GetUid() },
		"a uid twice in a part": func(c *apportionv1.Change) { first(c.GetJobs()[19]).Uid = first(c.GetJobs()[18]).GetUid() },
		"a uid of a job that stays": func(c *apportionv1.Change) {
			c.GetJobs()[12].Uid, first(c.GetJobs()[19]).Uid = "another", first(c.GetJobs()[12]).GetUid()
		},
		"a job in two parts":               func(c *apportionv1.Change) { c.GetJobs()[19].Uid = c.GetJobs()[0].GetUid() },
		"a job removed too":                func(c *apportionv1.Change) { c.RemoveJobs = append(c.RemoveJobs, c.GetJobs()[19].GetUid()) },
		"no such queue, in two parts":      func(c *apportionv1.Change) { c.GetJobs()[0].Queue, c.GetJobs()[19].Queue = "none", "neither" },
		"a number that stands for nothing": func(c *apportionv1.Change) { first(c.GetJobs()[19]).Status = 99 },
	} {
		t.Run(name, func(t *testing.T) {
			change := generate.Change(proto.CloneOf(snapshot), 20, 1)
			spoil(change)
			data, err := proto.Marshal(change)
			require.NoError(t, err)
			d := new(decode.Decoder)
			want, wrong := d.CompileChange(base, data, decode.Guard{Parts: 1})
			for _, n := range []int{2, 3, 5, 2} {
				got, err := d.CompileChange(base, data, decode.Guard{Parts: n})
				if wrong != nil {
					require.EqualError(t, err, wrong.Error())
					continue
				}
				require.NoError(t, err)
				require.Equal(t, public(want), public(got))
				for _, j := range change.GetJobs() {
					uid := first(j).GetUid()
					at, found := got.TaskOf(uid)
					require.True(t, found)
					require.Equal(t, uid, got.TaskUID(at))
				}
			}
		})
	}
}
