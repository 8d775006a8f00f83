package remedy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/explain"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/remedy"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// impossible is a cluster in which a job "never" cannot run even if nothing else does, or may not: its nodes are too small, left out of its
// node set, or cordoned, and its queue may be closed or have no quota left.
func impossible(t require.TestingT, seed uint64, tree bool) *model.Model {
	d := enginetest.Dice{Rand: rand.New(rand.NewPCG(seed, 29))}
	b := model.NewBuilder(1_000_000)
	b.Dimensions([]string{"cpu", "gpu"})
	nodes := d.Between(1, 3)
	var some []uint32
	for n := range nodes {
		spec := model.NodeSpec{Name: fmt.Sprintf("n%d", n), Allocatable: enginetest.Amounts(d.Between(4, 8), d.Between(0, 4))}
		if d.Chance(15) {
			spec.Unschedulable = &model.Unschedulable{Cause: model.Cordoned}
		}
		b.Node(spec)
		if d.Chance(40) {
			some = append(some, uint32(n))
		}
	}
	b.NodeSet(model.NodeSetSpec{Name: "some", Nodes: some})
	var leaves []string
	queue := func(name, parent string, leaf bool) {
		spec := model.QueueSpec{Name: name, Parent: parent, Weight: uint32(d.Between(1, 3)), Reclaimable: true}
		if d.Chance(60) {
			spec.Capability = enginetest.Amounts(d.Between(1, 4), d.Between(0, 2))
		}
		if d.Chance(60) {
			spec.Deserved = enginetest.Amounts(d.Between(1, 4), d.Between(0, 2))
		}
		if leaf && d.Chance(20) {
			spec.Guarantee = enginetest.Amounts(1, 0)
		}
		if leaf && d.Chance(15) {
			spec.State = model.Closed
		}
		b.Queue(spec)
		if leaf {
			leaves = append(leaves, name)
		}
	}
	if tree {
		b.Queue(model.QueueSpec{Name: "root", Weight: 1, Reclaimable: true})
		queue("p", "root", false)
		queue("q0", "p", true)
		queue("q1", "p", true)
	} else {
		queue("q0", "", true)
		queue("q1", "", true)
	}
	for n := range nodes {
		b.Job(model.JobSpec{UID: fmt.Sprint("runs-", n), Queue: leaves[d.IntN(2)], MinAvailable: 1, Phase: model.PhaseRunning})
		b.Group(model.GroupSpec{Request: enginetest.Amounts(d.Between(1, 2), 0)})
		b.Task(&model.TaskSpec{UID: fmt.Sprint("runs-", n, "-0"), Node: model.NodeID(n), Status: model.Running})
	}
	spec := model.JobSpec{UID: "never", Queue: "q0", MinAvailable: uint32(d.Between(1, 3)), Phase: model.PhaseInqueue}
	if d.Chance(30) {
		spec.Phase, spec.MinResources = model.PhasePending, enginetest.Amounts(d.Between(1, 12), d.Between(0, 4))
	}
	b.Job(spec)
	for g := range d.Between(1, 2) {
		group := model.GroupSpec{Role: fmt.Sprint(g), Request: enginetest.Amounts(d.Between(1, 10), d.Between(0, 5))}
		if d.Chance(50) {
			group.NodeSet = "some"
		}
		b.Group(group)
		for k := range d.Between(1, 3) {
			b.Task(&model.TaskSpec{UID: fmt.Sprint("never-", g, "-", k), Node: model.None, Index: int32(k)})
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	return m
}

// gpuAt is the dimension of GPUs: after cpu and memory.
const gpuAt = 2

// changesOfJob are the changes of a job, or of nodes for it, that the plain twin tries: alone, and together with each change of a queue.
func changesOfJob(m *model.Model, j model.JobID) [][]edit.Edit {
	none := edit.Edit{Queue: model.None, Job: model.None, Group: model.None, Node: model.None, Dimension: -1}
	all := [][]edit.Edit{nil}
	var others, uncordoned []edit.Edit
	for n := range m.Nodes {
		e := none
		e.Kind, e.Job, e.Node, e.Amount, e.Step = edit.AllowedNode, j, model.NodeID(n), 1, 1
		others = append(others, e)
		if m.Nodes[n].Unschedulable != nil {
			e.Kind, e.Job = edit.Uncordon, model.None
			uncordoned = append(uncordoned, e)
		}
		for _, count := range []float64{1, 3, 6} {
			e.Kind, e.Job, e.Amount = edit.NodesLike, model.None, count
			all = append(all, []edit.Edit{e})
		}
	}
	all = append(all, others, uncordoned)
	job := m.Jobs.At(j)
	for less := 1; less < int(job.MinAvailable); less++ {
		e := none
		e.Kind, e.Job, e.Before, e.Amount, e.Step, e.Given = edit.Minimum, j, float64(job.MinAvailable), float64(less), 1, true
		all = append(all, []edit.Edit{e})
	}
	// Requests of all roles at once, cut to so many cores and GPUs.
	for _, cpu := range []float64{1, 3, 6} {
		for _, gpu := range []float64{1, 3} {
			var edits []edit.Edit
			for g := job.FirstGroup; g < job.EndGroup; g++ {
				for d, most := range map[int]float64{0: 1000 * cpu, gpuAt: 1000 * gpu} {
					if asks := m.Requests[m.Groups.At(g).Request].V[d]; asks > most {
						e := none
						e.Kind, e.Job, e.Group, e.Dimension = edit.Request, j, g, d
						e.Before, e.Amount, e.Step, e.Given = asks, most, 1, true
						edits = append(edits, e)
					}
				}
			}
			all = append(all, edits)
		}
	}
	return all
}

// changesOfQueue are the changes of settings of a queue that the plain twin tries.
func changesOfQueue(m *model.Model, q model.QueueID) [][]edit.Edit {
	none := edit.Edit{Queue: q, Job: model.None, Group: model.None, Node: model.None, Dimension: -1, Step: 1}
	all := [][]edit.Edit{nil}
	if m.Queues[q].State != model.Open {
		e := none
		e.Kind, e.Amount = edit.Open, 1
		all = append(all, []edit.Edit{e})
	}
	for _, weight := range []float64{8, 1 << 16} {
		e := none
		e.Kind, e.Amount, e.Given = edit.Weight, weight, true
		all = append(all, []edit.Edit{e})
	}
	for _, field := range []edit.Kind{edit.Capability, edit.Guarantee, edit.Deserved} {
		for _, cpu := range []float64{0, 6, 32} {
			for _, gpu := range []float64{0, 3, 16} {
				var edits []edit.Edit
				for d, after := range map[int]float64{0: 1000 * cpu, gpuAt: 1000 * gpu} {
					if after == 0 {
						continue
					}
					e := none
					e.Kind, e.Dimension, e.Amount, e.Given = field, d, after, true
					edits = append(edits, e)
				}
				all = append(all, edits)
			}
		}
	}
	return all
}

// canNeverRun reports whether a job can provably not run.
func canNeverRun(t *testing.T, s *engine.Session, j model.JobID) bool {
	t.Helper()
	never := false
	require.NoError(t, explain.Jobs(s, []model.JobID{j}, true, func(e *explain.Explanation) error {
		never = len(e.Findings) > 0 && e.Findings[0].Check == judge.CheckFeasibility
		return nil
	}))
	return never
}

// TestAJobThatCanNeverRunHasARemedyIfTwoChangesHelp is the plain twin of the search: it tries each change of the job, and of nodes, with each
// of its queue and of those above it.
func TestAJobThatCanNeverRunHasARemedyIfTwoChangesHelp(t *testing.T) {
	never, helped, combined, only := 0, 0, 0, 0
	missing := []string{}
	for i := range *remedyRuns / 3 {
		seed := *enginetest.Seed + uint64(i)
		for name, p := range enginetest.Policies() {
			m := impossible(t, seed, name == "tree" || name == "fair" && seed%2 == 0)
			s, err := engine.Open(m, p, nil)
			require.NoError(t, err)
			j, _ := m.Job("never")
			if !slices.Contains(s.Waiting(), j) || !canNeverRun(t, s, j) {
				continue
			}
			never++
			at := fmt.Sprint(name, " ", seed)
			found := remedies(t, s, j)
			both := remediesOf(found, remedy.Combined)
			for _, one := range both {
				requireLeast(t, s, j, one.Edits, at)
			}
			combined += len(both)
			if found.Outcome == remedy.Found {
				helped++
				if len(both) == len(found.List) {
					only++
				}
				continue
			}
			if edits := bruteForce(t, s, m, j); edits != nil {
				missing = append(missing, at)
			}
		}
	}
	t.Log(never, "jobs that can never run,", helped, "helped,", only, "by two changes alone, of which there are", combined)
	require.Empty(t, missing)
	require.Positive(t, only)
}

// bruteForce returns two changes with which a job runs, nil if none do.
func bruteForce(t require.TestingT, s *engine.Session, m *model.Model, j model.JobID) []edit.Edit {
	for q := range m.Queues {
		if m.Queues[q].Name[0] != 'q' || model.QueueID(q) == m.Jobs.At(j).Queue {
			continue
		}
		e := edit.Edit{Kind: edit.Queue, Queue: model.QueueID(q), Job: j, Group: model.None, Node: model.None, Dimension: -1, Step: 1, Amount: 1}
		for _, ofJob := range changesOfJob(m, j) {
			if edits := append(slices.Clone(ofJob), e); runsAfter(t, s, j, edits) && !warnsAfter(t, s, j, edits) {
				return edits
			}
		}
	}
	for q, known := m.Jobs.At(j).Queue, true; known; q, known = m.Queue(m.Queues[q].Parent) {
		for _, ofQueue := range changesOfQueue(m, q) {
			for _, ofJob := range changesOfJob(m, j) {
				if edits := slices.Concat(ofJob, ofQueue); runsAfter(t, s, j, edits) && !warnsAfter(t, s, j, edits) {
					return edits
				}
			}
		}
	}
	return nil
}

// warnsAfter reports whether the policy warns of more in the cluster after edits.
func warnsAfter(t require.TestingT, s *engine.Session, j model.JobID, edits []edit.Edit) bool {
	before, mark := len(s.Warnings()), s.Mark()
	require.NoError(t, remedy.ChangeBy(s, j, edits))
	after := len(s.Warnings())
	require.NoError(t, s.Rollback(mark))
	return after > before
}

// TestWhatAJobNeedsOfNodesAndOfItsQueueIsOneRemedy has a cluster of two nodes, small with 4 cores and large with 16, of which one core each is
// in use, and a queue that may hold 3 cores in all.
func TestWhatAJobNeedsOfNodesAndOfItsQueueIsOneRemedy(t *testing.T) {
	for name, test := range map[string]struct {
		minimum, cores int
		set            string
		closed         bool
		fields         []edit.Kind
	}{
		"a node that is left out": {minimum: 1, cores: 8, set: "small", fields: []edit.Kind{edit.AllowedNode, edit.Capability}},
		"more nodes":              {minimum: 4, cores: 6, fields: []edit.Kind{edit.NodesLike, edit.Capability}},
		"a smaller minimum":       {minimum: 4, cores: 6, fields: []edit.Kind{edit.Minimum, edit.Capability}},
		"a smaller request":       {minimum: 4, cores: 6, fields: []edit.Kind{edit.Request, edit.Capability}},
		"a queue that is closed":  {minimum: 1, cores: 6, closed: true, fields: []edit.Kind{edit.Open, edit.Capability}},
		"closed, and a node left out": {
			minimum: 1, cores: 8, set: "small", closed: true, fields: []edit.Kind{edit.AllowedNode, edit.Open, edit.Capability},
		},
	} {
		for with, p := range enginetest.Policies() {
			t.Run(name+"/"+with, func(t *testing.T) {
				b := model.NewBuilder(0)
				b.Dimensions([]string{"cpu", "gpu"})
				b.Node(model.NodeSpec{Name: "small", Allocatable: enginetest.Amounts(4, 4)})
				b.Node(model.NodeSpec{Name: "large", Allocatable: enginetest.Amounts(16, 4)})
				b.NodeSet(model.NodeSetSpec{Name: "small", Nodes: []uint32{0}})
				queue := model.QueueSpec{Name: "q", Weight: 1, Capability: enginetest.Amounts(3, 1), Deserved: enginetest.Amounts(20, 8)}
				if with == "tree" {
					b.Queue(model.QueueSpec{Name: "root", Weight: 1})
					queue.Parent = "root"
				}
				if test.closed {
					queue.State = model.Closed
				}
				b.Queue(queue)
				b.Job(model.JobSpec{UID: "runs", Queue: "q", MinAvailable: 1, Phase: model.PhaseRunning})
				b.Group(model.GroupSpec{Request: enginetest.Amounts(1, 0)})
				for n := range 2 {
					b.Task(&model.TaskSpec{UID: fmt.Sprint("runs-", n), Node: model.NodeID(n), Status: model.Running})
				}
				b.Job(model.JobSpec{UID: "never", Queue: "q", MinAvailable: uint32(test.minimum), Phase: model.PhaseInqueue})
				b.Group(model.GroupSpec{Request: enginetest.Amounts(test.cores, 1), NodeSet: test.set})
				for k := range test.minimum {
					b.Task(&model.TaskSpec{UID: fmt.Sprint("never-", k), Node: model.None, Index: int32(k)})
				}
				m, err := b.Build()
				require.NoError(t, err)
				s, err := engine.Open(m, p, nil)
				require.NoError(t, err)
				j, _ := m.Job("never")
				var fields [][]edit.Kind
				for _, one := range remediesOf(remedies(t, s, j), remedy.Combined) {
					requireLeast(t, s, j, one.Edits, name)
					var of []edit.Kind
					for _, e := range one.Edits {
						if e.Step != 0 {
							of = append(of, e.Kind)
						}
					}
					fields = append(fields, slices.Compact(of))
				}
				require.Contains(t, fields, test.fields)
			})
		}
	}
}
