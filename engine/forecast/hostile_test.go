package forecast_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/forecast"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/engine/resource"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// hostileCluster has nodes with many reservations each, and a job that waits beside jobs that run.
func hostileCluster(t *testing.T, nodes, reservations int, stop func() bool) *engine.Session {
	t.Helper()
	b := model.NewBuilder(oddsNow * 1_000_000_000)
	b.Dimensions([]string{"cpu", "memory"})
	for n := range nodes {
		spec := model.NodeSpec{Name: fmt.Sprint("n", n), Allocatable: enginetest.Amounts(4, 0)}
		for r := range reservations {
			from := int64(oddsNow+3600*(r+1)+n) * 1_000_000_000
			spec.Reservations = append(spec.Reservations, model.ReservationSpec{From: from, Until: from + 60_000_000_000})
		}
		b.Node(spec)
	}
	b.Queue(model.QueueSpec{Name: "a", Weight: 1, Reclaimable: true})
	for j := range 20 {
		b.Job(model.JobSpec{UID: fmt.Sprint("j", j), Queue: "a", MinAvailable: 1, Phase: model.PhaseRunning, CreateTime: int64(oddsNow-2000+j) * 1_000_000_000})
		b.Group(model.GroupSpec{Request: enginetest.Amounts(4, 0)})
		task := model.TaskSpec{UID: fmt.Sprint("t", j), Node: model.None}
		if j < 19 {
			task.Node, task.Status = model.NodeID(j%nodes), model.Running
		}
		b.Task(&task)
	}
	m, err := b.Build()
	require.NoError(t, err)
	p := engine.Policy{Tiers: []engine.Tier{{{Plugin: gang.Plugin{}}}, {{Plugin: proportion.Plugin{}}}}}
	h, err := engine.OpenHost(m, p, stop, policy.NewWork(policy.DefaultWork))
	require.NoError(t, err)
	return h.Session
}

// hostileQuestion has as many kinds of past jobs as past jobs.
func hostileQuestion(s *engine.Session, kinds int) *forecast.OddsQuestion {
	q := &forecast.OddsQuestion{Job: 19, Arrivals: true}
	for k := range kinds {
		row := resource.NewAccount(s.View().Dims.Len())
		row.Set(0, float64(k+1))
		q.Kinds = append(q.Kinds, forecast.PastKind{Owner: fmt.Sprint("o", k), Tasks: 1, Min: 1, Request: row})
		q.Past = append(q.Past, forecast.PastJob{Kind: k, Arrival: -int64(k%86400) - 1, Seconds: int64(k%1000) + 1, Wait: 1})
	}
	return q
}

// TestHostileForecast has many reservations of nodes and many kinds of past jobs: one costs hardly more beside the other, and the question
// ends soon after it is asked to.
func TestHostileForecast(t *testing.T) {
	const nodes, kinds = 200, 1000
	taken := func(reservations int) uint64 {
		s := hostileCluster(t, nodes, reservations, nil)
		q := hostileQuestion(s, kinds)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		found, err := forecast.ByChance(s, q)
		runtime.ReadMemStats(&after)
		require.NoError(t, err)
		require.Equal(t, 100, found.Runs)
		return after.TotalAlloc - before.TotalAlloc
	}
	without := taken(0)
	require.Less(t, taken(model.MaxReservations), 2*without, "bytes that were ever taken")

	for _, most := range []int{1, 2, 50, 150, 250} {
		calls := 0
		s := hostileCluster(t, nodes, model.MaxReservations, func() bool { calls++; return calls >= most })
		q := hostileQuestion(s, kinds)
		calls = 0
		_, err := forecast.ByChance(s, q)
		require.ErrorIs(t, err, policy.ErrStopped)
		require.LessOrEqual(t, calls, most+100, "each run that is left asks once")
	}
}
