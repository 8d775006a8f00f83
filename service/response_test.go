package service

import (
	"bytes"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/service/admission"
)

// named is a response with so many queues of a name.
func named(name string, queues int) *apportionv1.EvaluateSharesResponse {
	plugin := &apportionv1.PluginShares{Plugin: "proportion"}
	for i := range queues {
		plugin.Queues = append(plugin.Queues, &apportionv1.QueueShare{Queue: uint32(i), Name: name})
	}
	return &apportionv1.EvaluateSharesResponse{Shares: &apportionv1.SharesAnswer{Plugins: []*apportionv1.PluginShares{plugin}}}
}

// marshal books a response and encodes it.
func marshal(t *testing.T, o *outbox, response proto.Message) mem.BufferSlice {
	t.Helper()
	r, err := o.reserve(t.Context(), int64(proto.Size(response)), admission.Forever)
	require.NoError(t, err)
	r.response = response
	data, err := newCodec(o).Marshal(r)
	require.NoError(t, err)
	return data
}

func newOutbox() *outbox {
	return &outbox{budget: admission.NewBudget(admission.BudgetOptions{Name: "overload.answers", Bytes: 64 << 20})}
}

func TestResponsesOfAnySizeAreEncodedAsTheLibraryDoes(t *testing.T) {
	o := newOutbox()
	for _, queues := range []int{0, 1, 10, 100, 1000, 10_000} {
		for _, response := range []proto.Message{
			named("research", queues), &apportionv1.UploadSnapshotResponse{Digest: strings.Repeat("d", queues)},
		} {
			data := marshal(t, o, response)
			want, err := proto.Marshal(response)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, data.Materialize()))
			require.GreaterOrEqual(t, o.budget.Used(), int64(max(len(want), leastBytes)))
			data.Free()
			require.Zero(t, o.budget.Used())
		}
	}
}

func TestMemoryOfAResponseIsNotUsedAgainBeforeItIsFreed(t *testing.T) {
	var callers sync.WaitGroup
	o := newOutbox()
	for caller := range 8 {
		callers.Go(func() {
			name := strings.Repeat(string(rune('a'+caller)), 50)
			response := named(name, 100)
			want, err := proto.Marshal(response)
			require.NoError(t, err)
			for range 50 {
				first, second := marshal(t, o, response), marshal(t, o, named("another", 200))
				second.Free()
				require.Equal(t, want, first.Materialize())
				first.Free()
			}
		})
	}
	callers.Wait()
}

func TestASmallResponseKeepsNoMoreThanIsBookedForIt(t *testing.T) {
	o := newOutbox()
	marshal(t, o, named("large", 50_000)).Free()
	var kept []mem.BufferSlice
	for range 10 {
		kept = append(kept, marshal(t, o, named("small", 10)))
	}
	require.EqualValues(t, 10*leastBytes, o.budget.Used())
	for _, data := range kept {
		buffer := data[0].ReadOnlyData()
		require.Less(t, cap(buffer), leastBytes)
		data.Free()
	}
	require.Zero(t, o.budget.Used())
}

// TestMemoryOfEveryResponseIsGivenBack encodes responses for which the exact size, more or less is booked, each in the memory of the one
// before.
func TestMemoryOfEveryResponseIsGivenBack(t *testing.T) {
	o := newOutbox()
	encode := func(queues int, book func(size int64) int64) {
		response := named("q", queues)
		size := int64(proto.Size(response))
		r, err := o.reserve(t.Context(), size, admission.Forever)
		require.NoError(t, err)
		part := &reply{}
		r.part(part, book(size))
		r.Release()
		part.response = response
		data, err := newCodec(o).Marshal(part)
		require.NoError(t, err)
		require.Len(t, data.Materialize(), int(size))
		require.Positive(t, o.budget.Used())
		data.Free()
		require.Zero(t, o.budget.Used(), "%d bytes", size)
	}
	for queues := 1; queues < 2000; queues = 5*queues/4 + 1 {
		// Nothing is kept from before.
		runtime.GC()
		runtime.GC()
		encode(queues, func(int64) int64 { return 0 })
		encode(1, func(size int64) int64 { return size })
		encode(queues, func(size int64) int64 { return size })
		encode(queues, func(size int64) int64 { return size / 2 })
		encode(1, func(size int64) int64 { return 4 * size })
	}
}
