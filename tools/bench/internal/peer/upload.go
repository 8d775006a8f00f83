package peer

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// chunkBytes is the size of the Go client's chunks.
const chunkBytes = 1<<20 - 1<<10

// Upload lets the service hold an encoded snapshot, and returns its digest.
func Upload(ctx context.Context, conn *grpc.ClientConn, data []byte) (string, error) {
	return upload(ctx, conn, &apportionv1.UploadHeader{Digest: decode.Digest(data), Size: uint64(len(data))}, data)
}

// UploadChange uploads the encoded change of a snapshot that is held, and returns the digest of the result.
func UploadChange(ctx context.Context, conn *grpc.ClientConn, base string, data []byte) (string, error) {
	return upload(ctx, conn, &apportionv1.UploadHeader{BaseDigest: base, Size: uint64(len(data))}, data)
}

func upload(ctx context.Context, conn *grpc.ClientConn, header *apportionv1.UploadHeader, data []byte) (string, error) {
	stream, err := apportionv1.NewSnapshotServiceClient(conn).UploadSnapshot(ctx)
	if err != nil {
		return "", err
	}
	first := &apportionv1.UploadSnapshotRequest_Header{Header: header}
	if err := stream.Send(&apportionv1.UploadSnapshotRequest{Message: first}); err != nil {
		return "", err
	}
	for rest := data; len(rest) > 0; {
		n := min(chunkBytes, len(rest))
		chunk := &apportionv1.UploadSnapshotRequest_Chunk{Chunk: &apportionv1.SnapshotChunk{Data: rest[:n], Last: n == len(rest)}}
		err := stream.Send(&apportionv1.UploadSnapshotRequest{Message: chunk})
		if errors.Is(err, io.EOF) {
			// The server has answered: it holds the snapshot already, or has failed.
			break
		}
		if err != nil {
			return "", err
		}
		rest = rest[n:]
	}
	response, err := stream.CloseAndRecv()
	return response.GetDigest(), err
}

// Download reads the newest version of a snapshot that the service maintains, and returns its digest.
func Download(ctx context.Context, conn *grpc.ClientConn, name string) (string, error) {
	stream, err := apportionv1.NewSnapshotServiceClient(conn).DownloadSnapshot(ctx, &apportionv1.DownloadSnapshotRequest{
		Source: &apportionv1.DownloadSnapshotRequest_Name{Name: name},
	})
	if err != nil {
		return "", err
	}
	var digest string
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return digest, nil
		}
		if err != nil {
			return "", err
		}
		if header := response.GetHeader(); header != nil {
			digest = header.GetView().GetDigest()
		}
	}
}
