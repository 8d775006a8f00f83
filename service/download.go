package service

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

const (
	// downloadChunk is the number of bytes of a snapshot in one message. With the other fields, the message fits into the largest buffers
	// of gRPC's pool.
	downloadChunk = 1<<20 - 1<<10
	// pageSnapshots is the size of a page of snapshots that names none, and mostPageSnapshots the largest.
	pageSnapshots, mostPageSnapshots = 100, 1000
)

// ListSnapshots lists the snapshots that the caller may use, a page of them. The token of a page is the last name of the one before.
func (c *call) ListSnapshots(ctx context.Context, r *apportionv1.ListSnapshotsRequest) (*apportionv1.ListSnapshotsResponse, error) {
	s := c.server
	size := int(min(cmp.Or(r.GetPageSize(), pageSnapshots), mostPageSnapshots))
	kept, _ := s.kept.Load().(map[string]*Kept)
	out := &apportionv1.ListSnapshotsResponse{}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		k := kept[name]
		v := k.latest()
		if name <= r.GetPageToken() || s.mayAsk(ctx, name) != nil || s.permit(ctx, func() string { return k.clusterOf(v) }) != nil {
			continue
		}
		if len(out.GetSnapshots()) == size {
			out.NextPageToken = out.GetSnapshots()[size-1].GetName()
			break
		}
		view := k.viewOf(v)
		if v != nil && s.ownedBy(ctx, v.entry) != nil {
			new(Audience).redact(view)
		}
		out.Snapshots = append(out.Snapshots, view)
	}
	return out, nil
}

// DownloadSnapshot sends the bytes of a version of a kept snapshot in chunks.
func (c *call) DownloadSnapshot(
	r *apportionv1.DownloadSnapshotRequest, stream grpc.ServerStreamingServer[apportionv1.DownloadSnapshotResponse],
) error {
	ctx, s := stream.Context(), c.server
	e, err := s.downloaded(ctx, r)
	if err == nil {
		if limit := s.options.Limit.UploadTime; limit > 0 {
			timer := time.AfterFunc(limit, func() { endCall(ctx, late("upload_time", limit, "the snapshot was not taken in time")) })
			defer timer.Stop()
		}
		err = send(ctx, e, stream.Send)
	}
	if err != nil {
		return s.fail(ctx, err)
	}
	return nil
}

// downloaded returns the version that a request names, to a caller that may see all of it.
func (s *Server) downloaded(ctx context.Context, r *apportionv1.DownloadSnapshotRequest) (*entry, error) {
	if r.GetDigest() != "" {
		if err := checkDigest(r.GetDigest(), "digest"); err != nil {
			return nil, err
		}
		e := s.keptVersion(ctx, r.GetDigest())
		if e == nil {
			return nil, notHeld("digest", "the server holds no such version; name the snapshot")
		}
		if err := s.permit(ctx, func() string { return e.cluster }); err != nil {
			return nil, err
		}
		return e, s.whole(ctx, e, "digest")
	}
	if r.GetName() == "" {
		return nil, invalidRequest("source", "neither the name nor the digest of a snapshot is given")
	}
	v, err := s.newestOf(ctx, r.GetName(), "name")
	if err != nil {
		return nil, err
	}
	s.keptNamed(r.GetName()).hold(v, TenantOf(ctx))
	return v.entry, nil
}

// send sends the header of a version and its bytes, as far as the client takes them.
func send(ctx context.Context, e *entry, to func(*apportionv1.DownloadSnapshotResponse) error) error {
	header := &apportionv1.DownloadHeader{View: e.viewed(), Size: uint64(len(e.data))}
	err := to(&apportionv1.DownloadSnapshotResponse{Message: &apportionv1.DownloadSnapshotResponse_Header{Header: header}})
	for rest, last := e.data, false; err == nil && !last; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(len(rest), downloadChunk)
		last = n == len(rest)
		chunk := &apportionv1.SnapshotChunk{Data: rest[:n], Last: last}
		err = to(&apportionv1.DownloadSnapshotResponse{Message: &apportionv1.DownloadSnapshotResponse_Chunk{Chunk: chunk}})
		rest = rest[n:]
	}
	return err
}
