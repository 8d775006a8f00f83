package service

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOptionsThatAreZeroAreCompleted(t *testing.T) {
	want := DefaultOptions()
	// Zero means none or never.
	want.ConnectionAge, want.ConnectionIdle, want.DrainDelay = 0, 0, 0
	want.Overload.Complete()
	var got Options
	got.complete()
	got.Logger, got.Registry = nil, nil
	require.Equal(t, want, got)
}

func TestOptionsThatAreGivenStay(t *testing.T) {
	o := Options{CallTime: -1, SessionTime: -1, DrainTime: -1, Sessions: 7, CacheBytes: 1000}
	o.Limits.Steps = -3
	o.Limits.Nodes = 5
	o.complete()
	require.Equal(t, time.Duration(-1), o.CallTime, "below zero means never")
	require.Equal(t, time.Duration(-1), o.SessionTime)
	require.Equal(t, DefaultOptions().DrainTime, o.DrainTime, "a drain ends")
	require.Equal(t, 3, o.IdentitySessions)
	require.EqualValues(t, 500, o.IdentityBytes)
	require.Equal(t, DefaultOptions().Limits.Steps, o.Limits.Steps)
	require.EqualValues(t, 5, o.Limits.Nodes)
}
