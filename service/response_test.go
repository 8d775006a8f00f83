package service

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// named is a response with so many queues of a name.
func named(name string, queues int) *apportionv1.EvaluateSharesResponse {
	plugin := &apportionv1.PluginShares{Plugin: "proportion"}
	for i := range queues {
		plugin.Queues = append(plugin.Queues, &apportionv1.QueueShare{Queue: uint32(i), Name: name})
	}
	return &apportionv1.EvaluateSharesResponse{Shares: &apportionv1.SharesAnswer{Plugins: []*apportionv1.PluginShares{plugin}}}
}

func TestResponsesOfAnySizeAreEncodedAsTheLibraryDoes(t *testing.T) {
	for _, queues := range []int{0, 1, 10, 100, 1000, 10_000} {
		response := named("research", queues)
		data, ok, err := marshal(response)
		require.NoError(t, err)
		require.True(t, ok)
		want, err := proto.Marshal(response)
		require.NoError(t, err)
		require.Equal(t, want, data.Materialize())
		data.Free()
	}
}

func TestMemoryOfAResponseIsNotUsedAgainBeforeItIsFreed(t *testing.T) {
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			name := strings.Repeat(string(rune('a'+caller)), 50)
			response := named(name, 100)
			want, err := proto.Marshal(response)
			require.NoError(t, err)
			for range 50 {
				first, _, err := marshal(response)
				require.NoError(t, err)
				second, _, err := marshal(named("another", 200))
				require.NoError(t, err)
				second.Free()
				require.Equal(t, want, first.Materialize())
				first.Free()
			}
		})
	}
	callers.Wait()
}
