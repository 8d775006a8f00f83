package client

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
)

// Usage returns who used what of the cluster of a snapshot that the service maintains, as its ledger says. A server of an older version
// fails with UNIMPLEMENTED.
func (c *Client) Usage(ctx context.Context, asked *apportionv1alpha1.GetUsageRequest) (*apportionv1alpha1.GetUsageResponse, error) {
	if c.remote == nil {
		return nil, status.Error(codes.FailedPrecondition, "no service is asked, so there is no ledger of snapshot "+asked.GetName())
	}
	ctx, cancel := c.within(ctx, KindUpload)
	defer cancel()
	return again(ctx, c, KindUpload, func() (*apportionv1alpha1.GetUsageResponse, error) { return c.remote.GetUsage(ctx, asked) })
}
