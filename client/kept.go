package client

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/wire"
)

// Kept returns the newest version of a snapshot that the service maintains itself, for use in Input, with its age and completeness.
// Questions refer to it by digest; the client sends it to a replica that does not hold the version.
func (c *Client) Kept(ctx context.Context, name string) (*Upload, *apportionv1.SnapshotView, error) {
	if c.remote == nil {
		return nil, nil, status.Error(codes.FailedPrecondition, "no service is asked, so there is no snapshot "+name)
	}
	ctx, cancel := c.within(ctx, KindUpload)
	defer cancel()
	response, err := again(ctx, c, KindUpload, func() (*apportionv1.GetSnapshotResponse, error) {
		return c.remote.GetSnapshot(ctx, &apportionv1.GetSnapshotRequest{Name: name})
	})
	if err != nil {
		return nil, nil, err
	}
	// The bytes equal those of the service if both use the same encoding. Otherwise the first question sends them.
	data, err := proto.Marshal(response.GetSnapshot())
	if err != nil {
		return nil, nil, err
	}
	return &Upload{snapshot: response.GetSnapshot(), digest: wire.Digest(data), data: data}, response.GetView(), nil
}

// Snapshot returns the uploaded snapshot.
func (u *Upload) Snapshot() *apportionv1.Snapshot { return u.snapshot }
