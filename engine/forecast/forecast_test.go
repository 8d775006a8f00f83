package forecast_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/forecast"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// startsWithout is the plain twin of a forecast's question: the cluster is built anew without some jobs, and a plan is asked for that
// evicts no task; a job without tasks is asked whether it may enter its queue.
func startsWithout(t require.TestingT, seed uint64, p engine.Policy, uid string, ended []string) bool {
	s, err := engine.Open(enginetest.EndingCluster(t, seed, func(uid string) bool { return slices.Contains(ended, uid) }), p, nil)
	require.NoError(t, err)
	j, ok := s.View().Job(uid)
	require.True(t, ok)
	if s.View().Account(j).AllTasks() == 0 {
		return s.Job(j).Enqueue(nil)
	}
	found, err := plan.For(s, &plan.Question{Job: j, Means: plan.PlaceOnly})
	require.NoError(t, err)
	return found.Outcome == plan.Made
}

func TestForecastsAreThoseOfAWalkThroughAllEnds(t *testing.T) {
	outcomes := map[forecast.Outcome]int{}
	ends := 0
	for i := range *enginetest.Runs / 5 {
		seed := *enginetest.Seed + uint64(i)
		for name, p := range enginetest.Policies() {
			if name == "tree" {
				continue
			}
			s, err := engine.Open(enginetest.EndingCluster(t, seed, func(string) bool { return false }), p, nil)
			require.NoError(t, err)
			v := s.View()
			for _, j := range s.Waiting() {
				f, err := forecast.For(s, j)
				require.NoError(t, err)
				again, err := forecast.For(s, j)
				require.NoError(t, err)
				require.Equal(t, f, again, "the same question has the same answer")
				if f == nil {
					continue
				}
				where := fmt.Sprintf("%s %d %s", name, seed, v.Jobs.At(j).UID)
				outcomes[f.Outcome]++
				ends += len(f.Ends)
				requireForecast(t, s, j, f, where, func(ended []string) bool {
					return startsWithout(t, seed, p, v.Jobs.At(j).UID, ended)
				})
			}
		}
	}
	t.Log(outcomes, "forecasts, resting on", ends, "ends")
	for _, outcome := range []forecast.Outcome{forecast.StartsNow, forecast.StartsAt, forecast.NotForeseen} {
		require.Greater(t, outcomes[outcome], *enginetest.Runs/30)
	}
}

// requireForecast walks through all ends and compares what a forecast says.
func requireForecast(
	t *testing.T, s *engine.Session, j model.JobID, f *forecast.Forecast, where string, starts func(ended []string) bool,
) {
	t.Helper()
	v := s.View()
	require.False(t, f.CutShort, where)
	var running []model.JobID
	unknown := 0
	for k := range model.JobID(v.Jobs.Len()) {
		switch end := v.Jobs.At(k).ExpectedEnd; {
		case k == j || v.Account(k).Holding() == 0:
		case end > v.AsOf:
			running = append(running, k)
		default:
			unknown++
		}
	}
	require.Equal(t, unknown, len(f.Unknown)+len(f.Overdue), where)
	slices.SortFunc(running, func(l, r model.JobID) int { return cmp.Compare(v.Jobs.At(l).ExpectedEnd, v.Jobs.At(r).ExpectedEnd) })
	at, ended := int64(0), []string(nil)
	found := starts(nil)
	for i, k := range running {
		if found {
			break
		}
		ended = append(ended, v.Jobs.At(k).UID)
		at = v.Jobs.At(k).ExpectedEnd
		if i+1 == len(running) || v.Jobs.At(running[i+1]).ExpectedEnd > at {
			found = starts(ended)
		}
	}
	switch {
	case !found:
		require.Equal(t, forecast.NotForeseen, f.Outcome, where)
		return
	case len(ended) == 0:
		require.Equal(t, forecast.StartsNow, f.Outcome, where)
		return
	}
	require.Equal(t, forecast.StartsAt, f.Outcome, where)
	require.True(t, f.Earliest)
	require.Equal(t, at, f.At, where)
	var rests []string
	for _, k := range f.Ends {
		require.LessOrEqual(t, v.Jobs.At(k).ExpectedEnd, at)
		rests = append(rests, v.Jobs.At(k).UID)
	}
	require.True(t, starts(rests), where)
	replaced := func(end string) bool {
		return starts(slices.DeleteFunc(slices.Clone(ended), func(uid string) bool { return uid == end }))
	}
	require.Equal(t, !slices.ContainsFunc(rests, replaced), f.Minimal, where)
	for i := range rests {
		require.False(t, starts(slices.Delete(slices.Clone(rests), i, i+1)), "%s does without the end of %s", where, rests[i])
	}
}

// TestAForecastIsNotMinimalWhereOneOfTwoEndsSuffices lets two jobs end at once, of which either leaves the room that a third waits for.
func TestAForecastIsNotMinimalWhereOneOfTwoEndsSuffices(t *testing.T) {
	for _, needed := range []int{1, 2} {
		b := model.NewBuilder(0)
		b.Dimensions([]string{"cpu", "gpu"})
		b.Queue(model.QueueSpec{Name: "a", Weight: 1})
		for n := range 2 {
			b.Node(model.NodeSpec{Name: fmt.Sprint("n", n), Allocatable: enginetest.Amounts(4, 0)})
			b.Job(model.JobSpec{UID: fmt.Sprint("r", n), Queue: "a", Phase: model.PhaseRunning, MinAvailable: 1, ExpectedEnd: 100})
			b.Group(model.GroupSpec{Request: enginetest.Amounts(4, 0)})
			b.Task(&model.TaskSpec{UID: fmt.Sprint("r", n), Status: model.Running, Node: model.NodeID(n), Index: -1})
		}
		b.Job(model.JobSpec{UID: "waits", Queue: "a", Phase: model.PhaseInqueue, MinAvailable: uint32(needed)})
		b.Group(model.GroupSpec{Request: enginetest.Amounts(4, 0)})
		for k := range needed {
			b.Task(&model.TaskSpec{UID: fmt.Sprint("waits-", k), Node: model.None, Index: -1})
		}
		m, err := b.Build()
		require.NoError(t, err)
		s, err := engine.Open(m, enginetest.Policies()["proportion"], nil)
		require.NoError(t, err)
		j, _ := m.Job("waits")
		f, err := forecast.For(s, j)
		require.NoError(t, err)
		require.Len(t, f.Ends, needed)
		require.Equal(t, needed == 2, f.Minimal)
	}
}

// TestAForecastOfManyEndsIsFoundByBisection lets jobs of one core end one after the other on 40 nodes, of which a gang needs some whole.
func TestAForecastOfManyEndsIsFoundByBisection(t *testing.T) {
	const nodes, each = 40, 4
	b := model.NewBuilder(0)
	b.Dimensions([]string{"cpu", "gpu"})
	for n := range nodes {
		b.Node(model.NodeSpec{Name: fmt.Sprintf("n%02d", n), Allocatable: enginetest.Amounts(each, 0)})
	}
	b.Queue(model.QueueSpec{Name: "a", Weight: 1})
	b.Queue(model.QueueSpec{Name: "b", Weight: 1})
	for i := range nodes * each {
		b.Job(model.JobSpec{
			UID: fmt.Sprintf("r%03d", i), Queue: "a", Phase: model.PhaseRunning,
			MinAvailable: 1, ExpectedEnd: int64(100 + i),
		})
		b.Group(model.GroupSpec{Request: enginetest.Amounts(1, 0)})
		b.Task(&model.TaskSpec{UID: fmt.Sprintf("r%03d", i), Status: model.Running, Node: model.NodeID(i % nodes), Index: -1})
	}
	b.Job(model.JobSpec{UID: "gang", Queue: "b", Phase: model.PhaseInqueue, MinAvailable: 2})
	b.Group(model.GroupSpec{Request: enginetest.Amounts(each, 0)})
	for k := range 2 {
		b.Task(&model.TaskSpec{UID: fmt.Sprintf("gang-%d", k), Node: model.None, Index: -1})
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, enginetest.Policies()["proportion"], nil)
	require.NoError(t, err)
	j, _ := m.Job("gang")
	f, err := forecast.For(s, j)
	require.NoError(t, err)
	require.Equal(t, forecast.StartsAt, f.Outcome)
	require.False(t, f.Earliest, "not every earlier end was tried")
	// The last task of node 0 is the 120th to end; the last task of node 1 ends after it.
	require.Equal(t, int64(100+3*nodes+1), f.At)
	require.True(t, f.Minimal)
	require.Len(t, f.Ends, 2*each, "all tasks of two nodes")
	for _, k := range f.Ends {
		require.LessOrEqual(t, int(k)%nodes, 1)
	}
	require.False(t, f.CutShort)
}
