package service_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/history"
	"github.com/apportion/apportion/service/servicetest"
)

// asOfNow is a view of a cluster that is watched.
func asOfNow(view *apportionv1.SnapshotView) { view.AsOf, view.Complete = time.Now().UnixNano(), true }

// recorded starts a server that records a kept snapshot by proportion, and returns it with the number of versions that failed.
func recorded(t *testing.T, own func(context.Context) func(string) bool) (*service.Server, *service.Kept, *atomic.Int64) {
	t.Helper()
	server, err := service.New(service.Options{Policies: audiencePolicies(), Own: own})
	require.NoError(t, err)
	k := server.Keep("cluster", "", asOfNow)
	var failed atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var recording sync.WaitGroup
	recording.Go(func() {
		k.Record(ctx, service.RecordOptions{
			History:    history.New(history.Options{Retain: time.Hour, Step: time.Second, Gap: 3 * time.Minute, Bytes: 64 << 20}),
			PolicyName: "proportion", Interval: 10 * time.Second,
			Failed: func(err error) {
				if err != nil {
					failed.Add(1)
				}
			},
		})
	})
	t.Cleanup(func() {
		cancel()
		recording.Wait()
	})
	return server, k, &failed
}

// historyOf asks for the history of all waiting jobs, and of some jobs and queues.
func historyOf(t *testing.T, server *service.Server, jobs, queues []string) *apportionv1alpha1.GetHistoryResponse {
	t.Helper()
	out, err := server.Direct().GetHistory(t.Context(), &apportionv1alpha1.GetHistoryRequest{Name: "cluster", Jobs: jobs, Queues: queues, Waiting: jobs == nil})
	require.NoError(t, err)
	return out
}

func TestVersionsAreRecordedWithTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, k, failed := recorded(t, nil)
		_, err := server.Direct().GetHistory(t.Context(), &apportionv1alpha1.GetHistoryRequest{Name: "cluster"})
		requireFault(t, err, codes.Unavailable, "SNAPSHOT_NOT_READY")
		began := time.Now()
		snapshot := servicetest.Snapshot(1)
		keep(t, k, snapshot)
		time.Sleep(61 * time.Second)
		synctest.Wait()
		first := historyOf(t, server, nil, nil)
		require.NotZero(t, first.GetBegins())
		require.Equal(t, "proportion", first.GetPolicyName())
		explained, err := server.Direct().Explain(t.Context(), &apportionv1.ExplainRequest{Input: &apportionv1.Input{
			Source: &apportionv1.Input_SnapshotName{SnapshotName: "cluster"}, Rule: &apportionv1.Input_PolicyName{PolicyName: "proportion"},
		}})
		require.NoError(t, err)
		require.Equal(t, explained.GetBasis().GetPolicyDigest(), first.GetPolicyDigest())
		waiting := map[string]*apportionv1.Explanation{}
		for _, e := range explained.GetExplain().GetJobs() {
			waiting[e.GetUid()] = e
		}
		require.Len(t, first.GetJobs(), len(waiting))
		require.NotEmpty(t, waiting)
		for _, job := range first.GetJobs() {
			e := waiting[job.GetUid()]
			require.NotNil(t, e, job.GetUid())
			require.Equal(t, e.GetName(), job.GetName())
			require.Equal(t, e.GetVerdict(), job.GetIntervals()[0].GetVerdict())
			if e.Blocking != nil {
				require.Equal(t, e.GetFindings()[e.GetBlocking()].GetCheck(), job.GetIntervals()[0].GetCheck())
			}
		}

		// A version without its jobs ends their waits; one that stays is recorded once a minute.
		emptied := proto.CloneOf(snapshot)
		emptied.Jobs = nil
		time.Sleep(5 * time.Minute)
		keep(t, k, emptied)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		name := first.GetJobs()[0].GetUid()
		last := historyOf(t, server, []string{name}, []string{snapshot.GetQueues()[0].GetName()})
		require.Equal(t, apportionv1alpha1.WaitState_WAIT_STATE_GONE, last.GetJobs()[0].GetState())
		require.Greater(t, last.GetJobs()[0].GetEnded(), began.Add(6*time.Minute).UnixNano())
		require.Empty(t, last.GetGaps(), "a version that stays is recorded again")
		require.Len(t, last.GetQueues(), 1)
		require.Empty(t, historyOf(t, server, nil, nil).GetJobs())
		require.LessOrEqual(t, last.GetVersions(), uint64(10), "not more than one in ten seconds, and once a minute what stays")
		require.Zero(t, failed.Load())
	})
}

func TestAHistoryShowsACallerItsOwnQueuesAlone(t *testing.T) {
	found := 0
	for seed := range uint64(8) {
		found += showsItsOwnQueuesAlone(t, seed)
	}
	require.NotZero(t, found)
}

func showsItsOwnQueuesAlone(t *testing.T, seed uint64) (jobsFound int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		snapshot := shared(seed)
		server, k, failed := recorded(t, ownTeam)
		keep(t, k, snapshot)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Zero(t, failed.Load())
		var jobs, queues []string
		for _, job := range snapshot.GetJobs() {
			jobs = append(jobs, job.GetUid())
		}
		for _, queue := range snapshot.GetQueues() {
			queues = append(queues, queue.GetName())
		}
		jobs, queues = jobs[:min(len(jobs), 100)], queues[:min(len(queues), 100)]
		for _, out := range []*apportionv1alpha1.GetHistoryResponse{historyOf(t, server, jobs, queues), historyOf(t, server, nil, queues)} {
			jobsFound += len(out.GetJobs())
			require.NotEmpty(t, out.GetQueues())
			hides(t, out, nil)
		}
	})
	return jobsFound
}

func TestRequestsForHistoriesAreChecked(t *testing.T) {
	r := servicetest.Start(t, service.Options{PermitSnapshot: func(_ context.Context, name string) error {
		if name == "secret" {
			return context.Canceled
		}
		return nil
	}})
	keep(t, r.Server.Keep("cluster", "", asOfNow), servicetest.Snapshot(1))
	for name, ask := range map[string]*apportionv1alpha1.GetHistoryRequest{
		"no name":     {},
		"many jobs":   {Name: "cluster", Jobs: make([]string, 101)},
		"many queues": {Name: "cluster", Queues: make([]string, 101)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.GetHistory(t.Context(), ask)
			requireFault(t, err, codes.InvalidArgument, "INVALID_REQUEST")
		})
	}
	_, err := r.GetHistory(t.Context(), &apportionv1alpha1.GetHistoryRequest{Name: "other"})
	requireFault(t, err, codes.NotFound, "SNAPSHOT_NAME_NOT_FOUND")
	_, err = r.GetHistory(t.Context(), &apportionv1alpha1.GetHistoryRequest{Name: "secret"})
	require.Error(t, err)
	out, err := r.GetHistory(t.Context(), &apportionv1alpha1.GetHistoryRequest{Name: "cluster"})
	require.NoError(t, err)
	require.True(t, proto.Equal(&apportionv1alpha1.GetHistoryResponse{}, out), "no history is kept")
}
