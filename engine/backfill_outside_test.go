package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/backfill"
	"github.com/apportion/apportion/engine/policy/capacity"
	"github.com/apportion/apportion/engine/policy/drf"
	"github.com/apportion/apportion/engine/policy/overcommit"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/internal/test/enginetest"
)

const onlyAdmits = "proportion, which only admits"

// admitting are the plugins that keep jobs out of their queues, alone and together.
func admitting() map[string]engine.Tier {
	tight := overcommit.Plugin{Factor: 1}
	return map[string]engine.Tier{
		"overcommit":                {{Plugin: overcommit.Default()}},
		"overcommit without excess": {{Plugin: tight}},
		"proportion":                {{Plugin: proportion.Plugin{}}},
		"capacity":                  {{Plugin: capacity.Plugin{}}},
		"Volcano's default":         {{Plugin: overcommit.Default()}, {Plugin: drf.Plugin{}}, {Plugin: proportion.Plugin{}}},
		"capacity and overcommit":   {{Plugin: tight}, {Plugin: capacity.Plugin{}}},
		onlyAdmits:                  {{Plugin: proportion.Plugin{}, Disabled: engine.DecisionsOf(engine.Allocatable, engine.Overused)}},
	}
}

func TestWhatOnlyMissingRoomKeepsOutOfItsQueueStandsInTheLine(t *testing.T) {
	for name, sharing := range admitting() {
		for _, kind := range []backfill.Kind{backfill.EASY, backfill.Conservative} {
			for _, inside := range []bool{false, true} {
				t.Run(fmt.Sprint(name, kind, inside), func(t *testing.T) {
					jobs := []filledJob{
						{name: "runs", cpu: 3, runs: []int{0}, end: 1_500},
						{name: "gang", cpu: 1, waiting: 4, runtime: 300, outside: true},
						{name: "long", cpu: 1, waiting: 1, runtime: 501, outside: !inside},
						{name: "short", cpu: 1, waiting: 1, runtime: 500, outside: true},
					}
					s := filledClusterUnder(t, sharing, filledNow, kind, []int{4}, nil, jobs)
					job := func(name string) engine.Job {
						j, _ := s.View().Job(name)
						return s.Job(j)
					}
					at, nodes := planned(s, "gang")
					require.Equal(t, int64(500), at)
					require.Equal(t, []model.NodeID{0, 0, 0, 0}, nodes)
					fits, _ := startable(s, "long")
					require.Empty(t, fits)
					require.False(t, job("gang").Enqueue(nil))
					var why policy.Reasons
					require.False(t, job("long").Enqueue(&why))
					if !inside {
						require.Equal(t, policy.Reserved, why.List[0].Code)
						require.Contains(t, []string{"gang", "short"}, why.List[0].Detail)
					}
					fits, _ = startable(s, "short")
					require.Equal(t, []int{0}, fits)

					// Once it can start, it enters its queue although another job was admitted before and waits.
					s = filledClusterUnder(t, sharing, 1_500, kind, []int{4}, nil, jobs[1:])
					at, _ = planned(s, "gang")
					require.Zero(t, at)
					require.True(t, job("gang").Enqueue(nil))
					fits, _ = startable(s, "gang")
					require.Equal(t, []int{0}, fits)
					fits, _ = startable(s, "long")
					require.Empty(t, fits)
				})
			}
		}
	}
}

func TestNoRoomIsKeptForAJobThatMayNeverEnterItsQueue(t *testing.T) {
	for name, sharing := range admitting() {
		t.Run(name, func(t *testing.T) {
			jobs := []filledJob{
				{name: "runs", cpu: 3, runs: []int{0}, end: 1_500},
				{name: "never", cpu: 1, waiting: 11, runtime: 300, outside: true},
				{name: "gang", cpu: 2, waiting: 4, runtime: 300, outside: true},
			}
			if name == "capacity" {
				jobs[1].queue = "closed"
			}
			s := filledClusterUnder(t, sharing, filledNow, backfill.EASY, []int{4, 4}, nil, jobs)
			at, _ := planned(s, "never")
			require.Equal(t, int64(-1), at)
			at, _ = planned(s, "gang")
			require.Equal(t, int64(500), at)
		})
	}
}

// drawnKept draws reservations of nodes, of which jobs that run hold some.
func drawnKept(t *rapid.T, nodes []int, jobs []filledJob) map[int][]model.ReservationSpec {
	kept := map[int][]model.ReservationSpec{}
	for n, cpu := range nodes {
		for range rapid.IntRange(0, 3).Draw(t, "kept") {
			r := model.ReservationSpec{From: filledNow + rapid.Int64Range(-3, 9).Draw(t, "from")}
			if rapid.Bool().Draw(t, "ends") {
				r.Until = r.From + rapid.Int64Range(1, 9).Draw(t, "until")
			}
			if rapid.IntRange(0, 9).Draw(t, "whole") > 0 {
				r.Request = enginetest.Amounts(rapid.IntRange(1, cpu).Draw(t, "part"), 0)
			}
			if holder := rapid.IntRange(0, len(jobs)+1).Draw(t, "holder"); holder < len(jobs) {
				r.Holder = jobs[holder].name
			}
			kept[n] = append(kept[n], r)
		}
	}
	return kept
}

// TestWhatIsPlannedToStartNowMayStart plays the starts of the plan in order: each job enters its queue, which may use what its tasks ask
// for, and these fit on the nodes of the plan.
func TestWhatIsPlannedToStartNowMayStart(t *testing.T) {
	policies := admitting()
	rapid.Check(t, func(t *rapid.T) {
		nodes, jobs := drawnFill(t)
		for i := range jobs {
			j := &jobs[i]
			j.outside = j.waiting > 0 && rapid.Bool().Draw(t, "outside")
			if j.end > 0 && rapid.Bool().Draw(t, "late") {
				// It has run longer than expected.
				j.end, j.runtime = filledNow-rapid.Int64Range(0, 3).Draw(t, "since"), rapid.Int64Range(1, 30).Draw(t, "expected")
			}
		}
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(policies))).Draw(t, "policy")
		kind := backfill.Kind(rapid.IntRange(0, 1).Draw(t, "kind"))
		s := filledClusterUnder(t, policies[name], filledNow, kind, nodes, drawnKept(t, nodes, jobs), jobs)
		for _, j := range s.Waiting() {
			kept, ok := s.ReservationOf(j)
			if !ok || kept.From > filledNow {
				continue
			}
			uid := s.View().Jobs.At(j).UID
			if s.View().Phase(j) == model.PhasePending {
				require.True(t, s.Job(j).Enqueue(nil), uid)
			}
			for i, task := range kept.Tasks {
				var why policy.Reasons
				n := kept.Nodes[i]
				ok := s.Allocatable([]model.TaskID{task}, policy.InSession, &why, nil) && s.Nodes().Fits(task, n, &why) &&
					s.Nodes().HasRoom(task, n, &why)
				require.True(t, ok, "%s: %v", uid, why.List)
				require.NoError(t, s.Allocate(task, n))
			}
		}
	})
}

// TestAHolderUsesNothingOfItsReservationAfterItsEnd has reservations of which the holder runs now and ends before others start.
func TestAHolderUsesNothingOfItsReservationAfterItsEnd(t *testing.T) {
	holder := filledJob{name: "holder", cpu: 2, runs: []int{0}, end: 1_600}
	part := func(from, until int64, cpu int) map[int][]model.ReservationSpec {
		return map[int][]model.ReservationSpec{0: {{From: from, Until: until, Request: enginetest.Amounts(cpu, 0), Holder: "holder"}}}
	}
	for name, c := range map[string]struct {
		kept map[int][]model.ReservationSpec
		jobs []filledJob
		// starts are when room is kept for the jobs, since now.
		starts map[string]int64
	}{
		"a job that would still run then waits, and one that ends before starts": {
			part(2_000, 2_100, 4),
			[]filledJob{{name: "first", cpu: 4, waiting: 1, runtime: 7_800}, {name: "short", cpu: 3, waiting: 1, runtime: 600}},
			map[string]int64{"first": 1_100, "short": 0},
		},
		"one that would never have room has no time": {
			part(1_000, 0, 5), []filledJob{{name: "first", cpu: 3, waiting: 1, runtime: 10}}, map[string]int64{"first": -1},
		},
		"several reservations of the holder add up": {
			map[int][]model.ReservationSpec{0: {
				{From: 1_000, Until: 3_000, Request: enginetest.Amounts(2, 0), Holder: "holder"},
				{From: 1_000, Until: 3_000, Request: enginetest.Amounts(2, 0), Holder: "holder"},
			}},
			[]filledJob{{name: "first", cpu: 4, waiting: 1, runtime: 10}},
			map[string]int64{"first": 2_000},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := filledClusterUnder(t, nil, 1_000, backfill.Conservative, []int{7}, c.kept, slices.Concat([]filledJob{holder}, c.jobs))
			for job, start := range c.starts {
				at, _ := planned(s, job)
				require.Equal(t, start, at, job)
			}
		})
	}
}

// TestTheFirstJobStartsBesideOneThatRunsLongerThanExpected keeps room for the second job from the likely end of the late one on: the first
// has room beside both.
func TestTheFirstJobStartsBesideOneThatRunsLongerThanExpected(t *testing.T) {
	for _, kind := range []backfill.Kind{backfill.EASY, backfill.Conservative} {
		s := filledCluster(t, filledNow, kind, []int{6}, []filledJob{
			{name: "late", cpu: 4, runs: []int{0}, end: filledNow - 1, runtime: 400},
			{name: "first", cpu: 2, waiting: 1},
			{name: "second", cpu: 4, waiting: 1},
		})
		at, _ := planned(s, "second")
		require.Equal(t, int64(100), at)
		fits, _ := startable(s, "first")
		require.Equal(t, []int{0}, fits)
	}
}
