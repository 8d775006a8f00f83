package fair

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// TestAReservationThatFollowsStartsIsTheOneThatWouldBeFormed starts and stops tasks anywhere, and rolls some of that back. The reservation of
// every state is compared with one that is formed for it.
func TestAReservationThatFollowsStartsIsTheOneThatWouldBeFormed(t *testing.T) {
	followed, rolledBack := 0, 0
	for i := range *runs {
		at := *seed + uint64(i)
		s, random := drawTurns(at).open(t), rand.New(rand.NewPCG(at, 7))
		if s.turns == nil {
			continue // What is known is of a queue that is set aside.
		}
		r := &Rest{State: s}
		var marks []policy.Position
		for range 30 {
			s.reserved()
			task := model.TaskID(random.IntN(max(1, s.v.Tasks.Len())))
			switch x := random.IntN(10); {
			case s.v.Tasks.Len() == 0 || x == 0:
				marks = append(marks, s.v.Journal.Mark())
			case x == 1 && len(marks) > 0:
				s.v.Journal.Rollback(marks[len(marks)-1])
				s.v.Journal.Release()
				marks = marks[:len(marks)-1]
				rolledBack++
			case x == 2 && s.v.Status(task) == model.Running:
				r.set(task, model.Pending, model.None)
			case s.v.Status(task) == model.Pending:
				n := model.NodeID(model.None)
				if reserved, is := s.Reservation(); is && x < 7 {
					k := random.IntN(len(reserved.Tasks))
					if x < 5 {
						k = 0
					}
					if task = reserved.Tasks[k]; len(reserved.Nodes) > 0 {
						n = reserved.Nodes[k]
					}
				}
				if n == model.None && len(s.v.Nodes) > 0 && x < 9 {
					n = model.NodeID(random.IntN(len(s.v.Nodes)))
				}
				r.set(task, []model.Status{model.Allocated, model.Running, model.Pipelined}[random.IntN(20)/9], n)
			}
			followed += requireAsFormed(t, s, at)
		}
	}
	t.Logf("%d states whose reservation followed a start, %d rollbacks", followed, rolledBack)
	require.Positive(t, followed)
}

// requireAsFormed compares the reservation of a state with one that is formed for it, and returns 1 if it followed a start.
func requireAsFormed(t *testing.T, s *State, seed uint64) int {
	t.Helper()
	got, formed := s.reservationOf(s.version), &reservation{job: model.None}
	require.True(t, s.reserve(formed))
	require.Equal(t, formed.job, got.job, "seed %d", seed)
	if formed.job != model.None {
		tasks, nodes := got.waiting()
		require.Equal(t, formed.tasks, tasks, "seed %d: tasks", seed)
		require.Equal(t, formed.nodes, nodes, "seed %d: nodes", seed)
		require.Equal(t, []any{formed.from, formed.need, formed.positive, formed.left, formed.held},
			[]any{got.from, got.need, got.positive, got.left, got.held}, "seed %d: from, need, positive, left, held", seed)
		require.Equal(t, formed.tasksOn, got.tasksOn, "seed %d: tasks on nodes", seed)
		for _, n := range s.v.NodeOrder {
			require.Equal(t, s.roomOf(formed.spare, n), s.roomOf(got.spare, n), "seed %d: spare of node %d", seed, n)
		}
	}
	return min(1, len(got.seats.taken))
}

// TestAGangThatStartsTaskByTaskHasItsReservationFormedOnce counts the work: twice as many tasks take about twice as much.
func TestAGangThatStartsTaskByTaskHasItsReservationFormedOnce(t *testing.T) {
	const second = nanoseconds
	spent := func(tasks int) int64 {
		c := &cluster{width: 1, plugin: Plugin{Memory: DefaultMemory(), Turns: &Turns{}}, asOf: 100 * second, memory: &model.MemorySpec{
			EpochSeconds: 1, HalfLife: 10, Epoch: 100, Offered: integers([]int64{1000}),
		}}
		for range tasks / 10 {
			c.nodes = append(c.nodes, node{offered: []int64{10}})
		}
		for _, name := range []string{"a", "b"} {
			c.queues = append(c.queues, queue{name: name, weight: 1, memory: &model.QueueMemorySpec{
				Usage: integers([]int64{0}), Entitled: integers([]int64{1}),
			}})
		}
		gang := job{queue: "a", request: []int64{1}, least: uint32(tasks), created: second}
		for range tasks {
			gang.tasks = append(gang.tasks, task{status: model.Pending, node: model.None})
		}
		c.jobs = append(c.jobs, gang, job{queue: "b", request: []int64{1}, created: second, tasks: []task{{status: model.Pending, node: model.None}}})
		s := c.open(t)
		s.v.Work = policy.NewWork(policy.DefaultWork)
		r := &Rest{State: s}
		reserved, is := s.Reservation()
		require.True(t, is)
		for i, task := range reserved.Tasks {
			require.True(t, r.Allocatable(s.v.QueueOf(task), policy.Request{Tasks: []model.TaskID{task}}, policy.InSession, nil, nil))
			r.set(task, model.Allocated, reserved.Nodes[i])
		}
		require.NoError(t, s.v.Work.Exceeded())
		return s.v.Work.Spent()
	}
	require.Less(t, spent(2000), 3*spent(1000))
}
