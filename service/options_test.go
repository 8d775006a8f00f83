package service

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/setting"
)

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
