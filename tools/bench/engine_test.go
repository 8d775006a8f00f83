package bench_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/engine/resource"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/tools/bench/internal/fixture"
)

// each runs a benchmark for every policy.
func each(b *testing.B, run func(*testing.B, *subject)) {
	b.Helper()
	for _, policy := range policies {
		b.Run(policy, func(b *testing.B) {
			s := open(b, policy)
			b.ReportAllocs()
			run(b, s)
		})
	}
}

// BenchmarkOpen makes a session from a model: every plugin's sums and division, what Volcano does in OnSessionOpen.
func BenchmarkOpen(b *testing.B) {
	for _, policy := range policies {
		b.Run(policy, func(b *testing.B) {
			m, p := modelFor(b, policy), rule(b, policy)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := engine.Open(m, p, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkShares reads the shares of all queues.
func BenchmarkShares(b *testing.B) {
	each(b, func(b *testing.B, s *subject) {
		b.Helper()
		dividers := s.Dividers()
		for b.Loop() {
			s.shares(dividers)
		}
	})
}

// BenchmarkQueueOrder sorts all queues with jobs by priority of service.
func BenchmarkQueueOrder(b *testing.B) {
	each(b, func(b *testing.B, s *subject) {
		b.Helper()
		for b.Loop() {
			s.Order().SortQueues(s.View().Busy())
		}
	})
}

// BenchmarkEnqueueable1000 asks for a thousand jobs whether they may enter, and takes the permits back.
func BenchmarkEnqueueable1000(b *testing.B) {
	each(b, func(b *testing.B, s *subject) {
		b.Helper()
		mark := s.Mark()
		for b.Loop() {
			for _, j := range s.jobs {
				s.Job(j).Enqueueable(nil)
			}
			if err := s.Rollback(mark); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkAllocatable1000 asks for a thousand tasks whether their queues may use that much more.
func BenchmarkAllocatable1000(b *testing.B) {
	each(b, func(b *testing.B, s *subject) {
		b.Helper()
		for b.Loop() {
			for _, t := range s.pending {
				s.Allocatable(s.list(t), 0, nil, nil)
			}
		}
	})
}

// BenchmarkWhatIf removes ten tasks, asks whether another could run, and rolls back.
func BenchmarkWhatIf(b *testing.B) {
	each(b, func(b *testing.B, s *subject) {
		b.Helper()
		mark := s.Mark()
		for b.Loop() {
			if !s.whatIf(mark) {
				b.Fatal("an event was refused")
			}
		}
	})
}

// BenchmarkReclaim100 chooses victims among a hundred candidates, with the grounds on which others are spared.
func BenchmarkReclaim100(b *testing.B) {
	each(b, func(b *testing.B, s *subject) {
		b.Helper()
		claim := &policy.Claim{Tasks: []model.TaskID{s.claimant}, Candidates: s.candidates}
		for b.Loop() {
			s.Reclaim().Choose(claim, false)
		}
	})
}

// BenchmarkDeserved accounts for many queues and divides among them in eight dimensions. ns/queue-round is the time of one queue in one
// round.
func BenchmarkDeserved(b *testing.B) {
	for _, queues := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("queues=%d", queues), func(b *testing.B) {
			m := wide(b, queues)
			session, err := engine.Open(m, rule(b, "proportion"), nil)
			require.NoError(b, err)
			state, ok := session.Dividers()[0].State.(*proportion.State)
			require.True(b, ok)
			rounds := counter(0)
			_, err = state.Derive([]model.QueueID{}, &rounds)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (proportion.Plugin{}).Open(policy.NewView(m, nil)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(rounds), "rounds")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*int(rounds)*queues), "ns/queue-round")
		})
	}
}

// counter counts the rounds of a division.
type counter int

// Round receives the start of a round.
func (c *counter) Round(resource.Row, int64) error {
	*c++
	return nil
}

// Step receives what a round did for one queue.
func (*counter) Step(*proportion.Step) error { return nil }

// wide returns a model of so many queues and eight dimensions.
func wide(tb testing.TB, queues int) *model.Model {
	tb.Helper()
	m, err := compiled(generate.Shape{Queues: queues, Jobs: 2 * queues, Tasks: 10 * queues, Nodes: queues, Seed: 1, Dimensions: 8})
	require.NoError(tb, err)
	return m
}

// BenchmarkCall does all that the service does for a shares call between the bytes received and the messages of the answer.
func BenchmarkCall(b *testing.B) {
	for _, policy := range policies {
		b.Run(policy, func(b *testing.B) {
			shape := generate.Standard()
			if inTree(policy) {
				shape.Depth = 3
			}
			data, p := encoded(b, shape), message(b, policy)
			var decoder decode.Decoder
			require.NoError(b, answer(&decoder, data, p))
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := answer(&decoder, data, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecode compiles the bytes of snapshots in memory that is used again.
func BenchmarkDecode(b *testing.B) {
	for _, tasks := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("tasks=%d", tasks), func(b *testing.B) {
			data := encoded(b, fixture.Shape(tasks, 0))
			var decoder decode.Decoder
			_, err := decoder.Compile(data)
			require.NoError(b, err)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decoder.Compile(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
