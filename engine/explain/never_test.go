package explain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/explain"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/internal/test/enginetest"
)

func TestWhatCanNeverRunIsSaidFirst(t *testing.T) {
	cpu := func(cores float64) *model.Amounts {
		return &model.Amounts{Dimension: []uint32{0}, Amount: []float64{1000 * cores}}
	}
	for name, test := range map[string]struct {
		// asks is what each of so many tasks asks for, minimum the minimum resources, in cores.
		tasks, phase  int
		asks, minimum float64
		set           string
		codes         []policy.Code
	}{
		"fits":                           {tasks: 1, phase: 1, asks: 4},
		"waits for room":                 {tasks: 1, phase: 1, asks: 8},
		"larger than any node":           {tasks: 1, phase: 1, asks: 9, codes: []policy.Code{policy.NodeTooSmall}},
		"on no node that it may use":     {tasks: 1, phase: 1, asks: 1, set: "none", codes: []policy.Code{policy.NodeNotInSet}},
		"too many for the nodes":         {tasks: 3, phase: 1, asks: 5, codes: []policy.Code{policy.AboveLimit, policy.NeverFits}},
		"larger than the cluster":        {tasks: 3, phase: 1, asks: 6, codes: []policy.Code{policy.AboveTotal, policy.AboveLimit, policy.NeverFits}},
		"larger than its queue":          {minimum: 15, codes: []policy.Code{policy.AboveRealCapability}},
		"larger than the cluster, alone": {minimum: 17, codes: []policy.Code{policy.AboveTotal, policy.AboveRealCapability}},
	} {
		t.Run(name, func(t *testing.T) {
			s := enginetest.Opened(t, engine.Entry{Plugin: proportion.Plugin{}}, func(b *model.Builder) {
				for _, n := range []string{"a", "b"} {
					b.Node(model.NodeSpec{Name: n, Allocatable: cpu(8)})
				}
				b.NodeSet(model.NodeSetSpec{Name: "none"})
				b.Queue(model.QueueSpec{Name: "q", Weight: 1, Capability: cpu(14)})
				b.Queue(model.QueueSpec{Name: "other", Weight: 1})
				job := model.JobSpec{UID: "j", Queue: "q", Phase: model.Phase(test.phase), MinAvailable: uint32(test.tasks)}
				if test.minimum > 0 {
					job.MinResources = cpu(test.minimum)
				}
				b.Job(job)
				if test.tasks > 0 {
					b.Group(model.GroupSpec{Request: cpu(test.asks), NodeSet: test.set})
				}
				for i := range test.tasks {
					b.Task(&model.TaskSpec{UID: string(rune('a' + i)), Node: model.None, Index: -1})
				}
				b.Job(model.JobSpec{UID: "runs", Queue: "other", Phase: model.PhaseRunning})
				b.Group(model.GroupSpec{Request: cpu(1)})
				for i := range 2 {
					b.Task(&model.TaskSpec{UID: string(rune('x' + i)), Node: model.NodeID(i), Status: model.Running, Index: -1})
				}
			})
			e := explainAll(t, s, 0)[0]
			var codes []policy.Code
			for i, f := range e.Findings {
				if f.Check == judge.CheckFeasibility {
					require.Equal(t, len(codes), i, "before all others")
					codes = append(codes, f.Reasons[0].Code)
				}
			}
			require.Equal(t, test.codes, codes)
			if codes != nil {
				require.Equal(t, explain.Blocked, e.Verdict)
				require.Zero(t, e.Blocking)
			}
		})
	}
}
