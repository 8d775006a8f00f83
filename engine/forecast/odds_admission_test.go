package forecast_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/forecast"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/overcommit"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// TestAForecastHeedsAdmission has two nodes of 4 cores: a job of 4 runs until 300, another until 900, a gang of 8 is admitted and waits,
// and a job of 1 is not. It starts when the first job ends, or where it may not be promised a place, after the gang.
func TestAForecastHeedsAdmission(t *testing.T) {
	for story, test := range map[string]struct {
		plugins engine.Tier
		start   int64
		// placed is the task that the session places, because the job of 900 has not been yet.
		placed bool
	}{
		"much may be promised":                    {engine.Tier{{Plugin: overcommit.Plugin{Factor: 2.2}}}, 300, false},
		"little may be promised":                  {engine.Tier{{Plugin: overcommit.Plugin{Factor: 1.5}}}, 1400, false},
		"the queue has promised it all":           {engine.Tier{{Plugin: overcommit.Plugin{Factor: 2.2}}, {Plugin: proportion.Plugin{}}}, 1400, false},
		"no plugin takes part in it":              {nil, 300, false},
		"what the session has placed is used":     {engine.Tier{{Plugin: overcommit.Plugin{Factor: 1.5}}}, 1400, true},
		"what it has placed is not promised, too": {engine.Tier{{Plugin: overcommit.Plugin{Factor: 2.2}}}, 300, true},
	} {
		t.Run(story, func(t *testing.T) {
			b := model.NewBuilder(oddsNow * 1_000_000_000)
			b.Dimensions([]string{"cpu", "memory"})
			for n := range 2 {
				b.Node(model.NodeSpec{Name: fmt.Sprint("n", n), Allocatable: enginetest.Amounts(4, 0)})
			}
			b.Queue(model.QueueSpec{Name: "a", Weight: 1, Reclaimable: true})
			for i, j := range []struct {
				tasks, cores int
				end          int64
				phase        model.Phase
			}{{1, 4, 300, model.PhaseRunning}, {1, 4, 900, model.PhaseRunning}, {2, 4, 0, model.PhaseInqueue}, {1, 1, 0, model.PhasePending}} {
				spec := model.JobSpec{
					UID: fmt.Sprint("j", i), Queue: "a", MinAvailable: uint32(j.tasks), MinResources: enginetest.Amounts(j.tasks*j.cores, 0), Phase: j.phase,
					CreateTime: int64(oddsNow-2000+i) * 1_000_000_000,
				}
				if j.end > 0 {
					spec.ExpectedEnd = (oddsNow + j.end) * 1_000_000_000
				}
				b.Job(spec)
				b.Group(model.GroupSpec{Request: enginetest.Amounts(j.cores, 0)})
				for k := range j.tasks {
					task := model.TaskSpec{UID: fmt.Sprint("j", i, "-", k), Node: model.None, Index: int32(k)}
					if j.end > 0 && !(test.placed && i == 1) {
						task.Node, task.Status = model.NodeID(i), model.Running
					}
					b.Task(&task)
				}
			}
			m, err := b.Build()
			require.NoError(t, err)
			s, err := engine.Open(m, engine.Policy{Tiers: []engine.Tier{{{Plugin: gang.Plugin{}}}, test.plugins}}, nil)
			require.NoError(t, err)
			if test.placed {
				require.NoError(t, s.Allocate(1, 1))
			}
			found, err := forecast.ByChance(s, pastOf(s, &forecast.OddsQuestion{Job: 3}, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500))
			require.NoError(t, err)
			require.Equal(t, test.start, found.Percentile(50))
		})
	}
}
