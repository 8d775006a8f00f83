package cluster

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/volcano"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/file"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/servicetest"
)

func version() *apportionv1.Snapshot {
	return &apportionv1.Snapshot{
		Dimensions: []string{"cpu"},
		Nodes:      []*apportionv1.Node{{Name: "n", Allocatable: &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{8000}}}},
		Queues:     []*apportionv1.Queue{{Name: "q", CreateTime: 1}},
		Jobs: []*apportionv1.Job{{Name: "j", Queue: "q", Groups: []*apportionv1.TaskGroup{{
			Request: &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{1000}},
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

func TestAVersionThatComesSoonAfterAnotherIsStoredAfterTheInterval(t *testing.T) {
	m := openMemory(t, filepath.Join(t.TempDir(), "ledger"))
	m.Interval = 20 * time.Millisecond
	f := &Follower{options: FollowOptions{Memory: m, Logger: slog.New(slog.DiscardHandler)}}
	stored := func() time.Time {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		return m.stored
	}
	first := time.Now()
	f.remember(t.Context(), version(), first, first)
	m.storing.Wait()
	require.Equal(t, first, stored())
	second := time.Now()
	for range 3 {
		f.remember(t.Context(), version(), second, second)
	}
	require.Eventually(t, func() bool { return !stored().Before(second) }, time.Minute, time.Millisecond, "no further version comes")
	m.storing.Wait()

	m.Interval = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	f.remember(ctx, version(), second, second)
	cancel()
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

func TestAFollowerOfADamagedLedgerSaysThatItIsNotStored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	m := openMemory(t, path)
	var log bytes.Buffer
	f := &Follower{options: FollowOptions{Memory: m, Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	require.NoError(t, os.Truncate(path, 0))
	begin := time.Unix(1000*3600, 0)
	for n := range 3 {
		at := begin.Add(time.Duration(n) * time.Hour)
		f.remember(t.Context(), version(), at, at)
		m.storing.Wait()
	}
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("it goes on in memory and is lost when the server ends")), log.String())
	require.NotContains(t, log.String(), "as soon as that works")
}

// remembering returns a follower that has read one running pod in each of some jobs.
func remembering(t *testing.T, r *servicetest.Replica, jobs int) *Follower {
	t.Helper()
	m := openMemory(t, filepath.Join(t.TempDir(), "ledger"))
	f := &Follower{
		options: FollowOptions{Memory: m, Logger: slog.New(slog.DiscardHandler)}, objects: &volcanoStore{Objects: volcano.NewObjects(volcano.WithStarts())},
		kept: r.Server.Keep("c", "", func(*apportionv1.SnapshotView) {}),
	}
	f.metrics = newMetrics(f)
	put := func(kind, format string, args ...any) {
		list := followed[kind]
		object, err := f.objects.Read(list.Newest(), fmt.Appendf(nil, format, args...))
		require.NoError(t, err)
		f.objects.Put(object)
	}
	put("queues", `{"metadata": {"name": "q", "creationTimestamp": "2026-01-01T00:00:00Z"}}`)
	put("nodes", `{"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8k"}}}`)
	for i := range jobs {
		put("podgroups", `{"metadata": {"name": "j%d", "namespace": "a", "annotations": {"apportion.dev/owner": "o%d"}},
			"spec": {"queue": "q"}}`, i, i)
		put("pods", `{"metadata": {"name": "p%d", "namespace": "a", "uid": "%d", "annotations": {"scheduling.k8s.io/group-name": "j%d"}},
			"spec": {"schedulerName": "volcano", "nodeName": "n", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
			"status": {"phase": "Running", "startTime": "2026-01-02T00:00:00Z",
				"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-02T00:00:00Z"}]}}`, i, i, i)
	}
	t.Cleanup(func() {
		m.storing.Wait()
		require.NoError(t, m.File.Close())
	})
	return f
}

func TestTheVersionsOfAFollowedClusterStateWhatQueuesUsed(t *testing.T) {
	r := servicetest.Start(t, service.Options{})
	f := remembering(t, r, 3)
	require.NoError(t, f.make(t.Context(), &apportionv1.SnapshotView{}))
	got, err := r.Named(t.Context(), "c")
	require.NoError(t, err)
	s := got.Snapshot
	require.NotNil(t, s.GetMemory())
	require.NotEmpty(t, s.GetQueues()[0].GetUsage().GetQuantumSeconds())
	require.Len(t, s.GetQueues()[0].GetOwners(), 3)
}

func TestAVersionWithoutRoomForAllLacksOwnersAndJobsButNoUsage(t *testing.T) {
	const jobs = 1000
	f := remembering(t, servicetest.Start(t, service.Options{}), jobs)
	now := time.Now()
	whole, err := f.objects.version(now, 1<<40, nil, f.filling(t.Context(), now))
	require.NoError(t, err)
	require.Len(t, whole.snapshot.GetQueues()[0].GetOwners(), jobs)
	_, most, err := encode(whole.snapshot, 1<<40)
	require.NoError(t, err)

	m, err := f.objects.version(now, most/2, nil, f.filling(t.Context(), now))
	require.NoError(t, err)
	s, records, unseen := &apportionv1.Snapshot{}, 0, 0
	require.NoError(t, proto.Unmarshal(m.data, s))
	f.options.Memory.File.View(func(l *ledger.Ledger) { records, unseen = l.Records(), int(l.Counts().Unseen) })
	require.Equal(t, []int{jobs, 0}, []int{records, unseen}, "the ledger has seen each task")
	require.Empty(t, s.GetQueues()[0].GetOwners())
	require.Equal(t, whole.snapshot.GetQueues()[0].GetUsage().GetQuantumSeconds(), s.GetQueues()[0].GetUsage().GetQuantumSeconds())
	require.Less(t, len(s.GetJobs()), jobs)
	require.Greater(t, len(s.GetJobs()), jobs/4)
	size := decode.Measure(m.data)
	require.LessOrEqual(t, size.Memory(), most/2)
}

func TestALedgerTakesTheTimeOfTheAPIServerWhereClocksDiffer(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for name, jump := range map[string]time.Duration{"the own clock jumps ahead": year, "it is set back": -20 * year} {
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
