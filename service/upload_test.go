package service_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/service/servicetest"
)

func header(digest string, size int) *apportionv1.UploadSnapshotRequest {
	return &apportionv1.UploadSnapshotRequest{Message: &apportionv1.UploadSnapshotRequest_Header{
		Header: &apportionv1.UploadHeader{Digest: digest, Size: uint64(size)},
	}}
}

func chunk(data string, last bool) *apportionv1.UploadSnapshotRequest {
	return &apportionv1.UploadSnapshotRequest{Message: &apportionv1.UploadSnapshotRequest_Chunk{
		Chunk: &apportionv1.SnapshotChunk{Data: []byte(data), Last: last},
	}}
}

// upload sends messages and returns the answer.
func upload(
	ctx context.Context, t *testing.T, r *replica, messages ...*apportionv1.UploadSnapshotRequest,
) (*apportionv1.UploadSnapshotResponse, error) {
	t.Helper()
	stream, err := r.UploadSnapshot(ctx)
	require.NoError(t, err)
	for _, m := range messages {
		if stream.Send(m) != nil {
			break
		}
	}
	return stream.CloseAndRecv()
}

// encoded is a small snapshot as bytes.
func encoded(t *testing.T) string {
	t.Helper()
	data, err := proto.Marshal(inputOf(t).GetSnapshot())
	require.NoError(t, err)
	return string(data)
}

// byDigest is the input of tests with its snapshot named by digest.
func byDigest(t *testing.T, digest string) *apportionv1.Input {
	t.Helper()
	in := inputOf(t)
	in.Source = &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}
	return in
}

func TestAnUploadedSnapshotIsNamedByDigest(t *testing.T) {
	r := start(t, service.Options{})
	data := encoded(t)
	digest := decode.Digest([]byte(data))

	_, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: byDigest(t, digest)})
	fields, _ := requireFault(t, err, codes.FailedPrecondition, "SNAPSHOT_NOT_FOUND")
	require.Equal(t, map[string]string{"field": "input.snapshot_digest"}, fields)

	response, err := upload(t.Context(), t, r, header("", 0), chunk(data[:10], false), chunk("", false), chunk(data[10:], true))
	require.NoError(t, err)
	require.True(t, proto.Equal(&apportionv1.UploadSnapshotResponse{Digest: digest, Size: uint64(len(data))}, response))

	inline, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: inputOf(t)})
	require.NoError(t, err)
	inline.GetBasis().SnapshotDigest = digest
	for range 3 {
		named, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: byDigest(t, digest)})
		require.NoError(t, err)
		require.True(t, proto.Equal(inline, named))
	}

	response, err = upload(t.Context(), t, r, header(digest, len(data)))
	require.NoError(t, err)
	require.True(t, response.GetAlreadyHeld())
	response, err = upload(t.Context(), t, r, header("", 0), chunk(data, true))
	require.NoError(t, err)
	require.True(t, response.GetAlreadyHeld())
	require.Equal(t, 1.0, metric(t, r, "apportion_model_cache_compiled_total"))
	require.Equal(t, 1.0, metric(t, r, "apportion_model_cache_entries"))
	require.Equal(t, 3.0, metric(t, r, "apportion_model_cache_requests_total", "result", "hit"))
	require.Equal(t, 1.0, metric(t, r, "apportion_model_cache_requests_total", "result", "miss"))
	require.Zero(t, metric(t, r, "apportion_receiving_bytes"))
}

func TestAnUploadThatBreaksTheRulesIsRefused(t *testing.T) {
	data := encoded(t)
	digest := decode.Digest([]byte(data))
	other := "sha256:" + strings.Repeat("0", 64)
	type messages = []*apportionv1.UploadSnapshotRequest
	for _, c := range []struct {
		name     string
		messages messages
		code     codes.Code
		reason   string
	}{
		{"nothing is sent", nil, codes.InvalidArgument, "PROTOCOL"},
		{"a chunk comes first", messages{chunk(data, true)}, codes.InvalidArgument, "PROTOCOL"},
		{"an empty message", messages{{}}, codes.InvalidArgument, "PROTOCOL"},
		{"two headers", messages{header("", 0), header("", 0)}, codes.InvalidArgument, "PROTOCOL"},
		{"no last chunk", messages{header("", 0), chunk(data, false)}, codes.InvalidArgument, "PROTOCOL"},
		{"fewer bytes than announced", messages{header("", len(data)+1), chunk(data, true)}, codes.InvalidArgument, "PROTOCOL"},
		{"more bytes than announced", messages{header("", len(data)-1), chunk(data, true)}, codes.InvalidArgument, "PROTOCOL"},
		{"differs from the announced one", messages{header(other, 0), chunk(data, true)}, codes.InvalidArgument, "DIGEST_MISMATCH"},
		{"no digest", messages{header("sha256:12", 0), chunk(data, true)}, codes.InvalidArgument, "INVALID_REQUEST"},
		{"a digest in capitals", messages{header(strings.ToUpper(digest), 0)}, codes.InvalidArgument, "INVALID_REQUEST"},
		{"too much is announced", messages{header("", 10_001)}, codes.OutOfRange, "LIMIT_EXCEEDED"},
		{
			"too much comes",
			messages{header("", 0), chunk(strings.Repeat("x", 6000), false), chunk(strings.Repeat("x", 6000), true)},
			codes.OutOfRange, "LIMIT_EXCEEDED",
		},
		{"bytes that are no snapshot", messages{header("", 0), chunk("\xff\xff", true)}, codes.InvalidArgument, "INVALID_SNAPSHOT"},
		{"a faulty snapshot", messages{header("", 0), chunk("\x2a\x00", true)}, codes.InvalidArgument, "INVALID_SNAPSHOT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, service.Options{Limit: setting.Limit{SnapshotBytes: 10_000}})
			_, err := upload(t.Context(), t, r, c.messages...)
			requireFault(t, err, c.code, c.reason)
			require.Zero(t, metric(t, r, "apportion_model_cache_entries"))
			require.Zero(t, metric(t, r, "apportion_receiving_bytes"))
		})
	}
}

func TestASnapshotBeyondTheQuotaIsNotHeld(t *testing.T) {
	r := start(t, service.Options{Limit: setting.Limit{IdentityBytes: 100}})
	_, err := upload(t.Context(), t, r, header("", 0), chunk(encoded(t), true))
	fields, _ := requireFault(t, err, codes.OutOfRange, "LIMIT_EXCEEDED")
	require.Equal(t, map[string]string{"limit": "identity_bytes", "value": "153", "maximum": "100"}, fields)
}

func TestTooManyUploadsAtATimeAreToldToComeBack(t *testing.T) {
	r := start(t, service.Options{Limit: setting.Limit{ReceivingBytes: 100}})
	_, err := upload(t.Context(), t, r, header("", 0), chunk(encoded(t), true))
	requireFault(t, err, codes.ResourceExhausted, "OVERLOADED")
	details := status.Convert(err).Details()
	retry, ok := details[len(details)-1].(*errdetails.RetryInfo)
	require.True(t, ok)
	require.Equal(t, time.Second, retry.GetRetryDelay().AsDuration())
}

// named is an interceptor that takes the identity from a header.
func named() service.Options {
	identify := func(ctx context.Context) context.Context {
		in, _ := metadata.FromIncomingContext(ctx)
		if who := in.Get("who"); len(who) > 0 {
			return service.WithIdentity(ctx, who[0])
		}
		return ctx
	}
	return service.Options{
		Unary: []grpc.UnaryServerInterceptor{
			func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
				return handle(identify(ctx), request)
			},
		},
		Stream: []grpc.StreamServerInterceptor{
			func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
				return handle(srv, inContext{stream, identify(stream.Context())})
			},
		},
	}
}

type inContext struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // A stream has its context.
}

func (s inContext) Context() context.Context { return s.ctx }

func TestADigestOpensNothingToOthers(t *testing.T) {
	r := start(t, named())
	as := func(who string) context.Context { return metadata.AppendToOutgoingContext(t.Context(), "who", who) }
	data := encoded(t)
	digest := decode.Digest([]byte(data))
	_, err := upload(as("ann"), t, r, header("", 0), chunk(data, true))
	require.NoError(t, err)
	ask := func(who string) error {
		_, err := r.EvaluateShares(as(who), &apportionv1.EvaluateSharesRequest{Input: byDigest(t, digest)})
		return err
	}
	require.NoError(t, ask("ann"))
	requireFault(t, ask("bob"), codes.FailedPrecondition, "SNAPSHOT_NOT_FOUND")
	response, err := upload(as("bob"), t, r, header(digest, 0), chunk(data, true))
	require.NoError(t, err)
	require.False(t, response.GetAlreadyHeld(), "the answer does not disclose that ann holds it")
}

func TestConcurrentUploadsOfTheSameBytesAreCompiledOnce(t *testing.T) {
	r := start(t, service.Options{})
	data := encoded(t)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := upload(t.Context(), t, r, header("", 0), chunk(data, true))
			if err != nil {
				t.Error(err)
			}
			_, err = r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: byDigest(t, decode.Digest([]byte(data)))})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Equal(t, 1.0, metric(t, r, "apportion_model_cache_compiled_total"))
}

func TestASnapshotThatTheProgramHoldsIsNamedByDigest(t *testing.T) {
	r := servicetest.Start(t, service.Options{})
	snapshot := servicetest.Snapshot(1)
	data, err := proto.Marshal(snapshot)
	require.NoError(t, err)
	digest, err := r.Server.Hold(t.Context(), data)
	require.NoError(t, err)
	require.Equal(t, digest, r.Upload(t, snapshot), "the digest is that of an upload")
	answer, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: &apportionv1.Input{
		Source: &apportionv1.Input_SnapshotDigest{SnapshotDigest: digest}, Rule: &apportionv1.Input_Policy{Policy: servicetest.Proportion()},
	}})
	require.NoError(t, err)
	require.Equal(t, digest, answer.GetBasis().GetSnapshotDigest())
}

func TestWhatIsNoSnapshotIsNotHeld(t *testing.T) {
	r := servicetest.Start(t, service.Options{})
	_, err := r.Server.Hold(t.Context(), []byte("x"))
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	small := servicetest.Start(t, service.Options{Limit: setting.Limit{CacheBytes: 1 << 10}})
	data, err := proto.Marshal(servicetest.Snapshot(1))
	require.NoError(t, err)
	_, err = small.Server.Hold(t.Context(), data)
	require.Equal(t, codes.OutOfRange, status.Code(err))
}

// long returns a snapshot that is large enough to be compiled in the memory that received it.
func long(t *testing.T) string {
	t.Helper()
	snapshot := inputOf(t).GetSnapshot()
	for range 100 {
		snapshot.Nodes = append(snapshot.Nodes, &apportionv1.Node{Name: strings.Repeat("n", 400+len(snapshot.GetNodes()))})
	}
	data, err := proto.Marshal(snapshot)
	require.NoError(t, err)
	return string(data)
}

func TestALongOnlyChunkIsReadHoweverItIsWritten(t *testing.T) {
	r := start(t, service.Options{})
	data := long(t)
	require.Greater(t, len(data), 32<<10)
	// Informative fields are passed over.
	informative := chunk(data, true)
	informative.GetChunk().ProtoReflect().SetUnknown([]byte{0xa0, 0x06, 1})
	for _, last := range []*apportionv1.UploadSnapshotRequest{chunk(data, true), informative} {
		response, err := upload(t.Context(), t, r, header("", len(data)), last)
		require.NoError(t, err)
		require.Equal(t, decode.Digest([]byte(data)), response.GetDigest())
		shares, err := r.EvaluateShares(t.Context(), &apportionv1.EvaluateSharesRequest{Input: byDigest(t, response.GetDigest())})
		require.NoError(t, err)
		require.NotEmpty(t, shares.GetShares().GetPlugins())
	}
}

func TestALongChunkThatIsNotTheLastOrNoSnapshotIsRefused(t *testing.T) {
	r := start(t, service.Options{})
	data := long(t)
	_, err := upload(t.Context(), t, r, header("", len(data)), chunk(data, false))
	require.Error(t, err)
	_, err = upload(t.Context(), t, r, header("", len(data)), chunk(strings.Repeat("\xff", len(data)), true))
	requireFault(t, err, codes.InvalidArgument, "INVALID_SNAPSHOT")
}
