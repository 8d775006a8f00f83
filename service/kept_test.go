package service_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/event"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/servicetest"
)

// keep puts a snapshot on a server as the only version of one that is complete, and as old as asOf says.
func keep(t *testing.T, k *service.Kept, snapshot *apportionv1.Snapshot) {
	t.Helper()
	data, err := proto.Marshal(snapshot)
	require.NoError(t, err)
	require.NoError(t, k.Put(t.Context(), data, &apportionv1.SnapshotView{
		Kinds: []*apportionv1.ViewedKind{{Resource: "pods", Read: true, Count: 120}},
	}))
}

// asOfAnHourAgo is a view of a cluster that was last read an hour ago.
func asOfAnHourAgo(view *apportionv1.SnapshotView) {
	view.AsOf, view.Complete = time.Now().Add(-time.Hour).UnixNano(), true
}

func sharesOf(source any, change *apportionv1.Change) *apportionv1.EvaluateSharesRequest {
	in := &apportionv1.Input{Rule: &apportionv1.Input_Policy{Policy: servicetest.Proportion()}}
	if change != nil {
		in.Events = []*apportionv1.Event{event.Change(change).GetEvent()}
	}
	switch s := source.(type) {
	case *apportionv1.Snapshot:
		in.Source = &apportionv1.Input_Snapshot{Snapshot: s}
	case *apportionv1.Input_SnapshotName:
		in.Source = s
	case *apportionv1.Input_SnapshotDigest:
		in.Source = s
	}
	return &apportionv1.EvaluateSharesRequest{Input: in}
}

func TestAKeptSnapshotAnswersByNameAsItWouldInline(t *testing.T) {
	r := servicetest.Start(t, service.Options{})
	name := &apportionv1.Input_SnapshotName{SnapshotName: "cluster"}
	k := r.Server.Keep("cluster", "", asOfAnHourAgo)

	_, err := r.EvaluateShares(t.Context(), sharesOf(name, nil))
	requireFault(t, err, codes.Unavailable, "SNAPSHOT_NOT_READY")
	_, err = r.EvaluateShares(t.Context(), sharesOf(&apportionv1.Input_SnapshotName{SnapshotName: "other"}, nil))
	requireFault(t, err, codes.NotFound, "SNAPSHOT_NAME_NOT_FOUND")

	snapshot := servicetest.Snapshot(1)
	keep(t, k, snapshot)
	for name, change := range map[string]*apportionv1.Change{"as it is": nil, "changed": {AsOf: new(int64(7))}} {
		t.Run(name, func(t *testing.T) {
			got, err := r.EvaluateShares(t.Context(), sharesOf(&apportionv1.Input_SnapshotName{SnapshotName: "cluster"}, change))
			require.NoError(t, err)
			want, err := r.EvaluateShares(t.Context(), sharesOf(snapshot, nil))
			require.NoError(t, err)
			require.True(t, proto.Equal(want.GetShares(), got.GetShares()))
			require.Nil(t, want.GetBasis().GetView())
			view := got.GetBasis().GetView()
			require.Equal(t, "cluster", view.GetName())
			require.True(t, view.GetComplete())
			require.InDelta(t, time.Hour, time.Duration(view.GetAge()), float64(time.Minute))
			require.EqualValues(t, 120, view.GetKinds()[0].GetCount())
		})
	}
}

func TestACallerThatFetchesEachVersionDropsNoVersionOfOthers(t *testing.T) {
	server, dial := inMemory(t, service.Options{Tap: []tap.ServerInHandle{byHeader}})
	k, c := server.Keep("cluster", "", asOfAnHourAgo), servicetest.Over(reader(t, dial))
	get := func(who string) string {
		got, err := c.Named(as(t, who), "cluster")
		require.NoError(t, err)
		return got.View.GetDigest()
	}
	keep(t, k, servicetest.Snapshot(0))
	held := get("modest")
	var last string
	for seed := range uint64(20) {
		keep(t, k, servicetest.Snapshot(1+seed))
		last = get("greedy")
	}
	for _, digest := range []string{held, last} {
		_, err := c.EvaluateShares(as(t, "modest"), sharesOf(&apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, nil))
		require.NoError(t, err)
	}
}

func TestTheLastTwoVersionsAreFoundByDigest(t *testing.T) {
	r := servicetest.Start(t, service.Options{})
	k := r.Server.Keep("cluster", "", asOfAnHourAgo)
	var digests []string
	for seed := range uint64(3) {
		keep(t, k, servicetest.Snapshot(seed))
		got, err := r.EvaluateShares(t.Context(), sharesOf(&apportionv1.Input_SnapshotName{SnapshotName: "cluster"}, nil))
		require.NoError(t, err)
		digests = append(digests, got.GetBasis().GetSnapshotDigest())
	}
	ask := func(digest string) error {
		got, err := r.EvaluateShares(t.Context(), sharesOf(&apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, nil))
		if err == nil {
			require.Equal(t, "cluster", got.GetBasis().GetView().GetName())
			require.Equal(t, digest, got.GetBasis().GetView().GetDigest())
		}
		return err
	}
	requireFault(t, ask(digests[0]), codes.FailedPrecondition, "SNAPSHOT_NOT_FOUND")
	require.NoError(t, ask(digests[1]))
	require.NoError(t, ask(digests[2]))

	_, err := r.Named(t.Context(), "cluster")
	require.NoError(t, err)
	for seed := range uint64(3) {
		keep(t, k, servicetest.Snapshot(10+seed))
	}
	require.NoError(t, ask(digests[2]), "it was sent whole")
	requireFault(t, ask(digests[1]), codes.FailedPrecondition, "SNAPSHOT_NOT_FOUND")
}

func TestAKeptSnapshotIsListedAndSentAsItsBytes(t *testing.T) {
	r := servicetest.Start(t, service.Options{})
	k := r.Server.Keep("cluster", "", asOfAnHourAgo)
	list, err := r.ListSnapshots(t.Context(), &apportionv1.ListSnapshotsRequest{})
	require.NoError(t, err)
	require.Empty(t, list.GetSnapshots()[0].GetDigest())
	_, err = r.Named(t.Context(), "cluster")
	requireFault(t, err, codes.Unavailable, "SNAPSHOT_NOT_READY")

	shape := generate.Standard()
	shape.Jobs, shape.Tasks, shape.UIDs = 2000, 40_000, true
	snapshot := generate.Snapshot(shape)
	keep(t, k, snapshot)
	got, err := r.Named(t.Context(), "cluster")
	require.NoError(t, err)
	require.True(t, proto.Equal(snapshot, got.Snapshot))
	require.Greater(t, got.Chunks, 1)
	require.Equal(t, decode.Digest(got.Data), got.View.GetDigest(), "the digest is that of the bytes")
	keep(t, k, servicetest.Snapshot(1))
	again, err := r.Download(t.Context(), digested(got.View.GetDigest()))
	require.NoError(t, err)
	require.Equal(t, got.Data, again.Data)
}

func TestWhatCannotBeDownloadedIsAFault(t *testing.T) {
	r := servicetest.Start(t, service.Options{})
	for _, c := range []struct {
		request *apportionv1.DownloadSnapshotRequest
		code    codes.Code
		reason  string
	}{
		{&apportionv1.DownloadSnapshotRequest{}, codes.InvalidArgument, "INVALID_REQUEST"},
		{digested("sha256:1"), codes.InvalidArgument, "INVALID_REQUEST"},
		{digested(decode.Digest(nil)), codes.FailedPrecondition, "SNAPSHOT_NOT_FOUND"},
	} {
		_, err := r.Download(t.Context(), c.request)
		requireFault(t, err, c.code, c.reason)
	}
	_, err := r.Named(t.Context(), "cluster")
	requireFault(t, err, codes.NotFound, "SNAPSHOT_NAME_NOT_FOUND")
}

// digested asks for the version of a digest.
func digested(digest string) *apportionv1.DownloadSnapshotRequest {
	return &apportionv1.DownloadSnapshotRequest{Source: &apportionv1.DownloadSnapshotRequest_Digest{Digest: digest}}
}

func TestSnapshotsAreListedPageByPage(t *testing.T) {
	r := servicetest.Start(t, service.Options{})
	var want []string
	for i := range 205 {
		want = append(want, fmt.Sprintf("cluster-%03d", i))
		r.Server.Keep(want[i], "", func(*apportionv1.SnapshotView) {})
	}
	for _, c := range []struct {
		size  uint32
		pages int
	}{{0, 3}, {1, 205}, {100, 3}, {204, 2}, {205, 1}, {math.MaxUint32, 1}} {
		var got []string
		pages := 0
		for request := (&apportionv1.ListSnapshotsRequest{PageSize: c.size}); ; pages++ {
			page, err := r.ListSnapshots(t.Context(), request)
			require.NoError(t, err)
			for _, view := range page.GetSnapshots() {
				got = append(got, view.GetName())
			}
			if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
				break
			}
		}
		require.Equal(t, want, got)
		require.Equal(t, c.pages, pages+1, c.size)
	}
}

func TestAServerSaysWhatItIs(t *testing.T) {
	r := servicetest.Start(t, service.Options{
		Policies: map[string]*apportionv1.Policy{"mine": servicetest.Proportion(), "volcano": servicetest.Capacity()},
		Limit:    setting.Limit{Steps: 7, UploadTime: -1},
	})
	is, err := r.GetServerInfo(t.Context(), &apportionv1.GetServerInfoRequest{})
	require.NoError(t, err)
	require.Equal(t, engine.Version, is.GetEngineVersion())
	require.Equal(t, []string{"apportion.v1.DecisionService", "apportion.v1.SnapshotService", "apportion.v1alpha1.InsightService"}, is.GetServices()[:3])
	require.True(t, slices.IsSorted(is.GetServices()))
	require.Equal(t, "kueue", is.GetReleases()[0].GetName())
	require.Equal(t, "v1.15.1", is.GetReleases()[1].GetVersion())
	sources := map[string]apportionv1.PolicySource{}
	for _, p := range is.GetPolicies() {
		sources[p.GetName()] = p.GetSource()
		in := &apportionv1.Input{
			Source: &apportionv1.Input_Snapshot{Snapshot: servicetest.Snapshot(1)}, Rule: &apportionv1.Input_PolicyName{PolicyName: p.GetName()},
		}
		answer, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: in})
		require.NoError(t, err)
		require.Equal(t, answer.GetBasis().GetPolicyDigest(), p.GetDigest())
	}
	require.Equal(t, apportionv1.PolicySource_POLICY_SOURCE_PRESET, sources["fair"])
	require.Equal(t, apportionv1.PolicySource_POLICY_SOURCE_CONFIGURED, sources["mine"])
	require.Equal(t, apportionv1.PolicySource_POLICY_SOURCE_CONFIGURED, sources["volcano"], "it has the name of a preset")
	limits := map[string]*int64{}
	for _, limit := range is.GetLimits() {
		limits[limit.GetName()] = limit.Maximum
	}
	require.EqualValues(t, 7, *limits["steps"])
	require.EqualValues(t, 30_000, *limits["deadline.message"])
	require.Contains(t, limits, "overload.calls")
	require.Nil(t, limits["upload_time"])
	_, err = r.Simulate(t.Context(), &apportionv1.SimulateRequest{Steps: make([]*apportionv1.Step, 8)})
	fields, _ := requireFault(t, err, codes.OutOfRange, "LIMIT_EXCEEDED")
	require.Equal(t, "7", fields["maximum"])
	require.Contains(t, limits, fields["limit"])
}

func TestASessionIsOpenedOnAKeptSnapshot(t *testing.T) {
	r := servicetest.Start(t, service.Options{})
	keep(t, r.Server.Keep("cluster", "", asOfAnHourAgo), servicetest.Snapshot(1))
	stream, err := r.RunSession(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&apportionv1.RunSessionRequest{Message: &apportionv1.RunSessionRequest_Open{Open: &apportionv1.OpenSession{
		Input: sharesOf(&apportionv1.Input_SnapshotName{SnapshotName: "cluster"}, nil).GetInput(),
	}}}))
	opened, err := stream.Recv()
	require.NoError(t, err)
	require.Equal(t, "cluster", opened.GetOpened().GetBasis().GetView().GetName())
}

func TestACallerWhoMayNotAskAboutAKeptSnapshotLearnsNothingOfIt(t *testing.T) {
	errDenied := status.Error(codes.PermissionDenied, "no")
	allowed := errors.New("nothing is denied")
	permit := errDenied
	r := servicetest.Start(t, service.Options{PermitSnapshot: func(context.Context, string) error {
		if errors.Is(permit, allowed) {
			return nil
		}
		return permit
	}})
	k := r.Server.Keep("cluster", "", asOfAnHourAgo)
	keep(t, k, servicetest.Snapshot(1))
	permit = allowed
	got, err := r.Named(t.Context(), "cluster")
	require.NoError(t, err)
	digest := got.View.GetDigest()
	changed := r.UploadChange(t, digest, &apportionv1.Change{AsOf: proto.Int64(1)})
	_, err = r.EvaluateShares(t.Context(), sharesOf(&apportionv1.Input_SnapshotDigest{SnapshotDigest: changed}, nil))
	require.NoError(t, err)

	permit = errDenied
	_, err = r.EvaluateShares(t.Context(), sharesOf(&apportionv1.Input_SnapshotName{SnapshotName: "cluster"}, nil))
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	_, err = r.Named(t.Context(), "cluster")
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	_, err = r.EvaluateShares(t.Context(), sharesOf(&apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, nil))
	requireFault(t, err, codes.FailedPrecondition, "SNAPSHOT_NOT_FOUND")
	_, err = r.EvaluateShares(t.Context(), sharesOf(&apportionv1.Input_SnapshotDigest{SnapshotDigest: changed}, nil))
	requireFault(t, err, codes.FailedPrecondition, "SNAPSHOT_NOT_FOUND")
	list, err := r.ListSnapshots(t.Context(), &apportionv1.ListSnapshotsRequest{})
	require.NoError(t, err)
	require.Empty(t, list.GetSnapshots())
}

func TestASnapshotBeyondTheLimitsLeavesTheVersionThatIsThere(t *testing.T) {
	r := servicetest.Start(t, service.Options{Limit: setting.Limit{Nodes: 8}})
	k := r.Server.Keep("cluster", "", asOfAnHourAgo)
	keep(t, k, servicetest.Snapshot(1))
	large := servicetest.Snapshot(2)
	large.Nodes = append(large.Nodes, &apportionv1.Node{Name: "one-too-many"})
	data, err := proto.Marshal(large)
	require.NoError(t, err)
	require.Equal(t, codes.OutOfRange, status.Code(k.Put(t.Context(), data, &apportionv1.SnapshotView{})))
	got, err := r.Named(t.Context(), "cluster")
	require.NoError(t, err)
	require.Len(t, got.Snapshot.GetNodes(), 8)
	require.Positive(t, k.Bytes())
}

func TestACallerOfAnotherClusterLearnsNothingOfASnapshotThatIsNotThereYet(t *testing.T) {
	r := servicetest.Start(t, service.Options{Permit: func(_ context.Context, cluster string) error {
		if cluster == "west" {
			return nil
		}
		return status.Error(codes.PermissionDenied, "no")
	}})
	fault := func(view *apportionv1.SnapshotView) {
		view.Kinds = []*apportionv1.ViewedKind{{Resource: "pods", Fault: "10.0.0.1 refuses"}}
	}
	r.Server.Keep("mine", "west", fault)
	r.Server.Keep("other", "east", fault)
	list, err := r.ListSnapshots(t.Context(), &apportionv1.ListSnapshotsRequest{})
	require.NoError(t, err)
	require.Len(t, list.GetSnapshots(), 1)
	require.Equal(t, "mine", list.GetSnapshots()[0].GetName())
	for name, code := range map[string]codes.Code{"mine": codes.Unavailable, "other": codes.PermissionDenied} {
		_, err := r.Named(t.Context(), name)
		require.Equal(t, code, status.Code(err))
		require.Equal(t, name == "mine", strings.Contains(err.Error(), "10.0.0.1 refuses"))
		_, err = r.EvaluateShares(t.Context(), sharesOf(&apportionv1.Input_SnapshotName{SnapshotName: name}, nil))
		require.Equal(t, code, status.Code(err))
		require.Equal(t, name == "mine", strings.Contains(err.Error(), "10.0.0.1 refuses"))
	}
}
