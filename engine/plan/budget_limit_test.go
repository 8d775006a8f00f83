package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/explain"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// TestABudgetThatActsAsALimitStopsNoReclaimWithinTheEntitlement: queues a and b are below p, whose hard budget pays for some cores of the 8 of
// the cluster, and b runs tasks on 4 of them. A job of a waits for one core, which no budget keeps from it that its queue is entitled to. Where
// no plan serves it, it does not enter either.
func TestABudgetThatActsAsALimitStopsNoReclaimWithinTheEntitlement(t *testing.T) {
	for name, c := range map[string]struct {
		// p and own are the cores that the budgets of p and of a pay for; -1: there is none.
		p, own int
		// more are the tasks of another job of a that waits, which p cannot all have.
		more, victims int
		none          bool
	}{
		"p may have what b has":                  {p: 4, own: -1, more: 9, victims: 1},
		"p may have less than b has":             {p: 3, own: -1, more: 9, victims: 2},
		"the budget of p pays for more than all": {p: 99, own: -1, more: 9},
		"a has a budget, too":                    {p: 5, own: 2, more: 9, victims: 0},
		"a has a budget, too, and p is full":     {p: 4, own: 2, more: 9, victims: 1},
		"b keeps the task of grace":              {p: 4, own: -1, none: true},
		"the budget of a is used up":             {p: 4, own: 0, more: 9, none: true},
	} {
		for _, phase := range []model.Phase{model.PhasePending, model.PhaseInqueue} {
			t.Run(fmt.Sprint(name, ", phase ", phase), func(t *testing.T) {
				s := enginetest.Opened(t, engine.Entry{Plugin: fair.Plugin{}}, func(b *model.Builder) {
					b.Memory(&model.MemorySpec{EpochSeconds: enginetest.EpochOfBudgets, HalfLife: 28})
					b.Node(model.NodeSpec{Name: "n", Allocatable: enginetest.Cores(8)})
					queue := func(name, parent string, pays int) {
						spec := model.QueueSpec{Name: name, Parent: parent, Weight: 1, Reclaimable: true}
						if pays >= 0 {
							spec.Memory = &model.QueueMemorySpec{Budget: enginetest.BudgetFor(enginetest.Cores(pays))}
						}
						b.Queue(spec)
					}
					queue("p", "", c.p)
					queue("a", "p", c.own)
					queue("b", "p", -1)
					b.Job(model.JobSpec{UID: "runs", Queue: "b", Phase: model.PhaseRunning})
					b.Group(model.GroupSpec{Request: enginetest.Cores(1)})
					for k := range 4 {
						b.Task(&model.TaskSpec{UID: fmt.Sprint("b", k), Status: model.Running, Node: 0, Index: -1, Preemptable: true})
					}
					b.Job(model.JobSpec{UID: "waits", Queue: "a", Phase: phase, MinAvailable: 1, MinResources: enginetest.Cores(1)})
					b.Group(model.GroupSpec{Request: enginetest.Cores(1)})
					b.Task(&model.TaskSpec{UID: "w", Node: model.None, Index: -1})
					b.Job(model.JobSpec{UID: "more", Queue: "a", Phase: model.PhasePending, CreateTime: 1})
					b.Group(model.GroupSpec{Request: enginetest.Cores(1)})
					for k := range c.more {
						b.Task(&model.TaskSpec{UID: fmt.Sprint("m", k), Node: model.None, Index: -1})
					}
				})
				j, _ := s.View().Job("waits")
				made := ask(t, s, j, plan.ByAny)
				if phase == model.PhasePending {
					// Where more is held than a limit nothing enters.
					enters := !c.none && c.p >= 4
					require.Equal(t, enters, s.Job(j).Enqueue(nil))
					if !enters {
						require.Equal(t, judge.CheckAdmission, made.Miss.Check)
						return
					}
				}
				require.Equal(t, !c.none, made.Outcome == plan.Made, "%+v", made.Miss)
				require.Len(t, made.Victims, c.victims)
				require.Equal(t, c.victims > 0, evictable(explained(t, s, j)) > 0)
			})
		}
	}
}

// evictable counts the tasks that an explanation says could be evicted.
func evictable(e *explain.Explanation) (tasks int) {
	for i := range e.Findings {
		if e.Findings[i].Check == judge.CheckEviction {
			tasks += len(e.Findings[i].Tasks)
		}
	}
	return tasks
}
