package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/wire"
)

const restricted = `
dimensions: "cpu" dimensions: "memory"
nodes { name: "n0" allocatable { dimensions: [0, 1] amounts: [4000, 100] } }
nodes { name: "n1" allocatable { dimensions: [0, 1] amounts: [4000, 100] } unschedulable { cause: UNSCHEDULABLE_CAUSE_CORDONED detail: "disk" } }
nodes { name: "n2" allocatable { dimensions: [0, 1] amounts: [4000, 100] } }
node_sets { name: "h100" nodes: [2, 1] rule: "node selector gpu=h100" }
node_sets { name: "none" }
queues { name: "q" }
jobs { name: "j" queue: "q" condition: "1/2 tasks in gang unschedulable" groups {
  node_set: "h100" unjudged_constraints: PLACEMENT_CONSTRAINT_VOLUMES request { dimensions: [0] amounts: [1000] }
  tasks { uid: "t0" }
  tasks { uid: "t1" detail { node_set: "none" unjudged_constraints: PLACEMENT_CONSTRAINT_HOST_PORTS condition: "Unschedulable" } }
} groups { role: "free" request { dimensions: [0] amounts: [1000] } tasks { uid: "t2" } } }`

func TestTasksFitOnlyTheNodesOfTheirSetThatTakeNewTasks(t *testing.T) {
	s := open(t, restricted, proportional)
	answer := ask(t, s, `nodes { tasks { names: ["t0", "t1", "t2"] } explain: true }`)
	requireAnswer(t, `nodes {
  tasks { task: 0 nodes: [0, 1, 2] fits: [false, false, true] scores: [0, 0, 0]
    causes { code: CAUSE_CODE_NODE_NOT_IN_SET detail: "node selector gpu=h100" node: 0 }
    causes { code: CAUSE_CODE_NODE_UNSCHEDULABLE detail: "cordoned (disk)" node: 1 } }
  tasks { task: 1 nodes: [0, 1, 2] fits: [false, false, false] scores: [0, 0, 0]
    causes { code: CAUSE_CODE_NODE_NOT_IN_SET detail: "none" node: 0 }
    causes { code: CAUSE_CODE_NODE_UNSCHEDULABLE detail: "cordoned (disk)" node: 1 }
    causes { code: CAUSE_CODE_NODE_NOT_IN_SET detail: "none" node: 2 } }
  tasks { task: 2 nodes: [0, 1, 2] fits: [true, false, true] scores: [0, 0, 0]
    causes { code: CAUSE_CODE_NODE_UNSCHEDULABLE detail: "cordoned (disk)" node: 1 } }
}`, answer)
}

func TestAnAddedJobMayNameANodeSet(t *testing.T) {
	s := open(t, restricted, proportional)
	job := `event { change { jobs { name: "k" queue: "q" groups { node_set: "h100" request { dimensions: [0] amounts: [1] } tasks { uid: "t3" } } } } }`
	require.Nil(t, ask(t, s, job).GetError())
	row := ask(t, s, `nodes { tasks { names: "t3" } top: 3 }`).GetNodes().GetTasks()[0]
	require.Equal(t, []uint32{2}, row.GetNodes())
}

func TestAModelKeepsWhatASnapshotSaysOfPlacement(t *testing.T) {
	snapshot := parse(t, &apportionv1.Snapshot{}, restricted)
	m, err := decode.Compile(snapshot)
	require.NoError(t, err)
	again := decode.SnapshotOf(m)
	require.Equal(t, []uint32{1, 2}, again.GetNodeSets()[0].GetNodes(), "in ascending order")
	require.Equal(t, "1/2 tasks in gang unschedulable", again.GetJobs()[0].GetCondition())
	require.True(t, proto.Equal(snapshot.GetNodes()[1].GetUnschedulable(), again.GetNodes()[1].GetUnschedulable()))
	require.Equal(t, snapshot.GetJobs()[0].GetGroups()[0].GetUnjudgedConstraints(), again.GetJobs()[0].GetGroups()[0].GetUnjudgedConstraints())
	require.Equal(t, "none", again.GetJobs()[0].GetGroups()[0].GetTasks()[1].GetDetail().GetNodeSet())
	require.Equal(t, "Unschedulable", again.GetJobs()[0].GetGroups()[0].GetTasks()[1].GetDetail().GetCondition())
	both := model.Constraints(1<<apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_VOLUMES | 1<<apportionv1.PlacementConstraint_PLACEMENT_CONSTRAINT_HOST_PORTS)
	require.Equal(t, both, m.Unjudged(1))
}

func TestFaultyNodeSetsAreNamedByPath(t *testing.T) {
	_, err := decode.Compile(parse(t, &apportionv1.Snapshot{}, `
nodes { name: "n" unschedulable { cause: 9 } }
node_sets { nodes: [0, 0] }
node_sets { name: "a" nodes: [0, 1] }
node_sets { name: "a" }
queues { name: "q" }
jobs { name: "j" queue: "q" groups {
  node_set: "b" unjudged_constraints: [1, 1, 0]
  tasks { detail { node_set: "c" unjudged_constraints: 99 } }
} }`))
	var fault *decode.Fault
	require.ErrorAs(t, err, &fault)
	var paths []string
	for _, v := range fault.Violations.Violations {
		paths = append(paths, v.Path)
	}
	require.ElementsMatch(t, []string{
		"snapshot.nodes[0].unschedulable.cause", "snapshot.node_sets[0].name", "snapshot.node_sets[0].nodes", "snapshot.node_sets[1].nodes[1]",
		"snapshot.node_sets[2].name", "snapshot.jobs[0].groups[0].node_set", "snapshot.jobs[0].groups[0].unjudged_constraints[1]",
		"snapshot.jobs[0].groups[0].unjudged_constraints[2]", "snapshot.jobs[0].groups[0].tasks[0].detail.node_set",
		"snapshot.jobs[0].groups[0].tasks[0].detail.unjudged_constraints[0]",
	}, paths)
}

func TestAChangeRemovesNodeSetsThatRestrictNoTask(t *testing.T) {
	base, err := decode.Compile(parse(t, &apportionv1.Snapshot{}, restricted))
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		change string
		// want are the sets of the result, or the violations.
		want, violations []string
	}{
		"with the job that referred to them": {
			change: `remove_node_sets: "none" remove_node_sets: "h100" remove_jobs: "j"`,
		},
		"where the job is free now": {
			change: `remove_node_sets: "none" jobs { name: "j" queue: "q" groups { node_set: "h100" tasks {} } }`, want: []string{"h100"},
		},
		"a group is left": {
			change:     `remove_node_sets: "h100"`,
			violations: []string{`change.remove_node_sets[0]: job "j" is restricted to the node set, and 1 in all`},
		},
		"a task is left": {
			change:     `remove_node_sets: "none"`,
			violations: []string{`change.remove_node_sets[0]: job "j" is restricted to the node set, and 1 in all`},
		},
		"a group is new": {
			change:     `remove_node_sets: "none" remove_jobs: "j" jobs { name: "k" queue: "q" groups { node_set: "none" } }`,
			violations: []string{`change.jobs[0].groups[0].node_set: no node set "none"`},
		},
		"a set that is set too": {
			change:     `remove_node_sets: "none" node_sets { name: "none" }`,
			violations: []string{`change.node_sets[0].name: node set "none" is remove_node_sets[0] already`},
		},
		"no such set": {
			change:     `remove_node_sets: "" remove_node_sets: "a100"`,
			violations: []string{`change.remove_node_sets[0]: no node set ""`, `change.remove_node_sets[1]: no node set "a100"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := proto.Marshal(parse(t, &apportionv1.Change{}, tt.change))
			require.NoError(t, err)
			m, err := new(decode.Decoder).CompileChange(base, data, decode.Guard{})
			if tt.violations != nil {
				var fault *decode.Fault
				require.ErrorAs(t, err, &fault)
				var got []string
				for _, v := range fault.Violations.Violations {
					got = append(got, v.Path+": "+v.Detail)
				}
				require.Subset(t, got, tt.violations)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, setNames(m))
			require.Equal(t, []string{"h100", "none"}, setNames(base))
		})
	}
}

func setNames(m *model.Model) []string {
	var names []string
	for _, s := range decode.SnapshotOf(m).GetNodeSets() {
		names = append(names, s.GetName())
	}
	return names
}

func TestANodeSetThatWasRemovedCanBeSetAgain(t *testing.T) {
	m, err := decode.Compile(parse(t, &apportionv1.Snapshot{}, restricted))
	require.NoError(t, err)
	for _, change := range []string{
		`remove_node_sets: "none" remove_jobs: "j"`, `node_sets { name: "none" nodes: 0 }`,
		`jobs { name: "k" queue: "q" groups { node_set: "none" request { dimensions: [0] amounts: [1000] } tasks { uid: "t0" } } }`,
	} {
		data, err := proto.Marshal(parse(t, &apportionv1.Change{}, change))
		require.NoError(t, err)
		m, err = new(decode.Decoder).CompileChange(m, data, decode.Guard{})
		require.NoError(t, err)
	}
	require.Equal(t, []string{"h100", "none"}, setNames(m))
	at, _ := m.TaskOf("t0")
	require.True(t, m.Takes(0, m.NodeSetOf(at)))
	require.False(t, m.Takes(2, m.NodeSetOf(at)))
}

// The remedy adds a node like n2 to the set of n2, which still lists n1.
func TestANodeIsAddedToASetThatHasLostOne(t *testing.T) {
	m, err := decode.Compile(parse(t, &apportionv1.Snapshot{}, `
dimensions: "cpu" dimensions: "memory"
nodes { name: "n1" allocatable { dimensions: [0, 1] amounts: [4000, 100] } }
nodes { name: "n2" allocatable { dimensions: [0, 1] amounts: [4000, 100] } }
nodes { name: "outside" allocatable { dimensions: [0, 1] amounts: [8000, 100] } }
node_sets { name: "h100" nodes: [0, 1] }
queues { name: "q" }
jobs { uid: "running" queue: "q" phase: JOB_PHASE_RUNNING groups {
  node_set: "h100" request { dimensions: [0] amounts: [4000] } tasks { uid: "r" status: TASK_STATUS_RUNNING node: 1 }
} }
jobs { uid: "waiting" queue: "q" phase: JOB_PHASE_INQUEUE min_available: 1 groups {
  node_set: "h100" request { dimensions: [0] amounts: [4000] } tasks { uid: "w" status: TASK_STATUS_PENDING }
} }`))
	require.NoError(t, err)
	data, err := proto.Marshal(&apportionv1.Change{RemoveNodes: []string{"n1"}})
	require.NoError(t, err)
	m, err = new(decode.Decoder).CompileChange(m, data, decode.Guard{})
	require.NoError(t, err)
	question := parse(t, &apportionv1.Step{}, `remedies { job { names: "waiting" } kinds: EDIT_KIND_NODES_LIKE }`)
	want := found(t, restated(t, m), question)
	require.Len(t, want, 1)
	require.Equal(t, want, found(t, m, question))
}

// restated is the model of the snapshot that describes m.
func restated(t *testing.T, m *model.Model) *model.Model {
	t.Helper()
	again, err := decode.Compile(decode.SnapshotOf(m))
	require.NoError(t, err)
	return again
}

// found are the texts of the remedies.
func found(t *testing.T, m *model.Model, question *apportionv1.Step) []string {
	t.Helper()
	s, err := wire.Open(m, parse(t, &apportionv1.Policy{}, proportional), wire.Options{})
	require.NoError(t, err)
	answer := s.Do(question)
	require.Nil(t, answer.GetError())
	var texts []string
	for _, remedy := range answer.GetRemedies().GetRemedies() {
		texts = append(texts, remedy.GetText())
	}
	return texts
}

func TestNodeSetsAreLimited(t *testing.T) {
	data, err := proto.Marshal(parse(t, &apportionv1.Snapshot{}, restricted))
	require.NoError(t, err)
	_, err = new(decode.Decoder).CompileWithin(data, decode.Guard{Limits: decode.Limits{NodeSets: 1}})
	require.ErrorContains(t, err, "the snapshot has 2 node_sets, at most 1 are taken")
}

// TestInSetIsMembership compares the search in a sorted set with a look at each node of it.
func TestInSetIsMembership(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snapshot := generate.Snapshot(generate.Shape{
			Queues: 2, Jobs: 4, Tasks: 20, Nodes: rapid.IntRange(1, 12).Draw(t, "nodes"), NodeSets: rapid.IntRange(1, 4).Draw(t, "sets"),
			Seed: rapid.Uint64Range(0, 1<<20).Draw(t, "seed"),
		})
		m, err := decode.Compile(snapshot)
		require.NoError(t, err)
		id := model.TaskID(0)
		for _, j := range snapshot.GetJobs() {
			for _, g := range j.GetGroups() {
				for _, task := range g.GetTasks() {
					name := task.GetDetail().GetNodeSet()
					if name == "" {
						name = g.GetNodeSet()
					}
					for n, node := range snapshot.GetNodes() {
						may := name == "" && node.GetUnschedulable() == nil
						for _, set := range snapshot.GetNodeSets() {
							for _, member := range set.GetNodes() {
								may = may || set.GetName() == name && int(member) == n && node.GetUnschedulable() == nil
							}
						}
						require.Equal(t, may, m.Takes(model.NodeID(n), m.NodeSetOf(id)))
					}
					id++
				}
			}
		}
	})
}
