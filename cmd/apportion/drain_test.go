package main

import (
	"context"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/test/replica"
)

// startReplicas runs three processes of the command.
func startReplicas(t *testing.T) []*replica.Replica {
	t.Helper()
	binary, err := exec.LookPath("apportion")
	require.NoError(t, err, "testscript puts it there")
	replicas := make([]*replica.Replica, 3)
	for i := range replicas {
		replicas[i], err = replica.New(t.Context(), binary, "--drain-delay", "200ms")
		require.NoError(t, err)
		require.NoError(t, replicas[i].Start(context.WithoutCancel(t.Context())))
		t.Cleanup(replicas[i].Kill)
	}
	for _, r := range replicas {
		require.NoError(t, r.Ready(t.Context()))
	}
	return replicas
}

// TestNoDecisionFailsWhileReplicasAreRestartedOrKilled asks small questions, and such as gRPC would not send again by itself.
func TestNoDecisionFailsWhileReplicasAreRestartedOrKilled(t *testing.T) {
	if testing.Short() && !raced.On {
		t.Skip("runs processes")
	}
	replicas := startReplicas(t)
	decide, err := replica.Dial(replicas)
	require.NoError(t, err)
	defer decide.Close()
	shape := generate.Standard()
	shape.Queues, shape.Jobs, shape.Tasks, shape.Nodes = 10, 100, 1000, 20
	small := generate.Snapshot(shape)
	shape.Jobs, shape.Tasks, shape.UIDs = 1000, 10_000, true
	large := generate.Snapshot(shape)

	asking, enough := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var decided [2]atomic.Int64
	for i, in := range []client.Input{{Snapshot: small, Policy: client.VolcanoDefault()}, {Snapshot: large, Policy: client.VolcanoDefault()}} {
		for range 2 {
			group.Go(func() {
				for asking.Err() == nil {
					if _, err := decide.Shares(context.WithoutCancel(asking), in, client.SharesQuestion{}); err != nil {
						t.Errorf("decision %d of size %d: %v", decided[0].Load()+decided[1].Load(), i, err)
						return
					}
					decided[i].Add(1)
				}
			})
		}
	}
	time.Sleep(200 * time.Millisecond)
	require.NoError(t, replicas[0].End(), "it drains, and ends well")
	require.NoError(t, replicas[0].Start(context.WithoutCancel(t.Context())))
	require.NoError(t, replicas[0].Ready(t.Context()))
	replicas[1].Kill()
	time.Sleep(500 * time.Millisecond)
	enough()
	group.Wait()
	for i := range decided {
		require.Positive(t, decided[i].Load())
	}
}
