package plan_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// carry applies a plan, without one of its victims if that is not model.None, and reports whether every task was placed by the rules: the
// queue may use that much more, the node takes the task, and it has room.
func carry(s *engine.Session, plan *plan.Plan, without model.TaskID) bool {
	if plan.Enters && !s.Job(plan.Job).Enqueue(nil) {
		return false
	}
	for i := range plan.Victims {
		if v := plan.Victims[i].Task; v != without && s.Deallocate(v, model.Pending) != nil {
			return false
		}
	}
	if !s.Allocatable(plan.Tasks, policy.InSession, nil, nil) {
		return false
	}
	for i, t := range plan.Tasks {
		if !s.Nodes().Fits(t, plan.Nodes[i], nil) || !hasRoom(s, t, plan.Nodes[i], plan.Released[i]) || s.Allocate(t, plan.Nodes[i]) != nil {
			return false
		}
	}
	return s.Job(plan.Job).Ready(nil)
}

// hasRoom reports whether a node has room for a task, with released once what is being released is gone.
func hasRoom(s *engine.Session, t model.TaskID, n model.NodeID, released bool) bool {
	if !released {
		return s.Nodes().HasRoom(t, n, nil)
	}
	v := s.View()
	mark := s.Mark()
	for other := range model.TaskID(v.Tasks.Len()) {
		if v.NodeOf(other) == n && v.Status(other) == model.Releasing {
			s.SetStatus(other, model.Succeeded)
		}
	}
	room := s.Nodes().HasRoom(t, n, nil)
	if err := s.Rollback(mark); err != nil {
		panic(err)
	}
	return room
}

func ask(t require.TestingT, s *engine.Session, j model.JobID, means plan.Means) *plan.Plan {
	plan, err := plan.For(s, &plan.Question{Job: j, Means: means})
	require.NoError(t, err)
	return plan
}

func TestAPlanCanBeCarriedOutAndDoesWithoutNoneOfItsVictims(t *testing.T) {
	made, victims := 0, 0
	enginetest.EachJob(t, *enginetest.Runs, func(name string, seed uint64, s *engine.Session, j model.JobID) {
		for _, means := range []plan.Means{plan.PlaceOnly, plan.ByReclaim, plan.ByPreempt, plan.ByAny} {
			answer := ask(t, s, j, means)
			require.Equal(t, answer, ask(t, s, j, means), "%s %d %d: the same question has the same answer", name, seed, j)
			require.Equal(t, answer.Outcome == plan.Made, answer.Miss == nil)
			if answer.Miss != nil {
				continue
			}
			made++
			victims += len(answer.Victims)
			mark := s.Mark()
			require.True(t, carry(s, answer, model.None), "%s %d: %s", name, seed, s.View().Jobs.At(j).UID)
			require.NoError(t, s.Rollback(mark))
			for i := range answer.Victims {
				v := answer.Victims[i].Task
				require.False(t, carry(s, answer, v), "%s %d: %s is not needed for %s", name, seed, s.View().TaskUID(v), s.View().Jobs.At(j).UID)
				require.NoError(t, s.Rollback(mark))
				require.NotEmpty(t, answer.Victims[i].Plugins)
				own := s.View().QueueOf(v) == s.View().Jobs.At(j).Queue
				require.Equal(t, own, answer.Victims[i].Own)
				require.True(t, means == plan.ByAny || own == (means == plan.ByPreempt))
			}
		}
	})
	t.Log(made, "plans with", victims, "victims")
	require.Greater(t, victims, *enginetest.Runs/2)
}

// twin finds the fewest victims of any plan by trying every set of victims and every choice of nodes; -1 if there is no plan.
type twin struct {
	s     *engine.Session
	job   model.JobID
	tasks []model.TaskID
	pool  []model.TaskID
	// means, if stated, is obeyed where nothing is evicted, and won are the victims of the plan that was found.
	means plan.Means
	won   []model.TaskID
}

func (w *twin) fewest() int {
	for size := 0; size <= len(w.pool); size++ {
		if w.sets(size, 0, nil) {
			return size
		}
	}
	return -1
}

func (w *twin) sets(size, from int, chosen []model.TaskID) bool {
	if size == 0 {
		return w.places(chosen, make([]model.NodeID, 0, len(w.tasks)))
	}
	for i := from; i < len(w.pool); i++ {
		if w.sets(size-1, i+1, append(slices.Clone(chosen), w.pool[i])) {
			return true
		}
	}
	return false
}

func (w *twin) places(chosen []model.TaskID, nodes []model.NodeID) bool {
	if len(nodes) == len(w.tasks) {
		mark := w.s.Mark()
		ok := w.enters() && (w.means == 0 || len(chosen) > 0 || !w.s.IsOverused(w.s.View().Jobs.At(w.job).Queue, nil)) &&
			w.plays(chosen, nodes)
		if err := w.s.Rollback(mark); err != nil {
			panic(err)
		}
		w.won = chosen
		return ok
	}
	v := w.s.View()
	for n := range model.NodeID(len(v.Nodes)) {
		// Room by plain sums.
		all := true
		for d, asked := range v.Request(w.tasks[len(nodes)]).V {
			left := v.Nodes[n].Allocatable.V[d] - v.Used(n).V[d]
			for t := range model.TaskID(v.Tasks.Len()) {
				if slices.Contains(chosen, t) && v.NodeOf(t) == n || v.Status(t) == model.Releasing && v.NodeOf(t) == n {
					left += v.Request(t).V[d]
				}
			}
			for i, other := range nodes {
				if other == n {
					left -= v.Request(w.tasks[i]).V[d]
				}
			}
			all = all && asked <= left
		}
		if all && w.places(chosen, append(slices.Clone(nodes), n)) {
			return true
		}
	}
	return false
}

// enters admits the job if it waits for that.
func (w *twin) enters() bool {
	return w.s.View().Phase(w.job) != model.PhasePending || w.s.Job(w.job).Enqueue(nil)
}

// plays applies victims and placements task by task as a scheduler would that evicts for each task on its node.
func (w *twin) plays(chosen []model.TaskID, nodes []model.NodeID) bool {
	v := w.s.View()
	if slices.ContainsFunc(chosen, func(c model.TaskID) bool { return !w.needs(c, chosen, nodes) }) {
		return false
	}
	left := slices.Clone(chosen)
	var elsewhere []model.TaskID
	for _, c := range left {
		if !slices.Contains(nodes, v.NodeOf(c)) {
			elsewhere = append(elsewhere, c)
		}
	}
	if w.s.Reclaim().Plans() {
		return w.playsAtOnce(chosen, nodes)
	}
	var groups [][]model.TaskID
	for i := range w.tasks {
		var group []model.TaskID
		if i == 0 {
			group = elsewhere
		}
		for _, c := range left {
			if v.NodeOf(c) == nodes[i] {
				group = append(group, c)
			}
		}
		left = slices.DeleteFunc(left, func(c model.TaskID) bool { return slices.Contains(group, c) })
		groups = append(groups, group)
	}
	order := []int{}
	for i := range groups {
		if len(groups[i]) > 0 {
			order = append(order, i)
		}
	}
	for i := range groups {
		if len(groups[i]) == 0 {
			order = append(order, i)
		}
	}
	for _, i := range order {
		t := w.tasks[i]
		if !w.evicts(t, groups[i]) || !w.s.Allocatable([]model.TaskID{t}, policy.InSession, nil, nil) || !w.s.Nodes().Fits(t, nodes[i], nil) {
			return false
		}
		w.s.Host().Book(t, model.Allocated, nodes[i])
	}
	return w.s.Job(w.job).Ready(nil)
}

// needs reports whether a node, or a limit, lacks a victim.
func (w *twin) needs(c model.TaskID, chosen []model.TaskID, nodes []model.NodeID) bool {
	v := w.s.View()
	n := v.NodeOf(c)
	mark := w.s.Mark()
	for _, other := range chosen {
		if other != c {
			w.s.Host().Unbook(other, model.Pending)
		}
	}
	needed := !w.s.Allocatable(w.tasks, policy.InSession, nil, nil)
	for i, t := range w.tasks {
		if nodes[i] == n {
			needed = needed || !hasRoom(w.s, t, n, true) || !w.s.Nodes().Fits(t, n, nil)
			w.s.Host().Book(t, model.Allocated, n)
		}
	}
	if err := w.s.Rollback(mark); err != nil {
		panic(err)
	}
	return needed
}

func (w *twin) evicts(t model.TaskID, group []model.TaskID) bool {
	var own, others []model.TaskID
	for _, c := range group {
		if w.s.View().QueueOf(c) == w.s.View().QueueOf(t) {
			own = append(own, c)
		} else {
			others = append(others, c)
		}
	}
	if !inSomeOrder(own, nil, func(list []model.TaskID) bool {
		return len(w.s.Preempt().Choose(&policy.Claim{Tasks: []model.TaskID{t}, Candidates: list}, false).Victims) == len(list)
	}) {
		return false
	}
	for _, c := range own {
		w.s.Host().Unbook(c, model.Pending)
	}
	if len(others) > 0 && (!w.s.Preemptive([]model.TaskID{t}, nil, nil) || !inSomeOrder(others, nil, func(list []model.TaskID) bool {
		return len(w.s.Reclaim().Choose(&policy.Claim{Tasks: []model.TaskID{t}, Candidates: list}, false).Victims) == len(list)
	})) {
		return false
	}
	for _, c := range others {
		w.s.Host().Unbook(c, model.Pending)
	}
	return true
}

// inSomeOrder reports whether a condition holds for some order of a list, after the items in taken.
func inSomeOrder(list, taken []model.TaskID, holds func([]model.TaskID) bool) bool {
	if len(list) == 0 {
		return holds(taken)
	}
	for i, t := range list {
		rest := slices.Delete(slices.Clone(list), i, i+1)
		if inSomeOrder(rest, append(slices.Clone(taken), t), holds) {
			return true
		}
	}
	return false
}

// playsAtOnce evicts tasks of the own queue for the first task on their node, and those of others at once. The potential must not rise where
// tasks of the own queue go.
func (w *twin) playsAtOnce(chosen []model.TaskID, nodes []model.NodeID) bool {
	var others []model.TaskID
	own := make([][]model.TaskID, len(nodes))
	for _, c := range chosen {
		at := max(slices.Index(nodes, w.s.View().NodeOf(c)), 0)
		if w.s.View().QueueOf(c) == w.s.View().QueueOf(w.tasks[0]) {
			own[at] = append(own[at], c)
		} else {
			others = append(others, c)
		}
	}
	before := potentialOf(w.s)
	for i, group := range own {
		if !w.evicts(w.tasks[i], group) {
			return false
		}
	}
	if len(others) > 0 {
		choice := w.s.Reclaim().Choose(&policy.Claim{
			Tasks: w.tasks, Candidates: others, Room: policy.Room{Kind: policy.GivenNodes, Nodes: nodes},
		}, false)
		if choice.Plan == nil || !choice.Plan.Made || len(choice.Plan.Victims) < len(others) {
			return false
		}
	}
	for _, c := range others {
		w.s.Host().Unbook(c, model.Pending)
	}
	if !w.s.Allocatable(w.tasks, policy.InSession, nil, nil) {
		return false
	}
	for i, t := range w.tasks {
		if !w.s.Nodes().Fits(t, nodes[i], nil) {
			return false
		}
		w.s.Host().Book(t, model.Allocated, nodes[i])
	}
	return w.s.Job(w.job).Ready(nil) && (len(others) == len(chosen) || w.calm(before, len(others) > 0))
}

// calm reports whether the potential has not risen, or has fallen where it must.
func (w *twin) calm(before *[3]*big.Rat, falls bool) bool {
	for i, is := range potentialOf(w.s) {
		if c := is.Cmp(before[i]); c != 0 {
			return c < 0
		}
	}
	return !falls
}

func TestPlansHaveTheFewestVictimsThatAnExhaustiveSearchFinds(t *testing.T) {
	requireFewestVictims(t, enginetest.EachJob)
}

func TestPlansBesideReservationsHaveTheFewestVictimsThatAnExhaustiveSearchFinds(t *testing.T) {
	requireFewestVictims(t, enginetest.EachReservedJob)
}

func requireFewestVictims(t *testing.T, each func(require.TestingT, int, func(string, uint64, *engine.Session, model.JobID))) {
	t.Helper()
	asked, missed, more, least := 0, 0, 0, 0
	each(t, *enginetest.Runs/3, func(name string, seed uint64, s *engine.Session, j model.JobID) {
		for _, means := range []plan.Means{plan.ByReclaim, plan.ByPreempt} {
			if name == "fair" && means == plan.ByPreempt {
				continue
			}
			made := ask(t, s, j, means)
			if len(made.Tasks) > 3 || made.Miss != nil && made.Miss.Check != judge.CheckNodes && made.Miss.Check != judge.CheckEviction {
				continue
			}
			w := twin{s: s, job: j, tasks: made.Tasks}
			if len(made.Tasks) > 0 {
				var err error
				by := s.Reclaim()
				if means == plan.ByPreempt {
					by = s.Preempt()
				}
				w.pool, err = by.Candidates(made.Tasks[0])
				require.NoError(t, err)
			}
			if len(w.pool) > 10 || !s.Job(j).Starving(nil) || means == plan.ByReclaim && s.IsOverused(s.View().Jobs.At(j).Queue, nil) {
				continue
			}
			fewest := w.fewest()
			if fewest < 0 {
				// A plan that the twin does not find gives victims to other tasks than the first on their node.
				continue
			}
			asked++
			switch {
			case made.Outcome != plan.Made:
				missed++
				t.Log("missed", name, seed, s.View().Jobs.At(j).UID, means, fewest, fmt.Sprintf("%+v", made.Miss), made.Outcome)
				require.Equal(t, plan.NotFound, made.Outcome)
			case len(made.Victims) > fewest:
				more++
				t.Log("more", name, seed, s.View().Jobs.At(j).UID, means, len(made.Victims), fewest)
				require.False(t, made.Least)
			case made.Least:
				least++
			}
		}
	})
	t.Logf("%d plans: %d missed, %d with more victims than the least, %d said to have the least", asked, missed, more, least)
	require.Less(t, 100*missed, max(asked, 100))
	require.Less(t, 20*more, max(asked, 20))
}

// TestAQuickPlanIsAPlan checks that a plan which was asked for without the costly parts can be carried out, and that the whole search finds one
// with as few victims.
func TestAQuickPlanIsAPlan(t *testing.T) {
	enginetest.EachJob(t, 200, func(name string, seed uint64, s *engine.Session, j model.JobID) {
		for _, means := range []plan.Means{plan.PlaceOnly, plan.ByReclaim, plan.ByPreempt, plan.ByAny} {
			quick, err := plan.For(s, &plan.Question{Job: j, Means: means, Quick: true})
			require.NoError(t, err)
			whole := ask(t, s, j, means)
			if quick.Outcome != plan.Made {
				require.True(t, whole.Outcome != plan.Made || len(whole.Victims) > 0, "%s, seed %d, job %d", name, seed, j)
				continue
			}
			require.Equal(t, plan.Made, whole.Outcome, "%s, seed %d, job %d", name, seed, j)
			require.LessOrEqual(t, len(whole.Victims), len(quick.Victims), "%s, seed %d, job %d", name, seed, j)
			mark := s.Mark()
			require.True(t, carry(s, quick, model.None), "%s, seed %d, job %d", name, seed, j)
			require.NoError(t, s.Rollback(mark))
		}
	})
}
