package client

import (
	"context"
	"errors"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// ErrNotServing is returned by Health while a server starts or drains.
var ErrNotServing = errors.New("the server is not serving")

// Health returns nil if the server serves. In process it always returns nil.
func (c *Client) Health(ctx context.Context) error {
	if c.connections == nil {
		return nil
	}
	request := &healthv1.HealthCheckRequest{Service: apportionv1.ApportionService_ServiceDesc.ServiceName}
	response, err := healthv1.NewHealthClient(c.connections[0]).Check(ctx, request)
	if err != nil {
		return err
	}
	if response.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		return ErrNotServing
	}
	return nil
}
