package cooldown_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/cooldown"
	"github.com/apportion/apportion/engine/policy/policytest"
)

const minute = 60_000_000_000

func open(t require.TestingT, now int64, tasks ...policytest.Tasks) (*policy.View, *cooldown.State) {
	v := policytest.Cluster{AsOf: now, Queues: policytest.Queues("q"), Jobs: []policytest.Job{{Name: "j", Queue: "q", Tasks: tasks}}}.View(t)
	state, err := cooldown.Plugin{}.Open(v)
	require.NoError(t, err)
	return v, state.(*cooldown.State)
}

func scheduled(at, cooldown int64) policytest.Tasks {
	return policytest.Tasks{Status: model.Running, Detail: &model.Detail{
		ScheduleTime: at, Cooldown: cooldown, HasScheduleTime: true, HasCooldown: true,
	}}
}

func TestProtectionEndsWithTheCooldown(t *testing.T) {
	for name, c := range map[string]struct {
		now     int64
		task    policytest.Tasks
		spared  bool
		elapsed float64
	}{
		"no cooldown":                 {task: policytest.Tasks{Status: model.Running, Detail: &model.Detail{HasScheduleTime: true}}},
		"a cooldown, never scheduled": {task: policytest.Tasks{Status: model.Running, Detail: &model.Detail{HasCooldown: true, Cooldown: minute}}},
		"no detail at all":            {task: policytest.Tasks{Status: model.Running}},
		"one nanosecond before":       {now: 5*minute - 1, task: scheduled(0, 5*minute), spared: true, elapsed: 5*minute - 1},
		"at the end":                  {now: 5 * minute, task: scheduled(0, 5*minute)},
		"a cooldown of nothing":       {now: 5, task: scheduled(5, 0)},
		"scheduled in the future":     {now: 5, task: scheduled(6, 0), spared: true, elapsed: -1},
		"in the future, but the cooldown reaches as far back": {now: 0, task: scheduled(5*minute, -5*minute)},
		"farther in the future":                               {now: 0, task: scheduled(5*minute+1, -5*minute), spared: true, elapsed: -5*minute - 1},
		"ages ago":                                            {now: math.MaxInt64, task: scheduled(math.MinInt64, math.MaxInt64)},
		"ages ahead":                                          {now: math.MinInt64, task: scheduled(math.MaxInt64, math.MinInt64), spared: true, elapsed: -0x1p64},
		"just beyond the least number":                        {now: -2, task: scheduled(math.MaxInt64, math.MinInt64), spared: true, elapsed: -0x1p63},
		"just within the least number":                        {now: -1, task: scheduled(math.MaxInt64, math.MinInt64)},
		"pending, though it was scheduled once":               {task: policytest.Tasks{Detail: scheduled(0, minute).Detail}},
		"bound, not running yet":                              {task: policytest.Tasks{Status: model.Bound, Detail: scheduled(0, minute).Detail}},
		"running and being deleted":                           {task: policytest.Tasks{Status: model.Releasing, Detail: scheduled(0, minute).Detail}, spared: true},
	} {
		t.Run(name, func(t *testing.T) {
			v, s := open(t, c.now, c.task)
			for _, ask := range []policy.VictimFunc{s.Reclaimable, s.Preemptable} {
				chosen, spared := policytest.Victims(t, v, ask, "j-0", "j-0")
				if !c.spared {
					require.Equal(t, []string{"j-0"}, chosen)
					continue
				}
				require.Empty(t, chosen)
				require.Equal(t, policy.Reason{
					Plugin: "cdp", Code: policy.CooldownActive, Queue: model.None, Dimension: -1,
					Have: c.elapsed, Limit: float64(c.task.Detail.Cooldown),
				}, spared["j-0"])
			}
		})
	}
}

func TestNoTimeOverflows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, then := rapid.Int64().Draw(t, "now"), rapid.Int64().Draw(t, "then")
		length := rapid.Int64().Draw(t, "cooldown")
		elapsed := new(big.Int).Sub(big.NewInt(now), big.NewInt(then))
		_, s := open(t, now, scheduled(then, length))
		victims, _ := s.Preemptable(0, []model.TaskID{0}, nil, nil)
		require.Equal(t, elapsed.Cmp(big.NewInt(length)) < 0, len(victims) == 0)
	})
}

func TestQuestionsAllocateNothing(t *testing.T) {
	_, s := open(t, 5, scheduled(0, 9), scheduled(0, 1))
	candidates, dst := []model.TaskID{0, 1}, make([]model.TaskID, 0, 2)
	require.Zero(t, testing.AllocsPerRun(10, func() { dst, _ = s.Reclaimable(0, candidates, dst[:0], nil) }))
}
