package pdb_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/pdb"
	"github.com/apportion/apportion/engine/policy/policytest"
)

// open returns a cluster with budgets one (1 eviction allowed), two (2) and none, and tasks by the budgets that select them.
func open(t *testing.T) (*policy.View, *pdb.State) {
	t.Helper()
	b := model.NewBuilder(0)
	for name, allowed := range map[string]int32{"one": 1, "two": 2, "none": -3} {
		b.DisruptionBudget(model.DisruptionBudget{Namespace: "team", Name: name, Allowed: allowed})
	}
	b.Queue(model.QueueSpec{Name: "q"})
	b.Job(model.JobSpec{UID: "j", Namespace: "team", Queue: "q"})
	b.Group(model.GroupSpec{})
	for _, task := range []struct {
		uid     string
		budgets []string
	}{
		{"a1", []string{"one"}},
		{"a2", []string{"one"}},
		{"b1", []string{"two"}},
		{"b2", []string{"two"}},
		{"b3", []string{"two"}},
		{"both", []string{"one", "two"}},
		{"shut", []string{"none"}},
		{"free", nil},
		{"bare", nil},
	} {
		spec := model.TaskSpec{UID: task.uid, Node: model.None, Status: model.Running, Detail: &model.Detail{Unlabelled: task.uid == "bare"}}
		if task.budgets != nil {
			spec.Rare = &model.RareSpec{Budgets: task.budgets}
		}
		b.Task(&spec)
	}
	m, err := b.Build()
	require.NoError(t, err)
	v := policy.NewView(m, nil)
	s, err := pdb.Plugin{}.Open(v)
	require.NoError(t, err)
	return v, s.(*pdb.State)
}

func TestBudgetsAreCountedDownInTheOrderOfTheCandidates(t *testing.T) {
	v, s := open(t)
	budget := func(name string, limit float64) policy.Reason {
		return policy.Reason{Plugin: "pdb", Code: policy.DisruptionBudget, Queue: model.None, Dimension: -1, Limit: limit, Detail: name}
	}
	for name, c := range map[string]struct {
		candidates, want []string
		spared           map[string]policy.Reason
	}{
		"a budget allows so many":       {[]string{"a2", "a1"}, []string{"a2"}, map[string]policy.Reason{"a1": budget("one", 1)}},
		"no budget, no bound":           {[]string{"free"}, []string{"free"}, map[string]policy.Reason{}},
		"without labels it never goes":  {[]string{"bare"}, []string{}, map[string]policy.Reason{"bare": policy.Because("pdb", policy.Unlabelled, model.None)}},
		"below zero allows none":        {[]string{"shut"}, []string{}, map[string]policy.Reason{"shut": budget("none", 0)}},
		"two budgets must both allow":   {[]string{"a1", "both"}, []string{"a1"}, map[string]policy.Reason{"both": budget("one", 1)}},
		"a refused one is counted, too": {[]string{"a1", "both", "b1", "b2"}, []string{"a1", "b1"}, map[string]policy.Reason{"both": budget("one", 1), "b2": budget("two", 2)}},
		"nobody":                        {nil, []string{}, map[string]policy.Reason{}},
	} {
		for way, ask := range map[string]policy.VictimFunc{"reclaim": s.Reclaimable, "preempt": s.Preemptable} {
			chosen, spared := policytest.Victims(t, v, ask, "free", c.candidates...)
			require.ElementsMatch(t, c.want, chosen, "%s, %s", name, way)
			require.Equal(t, c.spared, spared, "%s, %s", name, way)
		}
	}
	require.Equal(t, policytest.TaskIDs(t, v, "a1", "b3", "free"), s.Shuffled(policytest.TaskIDs(t, v, "a1", "a2", "b3", "bare", "free"), nil))
}
