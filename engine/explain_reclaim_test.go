package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/conformance"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/priority"
	"github.com/apportion/apportion/engine/policy/proportion"
)

// crowdedCluster is a full node with running jobs, and waiting jobs, in three queues, two of them below a fourth. Tasks ask for cores, for
// devices or for both.
func crowdedCluster(t *rapid.T) *model.Model {
	cpu := func(x int) *model.Amounts {
		return &model.Amounts{Dimension: []uint32{0}, Amount: []float64{float64(1000 * x)}}
	}
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "gpu"})
	queues := []string{"a", "b", "c"}
	parents := map[string]string{"a": "above", "b": "above", "c": "root"}
	b.Queue(model.QueueSpec{Name: "root", Weight: 1})
	deserved := func() *model.Amounts { return cpu(rapid.IntRange(1, 8).Draw(t, "deserved")) }
	b.Queue(model.QueueSpec{Name: "above", Parent: "root", Weight: 1, Deserved: deserved(), Reclaimable: true})
	for _, name := range queues {
		b.Queue(model.QueueSpec{
			Name: name, Parent: parents[name], Weight: rapid.Uint32Range(1, 3).Draw(t, "weight"), Deserved: deserved(), Reclaimable: true,
		})
	}
	request := func() *model.Amounts {
		amounts := &model.Amounts{}
		asked := rapid.IntRange(1, 3).Draw(t, "asked")
		for d := range uint32(2) {
			if asked>>d&1 == 1 {
				amounts.Dimension = append(amounts.Dimension, d)
				amounts.Amount = append(amounts.Amount, float64(1000*rapid.IntRange(1, 2).Draw(t, "request")))
			}
		}
		return amounts
	}
	b.Node(model.NodeSpec{Name: "n", Allocatable: &model.Amounts{Dimension: []uint32{0, 1}, Amount: []float64{12_000, 12_000}}})
	for i := range rapid.IntRange(6, 14).Draw(t, "jobs") {
		runs := i < 4
		spec := model.JobSpec{
			UID: fmt.Sprint("j", i), Queue: rapid.SampledFrom(queues).Draw(t, "queue"), Phase: model.PhaseInqueue,
			MinAvailable: rapid.Uint32Range(0, 2).Draw(t, "minimum"), Priority: rapid.Int32Range(0, 2).Draw(t, "priority"),
		}
		task := model.TaskSpec{Node: model.None, Index: -1, Preemptable: true}
		if runs {
			spec.Phase, task.Node, task.Status = model.PhaseRunning, 0, model.Running
		}
		b.Job(spec)
		for k := range rapid.IntRange(1, 3).Draw(t, "tasks") {
			b.Group(model.GroupSpec{Role: fmt.Sprint(k), Request: request()})
			task.UID = fmt.Sprint("j", i, "-", k)
			b.Task(&task)
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	return m
}

// TestVictimsOfAQueueAreChosenOnceForAllItsClaimants compares with a choice for each claimant.
func TestVictimsOfAQueueAreChosenOnceForAllItsClaimants(t *testing.T) {
	victims := 0
	rapid.Check(t, func(t *rapid.T) {
		dividing := rapid.SampledFrom([]engine.Entry{{Plugin: proportion.Plugin{}}, {Plugin: capacity.Plugin{}}}).Draw(t, "plugin")
		tiers := []engine.Tier{{{Plugin: priority.Plugin{}}, {Plugin: gang.Plugin{}}, {Plugin: conformance.Plugin{}}}, {dividing}}
		if rapid.Bool().Draw(t, "one tier") {
			tiers = []engine.Tier{append(tiers[0], dividing)}
		}
		s, err := engine.Open(crowdedCluster(t), engine.Policy{Walk: engine.Volcano, Tiers: tiers}, nil)
		require.NoError(t, err)
		var once, plainly []*engine.Explanation
		waiting := s.Waiting()
		require.NoError(t, s.Explain(waiting, true, func(e *engine.Explanation) error {
			once = append(once, e)
			return nil
		}))
		require.NoError(t, s.ExplainPlainly(waiting, true, func(e *engine.Explanation) error {
			plainly = append(plainly, e)
			return nil
		}))
		require.Equal(t, plainly, once)
		for _, e := range once {
			for _, f := range e.Findings {
				victims += len(f.Tasks)
			}
		}
	})
	require.Positive(t, victims)
}
