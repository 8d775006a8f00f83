package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/apportion/apportion/client"
)

func TestAnErrorOfACallIsDescribedByItsMessage(t *testing.T) {
	gone := status.Error(codes.Unavailable, "no server answers")
	for want, err := range map[string]error{
		"no server answers":                  gone,
		"b.yaml: no server answers":          fmt.Errorf("b.yaml: %w", gone),
		"not known; no server answers":       fmt.Errorf("%w; %w", errors.New("not known"), gone),
		"desc = rpc error: code = OK desc =": status.Error(codes.Internal, "desc = rpc error: code = OK desc ="),
		"context canceled":                   context.Canceled,
	} {
		require.Equal(t, want, client.Describe(err))
	}
}
