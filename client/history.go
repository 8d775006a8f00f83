package client

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
)

// History returns since when jobs wait for what, and what queues deserved and held, in a snapshot that the service maintains. It depends on
// how long the asked server runs. A server of an older version fails with UNIMPLEMENTED.
func (c *Client) History(ctx context.Context, asked *apportionv1alpha1.GetHistoryRequest) (*apportionv1alpha1.GetHistoryResponse, error) {
	if c.remote == nil {
		return nil, status.Error(codes.FailedPrecondition, "no service is asked, so there is no history of snapshot "+asked.GetName())
	}
	ctx, cancel := c.within(ctx, KindUpload)
	defer cancel()
	return again(ctx, c, KindUpload, func() (*apportionv1alpha1.GetHistoryResponse, error) { return c.remote.GetHistory(ctx, asked) })
}
