package connection_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/adapter/connection"
	"github.com/apportion/apportion/engine/cycle"
)

func TestASettingNamesWhatEvicts(t *testing.T) {
	for evict, actions := range map[string]cycle.Actions{
		"all": cycle.All(), "none": {cycle.Enqueue, cycle.Allocate}, "preempt": {cycle.Enqueue, cycle.Allocate, cycle.Preempt},
		"reclaim": {cycle.Enqueue, cycle.Allocate, cycle.Reclaim},
	} {
		require.Empty(t, connection.Evict(evict))
		require.Equal(t, actions, connection.Actions(evict))
	}
	require.Contains(t, connection.Evict("some"), "evict")
}
