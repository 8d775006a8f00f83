package client

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// chunkSize is how much of a snapshot one message carries.
const chunkSize = 256 << 10

// Upload is a snapshot that was sent once and is named by its digest from then on. Questions about it send it again by themselves to a
// replica that does not hold it. It is safe for concurrent use; the snapshot must not change any more.
type Upload struct {
	snapshot *apportionv1.Snapshot
	digest   string
	// data is what is sent; nil in process, where nothing is sent.
	data []byte
}

// Digest is the SHA-256 of the bytes that were sent; empty in process.
func (u *Upload) Digest() string { return u.digest }

// Upload sends a snapshot, for use in Input. It pays where more than one question is asked about it.
func (c *Client) Upload(ctx context.Context, snapshot *apportionv1.Snapshot) (*Upload, error) {
	if c.remote == nil {
		return &Upload{snapshot: snapshot}, nil
	}
	data, err := proto.Marshal(snapshot)
	if err != nil {
		return nil, err
	}
	u := &Upload{snapshot: snapshot, digest: wire.Digest(data), data: data}
	return u, c.send(ctx, u)
}

// replicas is how many replicas a snapshot is sent to for the sake of one question.
const replicas = 8

// send uploads the bytes, to another replica if one is lost meanwhile.
func (c *Client) send(ctx context.Context, u *Upload) error {
	ctx, cancel := c.within(ctx, KindUpload)
	defer cancel()
	_, err := again(ctx, c, KindUpload, func() (struct{}, error) { return struct{}{}, c.sendOnce(ctx, u) })
	return err
}

// sendOnce uploads the bytes. The digest is announced, so that a server which holds them need not wait for them.
func (c *Client) sendOnce(ctx context.Context, u *Upload) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.remote.UploadSnapshot(ctx)
	if err != nil {
		return err
	}
	header := &apportionv1.UploadHeader{Digest: u.digest, Size: uint64(len(u.data))}
	err = stream.Send(&apportionv1.UploadSnapshotRequest{Message: &apportionv1.UploadSnapshotRequest_Header{Header: header}})
	for start := 0; err == nil; start += chunkSize {
		end := min(start+chunkSize, len(u.data))
		chunk := &apportionv1.SnapshotChunk{Data: u.data[start:end], Last: end == len(u.data)}
		err = stream.Send(&apportionv1.UploadSnapshotRequest{Message: &apportionv1.UploadSnapshotRequest_Chunk{Chunk: chunk}})
		if chunk.Last {
			break
		}
	}
	// io.EOF: the server has answered already; the answer says how.
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = stream.CloseAndRecv()
	return err
}

// call makes a unary call, and sends an uploaded snapshot again if the replica that was reached does not hold it.
func call[Q, A any](
	ctx context.Context, c *Client, kind Kind, in Input, ask func(context.Context, *Q, ...grpc.CallOption) (*A, error), request *Q,
) (*A, error) {
	if c.remote == nil {
		return ask(ctx, request)
	}
	// Another replica than the one that was sent the snapshot may be asked next.
	for range replicas {
		answer, err := again(ctx, c, kind, func() (*A, error) { return ask(ctx, request) })
		if in.Upload == nil || Reason(err) != apportionv1.ErrorReason_ERROR_REASON_SNAPSHOT_NOT_FOUND {
			return answer, err
		}
		if err := c.send(ctx, in.Upload); err != nil {
			return nil, err
		}
	}
	return ask(ctx, request)
}
