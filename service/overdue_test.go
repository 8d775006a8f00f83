package service

import (
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/internal/setting"
)

func TestWhatLastsTooLongIsEndedOnTimeAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := overdue{limit: 10 * time.Second}
		began := time.Now()
		var mutex sync.Mutex
		ended := map[string][]time.Duration{}
		begin := func(name string) func() {
			e := o.begin(func() {
				mutex.Lock()
				defer mutex.Unlock()
				ended[name] = append(ended[name], time.Since(began))
			})
			return func() { o.done(e) }
		}
		// soFar returns the values that have ended, after all overdue ones have.
		soFar := func() map[string][]time.Duration {
			synctest.Wait()
			mutex.Lock()
			defer mutex.Unlock()
			return maps.Clone(ended)
		}
		first := begin("first")
		time.Sleep(3 * time.Second)
		late := begin("late")
		time.Sleep(time.Second)
		first()
		time.Sleep(time.Second)
		begin("later")
		time.Sleep(20 * time.Second)
		late()
		require.Equal(t, map[string][]time.Duration{"late": {13 * time.Second}, "later": {15 * time.Second}}, soFar())
		require.Zero(t, o.pending.Len())

		begin("after a pause")
		time.Sleep(20 * time.Second)
		require.Equal(t, []time.Duration{35 * time.Second}, soFar()["after a pause"])
	})
}

// defaults are the options whose settings have their defaults.
func defaults() Options {
	return Options{
		Limit: setting.Default[setting.Limit](), Overload: setting.Default[setting.Overload](), Deadline: setting.Default[setting.Deadline](),
		Connection: setting.Default[setting.Connection](), Drain: setting.Default[setting.Drain](),
	}
}

func TestOptionsThatAreZeroAreCompleted(t *testing.T) {
	want := defaults()
	// Zero means none or never.
	want.Connection.Age, want.Connection.Idle, want.Drain.Delay = 0, 0, 0
	var got Options
	got.complete()
	got.Logger, got.Registry = nil, nil
	require.Equal(t, want, got)
}

func TestOptionsThatAreGivenStay(t *testing.T) {
	o := Options{
		Limit: setting.Limit{SessionTime: -1, Sessions: 7, CacheBytes: 1000, Steps: -3, Nodes: 5}, Deadline: setting.Deadline{Call: -1},
		Drain: setting.Drain{Time: -1},
	}
	o.complete()
	require.Equal(t, time.Duration(-1), o.Deadline.Call, "below zero means never")
	require.Equal(t, time.Duration(-1), o.Limit.SessionTime)
	require.Equal(t, defaults().Drain.Time, o.Drain.Time, "a drain ends")
	require.Equal(t, 3, o.Limit.IdentitySessions)
	require.EqualValues(t, 500, o.Limit.IdentityBytes)
	require.Equal(t, defaults().Limit.Steps, o.Limit.Steps)
	require.EqualValues(t, 5, o.Limit.Nodes)
}

func TestTheWorkOfACallIsThatOfTheEngineByDefault(t *testing.T) {
	require.EqualValues(t, policy.DefaultWork, defaults().Limit.Work)
}
