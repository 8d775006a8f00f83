package cycle_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// plain is a State that remembers nothing from one question to the next.
type plain struct{ *cycle.State }

func (p plain) Serve(j model.JobID, action cycle.Action) (done, more bool, err error) {
	return (&cycle.State{Session: p.Session, Told: p.Told, Gangs: p.Gangs}).Serve(j, action)
}

// kinds finds which jobs of a session differ in nothing that they ask.
func kinds(s *engine.Session) func(model.JobID) (cycle.Kind, bool) {
	known := map[string]int32{}
	v := s.View()
	return func(j model.JobID) (cycle.Kind, bool) {
		job := v.Jobs.At(j)
		signature := fmt.Sprint(job.Queue, job.Priority, job.MinAvailable, v.Reservations().Class(j))
		for t := job.FirstTask; t < job.EndTask; t++ {
			task := v.Tasks.At(t)
			group := task.Group - job.FirstGroup
			signature += fmt.Sprint(" ", group, task.Request, v.NodeSetOf(t), v.Status(t), task.Gate, v.PodKind(t), task.Priority)
		}
		if _, ok := known[signature]; !ok {
			known[signature] = int32(len(known))
		}
		account := v.Account(j)
		return cycle.Kind{Kind: known[signature], Running: account.Holding()}, account.Holding() == 0
	}
}

// drawn runs a cycle of all actions on a random cluster, and returns its state and its decisions.
func drawn(t *rapid.T, policy engine.Policy, m *model.Model, gangs bool, run func(*cycle.State) error) (*engine.Session, []cycle.Decision) {
	s, err := engine.Open(m, policy, nil)
	require.NoError(t, err)
	var decisions []cycle.Decision
	state := &cycle.State{Session: s, Gangs: gangs, Alike: kinds(s), Told: func(d *cycle.Decision) { decisions = append(decisions, *d) }}
	require.NoError(t, run(state))
	return s, decisions
}

// all is what a session says of tasks, jobs and queues.
func all(s *engine.Session) []string {
	v := s.View()
	var list []string
	for t := range model.TaskID(v.Tasks.Len()) {
		list = append(list, fmt.Sprint(v.TaskUID(t), v.Status(t), v.NodeOf(t)))
	}
	for _, j := range v.Present() {
		list = append(list, fmt.Sprint(v.Jobs.At(j).UID, v.Phase(j)))
	}
	for _, d := range s.Dividers() {
		for _, q := range v.QueueOrder {
			if d.Queues != nil {
				share, _ := d.Queues.Share(q)
				list = append(list, fmt.Sprint(d.Name, q, share.Allocated.V, share.Deserved.V))
			}
		}
	}
	return list
}

// TestACycleIsItsDecisions checks what holds after a cycle: carried out in their order on a session on the same cluster, the decisions that
// were told give the same state, what was remembered made no difference, and under a policy with plans nothing more can be done.
func TestACycleIsItsDecisions(t *testing.T) {
	placed, evicted, entered := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		policies := enginetest.Policies()
		name := rapid.SampledFrom(sorted(policies)).Draw(t, "policy")
		gangs := rapid.Bool().Draw(t, "gangs")
		m := enginetest.LimitedCluster(t, rapid.Uint64Range(0, 5000).Draw(t, "seed"), rapid.Bool().Draw(t, "tree"))
		if rapid.IntRange(0, 3).Draw(t, "repeated") > 0 {
			m = repeated(t)
		}
		s, decisions := drawn(t, policies[name], m, gangs, cycle.All().Run)
		twin, same := drawn(t, policies[name], m, gangs, func(s *cycle.State) error {
			return (&cycle.Loop{Scheduler: plain{s}}).Run(cycle.All()...)
		})
		require.Equal(t, same, decisions)
		require.Equal(t, all(twin), all(s))

		again, err := engine.Open(m, policies[name], nil)
		require.NoError(t, err)
		for i := range decisions {
			d := &decisions[i]
			if d.Action == cycle.Enqueue {
				require.True(t, again.Job(d.Job).Enqueue(nil))
				entered++
			}
			for _, v := range d.Victims {
				require.NoError(t, again.Deallocate(v.Task, model.Pending))
				evicted++
			}
			for i, task := range d.Tasks {
				require.True(t, again.Nodes().HasRoom(task, d.Nodes[i], nil))
				require.NoError(t, again.Allocate(task, d.Nodes[i]))
				placed++
			}
			if d.Action == cycle.Allocate {
				require.True(t, again.Job(d.Job).Ready(nil))
			}
		}
		require.Equal(t, all(again), all(s))
		if s.Reclaim().Plans() {
			more := &cycle.State{Session: s, Gangs: gangs, Told: func(d *cycle.Decision) { require.Fail(t, "one more", "%+v", d) }}
			require.NoError(t, cycle.Actions{cycle.Allocate, cycle.Reclaim}.Run(more))
		}
	})
	// With -short there are twenty draws, of which by chance none may let a job in or evict.
	if !testing.Short() {
		require.Positive(t, placed)
		require.Positive(t, evicted)
		require.Positive(t, entered)
	}
}

// TestWhatWasRefusedIsAskedAgainAfterAnEviction has a node that one task fills, and two equal jobs of another queue: neither has room at
// first, and what the eviction for the one leaves free is the other's.
func TestWhatWasRefusedIsAskedAgainAfterAnEviction(t *testing.T) {
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	b.Node(model.NodeSpec{Name: "n", Allocatable: enginetest.Cores(3)})
	b.Queue(model.QueueSpec{Name: "a", Weight: 1, Reclaimable: true})
	b.Queue(model.QueueSpec{Name: "b", Weight: 3, Reclaimable: true})
	for i, job := range []struct {
		uid, queue string
		cores      int
		status     model.Status
	}{{"full", "a", 3, model.Running}, {"x", "b", 1, model.Pending}, {"y", "b", 1, model.Pending}} {
		b.Job(model.JobSpec{UID: job.uid, Queue: job.queue, Phase: model.PhaseInqueue, CreateTime: int64(i)})
		b.Group(model.GroupSpec{Request: enginetest.Cores(job.cores)})
		task := model.TaskSpec{UID: job.uid, Status: job.status, Node: model.None, Preemptable: true}
		if job.status == model.Running {
			task.Node = 0
		}
		b.Task(&task)
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, enginetest.Policies()["fair"], nil)
	require.NoError(t, err)
	var told []string
	state := &cycle.State{Session: s, Told: func(d *cycle.Decision) {
		told = append(told, fmt.Sprint(d.Action, " ", m.Jobs.At(d.Job).UID, " ", len(d.Victims)))
	}}
	state.Alike = func(j model.JobID) (cycle.Kind, bool) {
		return cycle.Kind{Running: s.View().Account(j).Holding()}, true
	}
	require.NoError(t, cycle.All().Run(state))
	require.Equal(t, []string{"reclaim x 1", "allocate y 0"}, told)
}

// repeated is a cluster of few nodes and of jobs of few kinds, of which some run.
func repeated(t *rapid.T) *model.Model {
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu"})
	var free []int
	for n := range rapid.IntRange(1, 3).Draw(t, "nodes") {
		free = append(free, rapid.IntRange(1, 6).Draw(t, "cores"))
		b.Node(model.NodeSpec{Name: fmt.Sprint("n", n), Allocatable: enginetest.Cores(free[n])})
	}
	for q := range 2 {
		b.Queue(model.QueueSpec{Name: fmt.Sprint("q", q), Weight: uint32(rapid.IntRange(1, 3).Draw(t, "weight")), Reclaimable: true})
	}
	for j := range rapid.IntRange(4, 14).Draw(t, "jobs") {
		tasks, cores := rapid.IntRange(1, 2).Draw(t, "tasks"), rapid.SampledFrom([]int{1, 3}).Draw(t, "request")
		runs := rapid.IntRange(0, tasks).Draw(t, "running")
		if runs < tasks && rapid.Bool().Draw(t, "waits") {
			runs = 0
		}
		b.Job(model.JobSpec{
			UID: fmt.Sprint("j", j), Queue: fmt.Sprint("q", rapid.IntRange(0, 1).Draw(t, "queue")), Phase: model.PhaseInqueue,
			MinAvailable: uint32(rapid.IntRange(1, tasks).Draw(t, "minimum")), CreateTime: int64(j),
		})
		b.Group(model.GroupSpec{Request: enginetest.Cores(cores)})
		for k := range tasks {
			task := model.TaskSpec{UID: fmt.Sprint("j", j, "-", k), Index: int32(k), Node: model.None, Preemptable: true}
			if n := slices.IndexFunc(free, func(left int) bool { return left >= cores }); k < runs && n >= 0 {
				free[n] -= cores
				task.Status, task.Node = model.Running, model.NodeID(n)
			}
			b.Task(&task)
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	return m
}

func sorted(policies map[string]engine.Policy) []string {
	return slices.Sorted(maps.Keys(policies))
}

func TestPlacedTasksRunAfterACycle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := enginetest.PlanCluster(t, rapid.Uint64Range(0, 5000).Draw(t, "seed"), false)
		s, err := engine.Open(m, enginetest.Policies()["proportion"], nil)
		require.NoError(t, err)
		var tasks []model.TaskID
		state := &cycle.State{Session: s, Told: func(d *cycle.Decision) { tasks = append(tasks, d.Tasks...) }}
		require.NoError(t, cycle.Actions{cycle.Enqueue, cycle.Allocate}.Run(state))
		state.Begin()
		for _, task := range tasks {
			require.Equal(t, model.Running, s.View().Status(task))
		}
	})
}
