package service

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/service/setting"
	"github.com/apportion/apportion/wire"
)

// defaults are the options whose settings have their defaults.
func defaults() Options {
	var o Options
	for _, section := range []any{&o.Limit, &o.Overload, &o.Deadline, &o.Connection, &o.Drain} {
		setting.SetDefaults(reflect.ValueOf(section).Elem())
	}
	return o
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

func TestSettingsOfASessionHaveTheDefaultsOfPackageWire(t *testing.T) {
	l := defaults().Limit
	require.EqualValues(t, wire.DefaultAnswerBytes, l.AnswerBytes)
	require.EqualValues(t, wire.DefaultExplainBytes, l.ExplainBytes)
	require.EqualValues(t, wire.DefaultUndoBytes, l.UndoBytes)
	require.EqualValues(t, wire.DefaultWork, l.Work)
}
