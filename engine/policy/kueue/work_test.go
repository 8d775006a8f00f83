package kueue_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/kueue"
)

// deep returns two queues below a chain of cohorts. One borrows all that the other one has, and workloads wait in that.
func deep(cohorts, holding, pending int) *kueue.Cluster {
	c := &kueue.Cluster{Flavors: []kueue.Flavor{{Name: "f"}}}
	for i := range cohorts {
		above := kueue.Cohort{Name: fmt.Sprint("c", i), Weight: 1}
		if i > 0 {
			above.Parent = fmt.Sprint("c", i-1)
		}
		c.Cohorts = append(c.Cohorts, above)
	}
	lowest := fmt.Sprint("c", cohorts-1)
	c.Queues = []kueue.Queue{queue("me", lowest, kueue.Amount(holding)*500), queue("other", lowest, kueue.Amount(holding)*500)}
	for i := range holding {
		c.Workloads = append(c.Workloads, running(fmt.Sprint("r", i), "other", 1000))
	}
	for i := range pending {
		c.Workloads = append(c.Workloads, waiting(fmt.Sprint("p", i), "me", kueue.Amount(holding)*500))
	}
	return c
}

// TestAQuestionThatCostsMoreThanItMayChangesNothing asks with all the work that the answer takes, and with less.
func TestAQuestionThatCostsMoreThanItMayChangesNothing(t *testing.T) {
	const holding, pending = 50, 3
	for _, fair := range []bool{false, true} {
		c := deep(40, holding, pending)
		b := model.NewBuilder(0)
		for i := range c.Queues {
			b.Queue(model.QueueSpec{Name: c.Queues[i].Name})
		}
		for i := range c.Workloads {
			b.Job(model.JobSpec{UID: c.Workloads[i].UID, Queue: c.Workloads[i].Queue, Phase: model.PhasePending})
		}
		m, err := b.Build()
		require.NoError(t, err)
		plugin := kueue.Plugin{Settings: kueue.Default(), Cluster: func(*model.Model) (*kueue.Cluster, error) { return c, nil }}
		plugin.Fair = fair
		view := policy.NewView(m, nil)
		view.Work = policy.NewWork(policy.DefaultWork)
		opened, err := plugin.Open(view)
		require.NoError(t, err)
		state, ok := opened.(*kueue.State)
		require.True(t, ok)
		ask := func() (victims int, decisions int) {
			n, judged := state.Judge(holding)
			require.True(t, judged)
			return len(n.Victims), len(state.Cycle())
		}
		before := state.Accounts(0)
		opening := view.Work.Spent()
		victims, decisions := ask()
		require.NoError(t, view.Work.Exceeded())
		require.Positive(t, victims)
		require.Equal(t, 1, decisions)
		needed := view.Work.Spent() - opening
		for _, part := range []int64{0, 1, 10, 50, 90, 99} {
			*view.Work = *policy.NewWork(needed * part / 100)
			ask()
			require.Error(t, view.Work.Exceeded(), "%d %% of the work, fair %v", part, fair)
			*view.Work = *policy.NewWork(policy.DefaultWork)
			require.Equal(t, before, state.Accounts(0), "nothing stays assumed")
			*view.Work = *policy.NewWork(needed)
			again, _ := ask()
			require.NoError(t, view.Work.Exceeded())
			require.Equal(t, victims, again)
		}
	}
}
