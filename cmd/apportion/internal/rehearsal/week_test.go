package rehearsal

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// cluster is so many nodes of eight GPUs, and queues a, b, c … of the given weights.
func cluster(nodes int, weights ...uint32) *apportionv1.Snapshot {
	s := client.NewSnapshot()
	for i := range nodes {
		s.Node(client.Node{
			Name:        fmt.Sprintf("n%04d", i),
			Allocatable: client.Resources{"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"},
		})
	}
	for i, weight := range weights {
		s.Queue(client.Queue{Name: string(rune('a' + i)), Weight: weight})
	}
	snapshot, err := s.Build()
	if err != nil {
		panic(err)
	}
	return snapshot
}

// drawn returns a random trace of jobs over a time, whose average load is the given part of the GPUs.
func drawn(seed uint64, jobs, queues, gpus int, seconds int64, load float64) *trace.Trace {
	draw := rand.New(rand.NewPCG(seed, 0))
	pick := func(choices ...int) int { return choices[draw.IntN(len(choices))] }
	t := &trace.Trace{}
	asked := 0.0
	for i := range jobs {
		each, tasks := pick(1, 1, 1, 2, 4, 8), pick(1, 1, 1, 1, 2, 4, 8, 16)
		job := trace.Job{
			Name: fmt.Sprintf("job-%05d", i), Queue: string(rune('a' + draw.IntN(queues))), Arrival: draw.Int64N(seconds),
			Priority: int32(pick(0, 0, 0, 10)), Min: pick(1, tasks, tasks), Seconds: 600 + int64(draw.ExpFloat64()*7200),
			Groups: []trace.Group{{Role: "task", Tasks: tasks, Request: []trace.Amount{
				{Resource: "cpu", Amount: float64(each) * 7000},
				{Resource: "memory", Amount: float64(each) * 60 * (1 << 30)},
				{Resource: "nvidia.com/gpu", Amount: float64(each) * 1000},
			}}},
		}
		asked += float64(each*tasks) * float64(job.Seconds)
		t.Jobs = append(t.Jobs, job)
	}
	scale := load * float64(gpus) * float64(seconds) / asked
	for i := range t.Jobs {
		t.Jobs[i].Seconds = max(int64(float64(t.Jobs[i].Seconds)*scale), 1)
	}
	t.Sort()
	return t
}

func preset(tb testing.TB, name string) *apportionv1.Policy {
	tb.Helper()
	policy, ok := client.Preset(name)
	require.True(tb, ok, name)
	return policy
}

func options(tb testing.TB) *Options {
	tb.Helper()
	return &Options{Every: 300, Resource: "nvidia.com/gpu", Entitlement: preset(tb, "proportion")}
}

// BenchmarkWeek runs a week of 50,000 jobs on 1,000 nodes under two policies at once, as the command does; in short mode half a day.
func BenchmarkWeek(b *testing.B) {
	span, arriving := int64(7*24*3600), 50_000
	if testing.Short() {
		span, arriving = span/14, arriving/14
	}
	snapshot := cluster(1000, 4, 3, 2, 1, 1)
	jobs := drawn(1, arriving, 5, 8000, span, .9)
	for _, names := range [][]string{{"proportion", "fair"}, {"proportion"}, {"fair"}, {"capacity"}} {
		b.Run(fmt.Sprint(names), func(b *testing.B) {
			for b.Loop() {
				var group errgroup.Group
				for _, name := range names {
					group.Go(func() error {
						began := time.Now()
						result, err := Run(b.Context(), &Variant{Name: name, Snapshot: snapshot, Policy: preset(b, name)}, jobs, options(b))
						if err == nil {
							b.Logf("%s: %v, %d rounds, %d evictions, %.3f in use, mean wait %.0f s, %d unfinished", name, time.Since(began).Round(time.Millisecond),
								result.Rounds, result.Evictions.Total, result.Use[0].Arriving, result.Waits.Mean, result.Unfinished)
						}
						return err
					})
				}
				require.NoError(b, group.Wait())
			}
		})
	}
}
