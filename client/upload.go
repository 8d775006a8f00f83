package client

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// chunkSize is the number of bytes of a snapshot in one message. With the other fields, the message fits into the largest buffers of gRPC's
// pool.
const chunkSize = 1<<20 - 1<<10

// Upload is a snapshot that is sent once and then referred to by its digest. Questions about it automatically send it again to a replica
// that does not hold it. It is safe for concurrent use; the snapshot must not change any more.
type Upload struct {
	snapshot *apportionv1.Snapshot
	digest   string
	// base is the digest of the snapshot that data is a Change of, "" if data is a Snapshot.
	base string
	// data are the bytes to send; nil in process, and where the caller may not see all of the snapshot: then it cannot be sent.
	data []byte
	// compiled returns the snapshot as the engine reads it; nil if questions go to a service.
	compiled func() (*model.Model, error)
}

// Digest returns the SHA-256 of the sent bytes; empty in process.
func (u *Upload) Digest() string { return u.digest }

// Upload sends a snapshot, for use in Input. Use it for more than one question about a snapshot. In process the first question compiles it,
// and all others share the result.
func (c *Client) Upload(ctx context.Context, snapshot *apportionv1.Snapshot) (*Upload, error) {
	if c.remote == nil {
		return &Upload{
			snapshot: snapshot,
			compiled: sync.OnceValues(func() (*model.Model, error) { return decode.Compile(snapshot) }),
		}, nil
	}
	data, err := snapshot.MarshalVT()
	if err != nil {
		return nil, err
	}
	u := &Upload{snapshot: snapshot, digest: decode.Digest(data), data: data}
	_, err = c.send(ctx, u)
	return u, err
}

// replicas is the maximum number of replicas to which one question uploads a snapshot; after that the question contains it.
const replicas = 8

// send uploads the bytes, to another replica if one is lost meanwhile, and returns whether the replica held them already.
func (c *Client) send(ctx context.Context, u *Upload) (held bool, err error) {
	ctx, cancel := c.within(ctx, KindUpload)
	defer cancel()
	return again(ctx, c, KindUpload, func() (bool, error) { return c.sendOnce(ctx, u) })
}

// spread uploads the bytes to one more replica than the number that hold them, because round robin may send the next call to any replica.
func (c *Client) spread(ctx context.Context, u *Upload) error {
	for range replicas {
		if held, err := c.send(ctx, u); err != nil || !held {
			return err
		}
	}
	return nil
}

// sendOnce uploads the bytes. It announces the digest, so that a server that holds them can answer at once.
func (c *Client) sendOnce(ctx context.Context, u *Upload) (held bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.replica(ctx).UploadSnapshot(ctx)
	if err != nil {
		return false, err
	}
	header := &apportionv1.UploadHeader{Digest: u.digest, Size: uint64(len(u.data)), BaseDigest: u.base}
	err = stream.Send(&apportionv1.UploadSnapshotRequest{Message: &apportionv1.UploadSnapshotRequest_Header{Header: header}})
	for start := 0; err == nil; start += chunkSize {
		end := min(start+chunkSize, len(u.data))
		chunk := &apportionv1.SnapshotChunk{Data: u.data[start:end], Last: end == len(u.data)}
		err = stream.Send(&apportionv1.UploadSnapshotRequest{Message: &apportionv1.UploadSnapshotRequest_Chunk{Chunk: chunk}})
		if chunk.Last {
			break
		}
	}
	// io.EOF: the server has answered already.
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	response, err := stream.CloseAndRecv()
	return response.GetAlreadyHeld(), err
}

// Kept returns the newest version of a snapshot that the service maintains itself, for use in Input, with its age and completeness.
// Questions refer to it by digest; the client sends it to a replica that does not hold the version. For a caller that may see only its own
// queues, the Upload has these and their jobs, at their positions; what the caller may not see is empty.
func (c *Client) Kept(ctx context.Context, name string) (*Upload, *apportionv1.SnapshotView, error) {
	if c.remote == nil {
		return nil, nil, status.Error(codes.FailedPrecondition, "no service is asked, so there is no snapshot "+name)
	}
	ctx, cancel := c.within(ctx, KindUpload)
	defer cancel()
	u, err := again(ctx, c, KindUpload, func() (*downloaded, error) { return c.download(ctx, name) })
	if status.Code(err) == codes.PermissionDenied {
		if part, view := c.shown(ctx, name); part != nil {
			return part, view, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	snapshot := &apportionv1.Snapshot{}
	if err := proto.Unmarshal(u.data, snapshot); err != nil {
		return nil, nil, err
	}
	return &Upload{snapshot: snapshot, digest: u.view.GetDigest(), data: u.data}, u.view, nil
}

// downloaded is a snapshot of the service as it came.
type downloaded struct {
	view *apportionv1.SnapshotView
	data []byte
}

// download returns the newest version of a snapshot that the service maintains. Its digest is that of its bytes.
func (c *Client) download(ctx context.Context, name string) (*downloaded, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.remote.DownloadSnapshot(ctx, &apportionv1.DownloadSnapshotRequest{
		Source: &apportionv1.DownloadSnapshotRequest_Name{Name: name},
	})
	if err != nil {
		return nil, err
	}
	d := &downloaded{}
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if header := response.GetHeader(); header != nil {
			d.view = header.GetView()
		}
		d.data = append(d.data, response.GetChunk().GetData()...)
	}
	if digest := decode.Digest(d.data); digest != d.view.GetDigest() {
		return nil, status.Error(codes.DataLoss, "the bytes of snapshot "+name+" have the digest "+digest+", not "+d.view.GetDigest())
	}
	return d, nil
}

// Views returns the age and completeness of the snapshots that the service maintains and the caller may use, sorted by name. In process
// there are none.
func (c *Client) Views(ctx context.Context) ([]*apportionv1.SnapshotView, error) {
	if c.remote == nil {
		return nil, nil
	}
	ctx, cancel := c.within(ctx, KindUpload)
	defer cancel()
	var views []*apportionv1.SnapshotView
	for request := new(apportionv1.ListSnapshotsRequest); ; {
		page, err := again(ctx, c, KindUpload, func() (*apportionv1.ListSnapshotsResponse, error) {
			return c.remote.ListSnapshots(ctx, request)
		})
		views = append(views, page.GetSnapshots()...)
		if request.PageToken = page.GetNextPageToken(); err != nil || request.GetPageToken() == "" {
			return views, err
		}
	}
}

// Server returns what the service is: versions, policies, limits and services. In process there is none.
func (c *Client) Server(ctx context.Context) (*apportionv1.GetServerInfoResponse, error) {
	if c.remote == nil {
		return nil, status.Error(codes.FailedPrecondition, "no service is asked")
	}
	ctx, cancel := c.within(ctx, KindUpload)
	defer cancel()
	return again(ctx, c, KindUpload, func() (*apportionv1.GetServerInfoResponse, error) {
		return c.remote.GetServerInfo(ctx, &apportionv1.GetServerInfoRequest{})
	})
}

// Snapshot returns the uploaded snapshot.
func (u *Upload) Snapshot() *apportionv1.Snapshot { return u.snapshot }
