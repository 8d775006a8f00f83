package cluster

import (
	"bytes"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/file"
)

func version() *apportionv1.Snapshot {
	return &apportionv1.Snapshot{
		Dimensions: []string{"cpu"},
		Nodes:      []*apportionv1.Node{{Name: "n", Allocatable: &apportionv1.Resource{Dimension: []uint32{0}, Amount: []float64{8000}}}},
		Queues:     []*apportionv1.Queue{{Name: "q", CreateTime: 1}},
		Jobs: []*apportionv1.Job{{Name: "j", Queue: "q", Groups: []*apportionv1.TaskGroup{{
			Request: &apportionv1.Resource{Dimension: []uint32{0}, Amount: []float64{1000}},
			Tasks:   []*apportionv1.Task{{Uid: "t", Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING}},
		}}}},
	}
}

func openMemory(t *testing.T, path string) *Memory {
	t.Helper()
	kept, err := file.Open(path, ledger.Options{Epoch: time.Hour})
	require.NoError(t, err)
	m := NewMemory(kept, nil, time.Minute)
	prometheus.NewRegistry().MustRegister(m.collectors()...)
	return m
}

func TestAFollowerStatesWhatQueuesUsedAlsoAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	m := openMemory(t, path)
	f := &Follower{options: FollowOptions{Memory: m, Logger: slog.New(slog.DiscardHandler)}}
	begin := time.Unix(1000*3600, 0)
	f.remember(t.Context(), version(), begin, begin)
	m.storing.Wait()
	f.remember(t.Context(), version(), begin.Add(30*time.Minute), begin.Add(30*time.Minute))
	m.storing.Wait()
	require.NoError(t, m.File.Close())

	m = openMemory(t, path)
	f = &Follower{options: FollowOptions{Memory: m, Logger: slog.New(slog.DiscardHandler)}}
	s := version()
	// The API server is away since half past: the task is not known to run longer.
	f.remember(t.Context(), s, begin.Add(30*time.Minute), begin.Add(70*time.Minute))
	require.Equal(t, []int64{1000 * 1800}, s.GetQueues()[0].GetUsage().GetQuantumSeconds())
	require.Equal(t, int64(1001), s.GetMemory().GetEpoch())
	m.storing.Wait()
	require.NoError(t, m.File.Close())
}

func TestAFollowerGoesOnWhileTheLedgerCannotBeStored(t *testing.T) {
	m := openMemory(t, filepath.Join(t.TempDir(), "ledger"))
	var log bytes.Buffer
	f := &Follower{options: FollowOptions{Memory: m, Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	require.NoError(t, m.File.Close())
	begin := time.Unix(1000*3600, 0)
	for n := range 3 {
		s := version()
		f.remember(t.Context(), s, begin.Add(time.Duration(n)*time.Hour), begin.Add(time.Duration(n)*time.Hour))
		require.Equal(t, int64(1000+n), s.GetMemory().GetEpoch())
		m.storing.Wait()
	}
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("could not be stored")), log.String())
}

func TestALedgerTakesTheTimeOfTheAPIServerWhereClocksDiffer(t *testing.T) {
	for name, jump := range map[string]time.Duration{"the own clock jumps ahead": 365 * 24 * time.Hour, "it is set back": -20 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			m := openMemory(t, filepath.Join(t.TempDir(), "ledger"))
			var log bytes.Buffer
			f := &Follower{options: FollowOptions{Memory: m, Logger: slog.New(slog.NewTextHandler(&log, nil))}}
			begin := time.Unix(1_000_000*3600, 0)
			for minutes := 0; minutes < 180; minutes += 10 {
				cluster := begin.Add(time.Duration(minutes) * time.Minute)
				own := cluster
				if minutes >= 60 && minutes < 120 {
					own = cluster.Add(jump)
				}
				f.clock.note(&http.Response{Header: http.Header{"Date": {cluster.UTC().Format(http.TimeFormat)}}}, own)
				f.remember(t.Context(), version(), own, own)
				m.storing.Wait()
			}
			s := version()
			f.remember(t.Context(), s, begin.Add(3*time.Hour), begin.Add(3*time.Hour))
			require.Equal(t, int64(1_000_003), s.GetMemory().GetEpoch())
			require.InEpsilon(t, 1000*3*3600, s.GetQueues()[0].GetUsage().GetQuantumSeconds()[0], 0.05, "three hours were used, not a year")
			require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("differs from the API server's")), log.String())
			require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("agrees with the API server's again")), log.String())
			m.storing.Wait()
			require.NoError(t, m.File.Close())
		})
	}
}
