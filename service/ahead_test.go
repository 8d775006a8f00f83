package service

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// TestBatchesAreTakenInTheOrderInWhichTheyCameAndNoMoreThanPromisedAreAhead compares ahead with a plain list.
func TestBatchesAreTakenInTheOrderInWhichTheyCameAndNoMoreThanPromisedAreAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 40).Draw(t, "most")
		a := newAhead(most)
		var put, taken, done uint64
		var ahead []int64
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				length := rapid.SampledFrom([]int64{0, 13, pendingBytes / 3, 2 * pendingBytes}).Draw(t, "length")
				next := arrival{batch: &apportionv1.StepBatch{Id: put}, message: message{length: length}}
				counted, sum := min(length, pendingBytes), int64(0)
				for _, bytes := range ahead {
					sum += bytes
				}
				fits := len(ahead) == 0 || len(ahead) < most && sum+counted <= pendingBytes
				require.Equal(t, fits, a.add(&next))
				if fits {
					put++
					ahead = append(ahead, counted)
				}
			},
			"take": func(t *rapid.T) {
				batches := a.take()
				require.Len(t, batches, int(min(put-taken, group)))
				for i := range batches {
					require.Equal(t, taken, batches[i].batch.GetId())
					taken++
				}
				for len(batches) > 0 {
					n := rapid.IntRange(1, len(batches)).Draw(t, "done")
					a.done(batches[:n])
					ahead, batches = ahead[n:], batches[n:]
					done += uint64(n)
				}
			},
			"": func(t *rapid.T) { require.LessOrEqual(t, cap(a.queue), 2*most+2) },
		})
	})
}

func TestAReaderThatFindsNoRoomGoesOnWhenABatchIsDoneOrTheStreamEnds(t *testing.T) {
	a := newAhead(1)
	ctx, cancel := context.WithCancel(t.Context())
	require.True(t, a.put(ctx, arrival{}))
	second := make(chan bool)
	go func() { second <- a.put(ctx, arrival{}) }()
	<-a.arrived
	a.done(a.take())
	require.True(t, <-second)
	go func() { second <- a.put(ctx, arrival{}) }()
	cancel()
	require.False(t, <-second)
}
