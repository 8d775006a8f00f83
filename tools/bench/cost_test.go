package bench_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/internal/setting"
	"github.com/apportion/apportion/service"
	"github.com/apportion/apportion/tools/bench/internal/peer"
)

// BenchmarkCost reports the processor time of what a scheduler asks, as cpu-ns/op, so that the builds of two commits can be compared in turns
// on a busy machine (scripts/bench-pair.sh). Each commit compiles its own version of this file. What two commits share are the names of the
// rows: a name keeps its meaning.
func BenchmarkCost(b *testing.B) {
	for _, rule := range []string{"proportion", "fair", "fair-tree"} {
		shape := generate.Standard()
		if inTree(rule) {
			shape.Depth = 3
		}
		data, p := encoded(b, shape), message(b, rule)
		b.Run("call/"+rule, func(b *testing.B) {
			var decoder decode.Decoder
			require.NoError(b, answer(&decoder, data, p))
			costs(b, func() { _ = answer(&decoder, data, p) })
		})
		b.Run("questions/"+rule, func(b *testing.B) {
			s := open(b, rule)
			s.questions()
			costs(b, s.questions)
		})
	}
	for _, rule := range []string{"proportion", "fair"} {
		b.Run("whole/"+rule, func(b *testing.B) {
			ask := overTheWire(b, rule, generate.Standard())
			costs(b, ask)
		})
	}
	b.Run("small/proportion", func(b *testing.B) {
		ask := overTheWire(b, "proportion", generate.Shape{Queues: 10, Jobs: 20, Tasks: 60, Nodes: 10, Seed: 1})
		costs(b, func() {
			for range 100 {
				ask()
			}
		})
	})
}

// overTheWire returns a function that asks a server of this build on a loopback port for all shares, from messages to messages, by the
// client of this build. Both run in this process, so that its processor time is that of both.
func overTheWire(b *testing.B, rule string, shape generate.Shape) func() {
	b.Helper()
	server, err := service.New(service.Options{Limit: setting.Limit{MessageBytes: peer.RequestBytes}})
	require.NoError(b, err)
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ended := make(chan error, 1)
	ctx, end := context.WithCancel(b.Context())
	go func() { ended <- server.Serve(ctx, l) }()
	asked, err := client.Dial(l.Addr().String(), client.WithPlaintext())
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, asked.Close())
		end()
		require.NoError(b, <-ended)
	})
	in := client.Input{Snapshot: generate.Snapshot(shape), Policy: message(b, rule)}
	ask := func() {
		_, err := asked.Shares(ctx, in, client.SharesQuestion{})
		require.NoError(b, err)
	}
	ask()
	return ask
}

// costs reports the processor time of one operation.
func costs(b *testing.B, operation func()) {
	b.Helper()
	before := processorTime()
	for b.Loop() {
		operation()
	}
	b.ReportMetric(float64((processorTime()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// questions asks for the order of queues, a thousand times whether a job may enter and a task may be allocated, and for victims; and
// places fifty tasks one by one.
func (s *subject) questions() {
	mark := s.Mark()
	s.Order().SortQueues(s.View().Busy())
	for _, j := range s.jobs {
		s.Job(j).Enqueueable(nil)
	}
	_ = s.Rollback(mark)
	for _, t := range s.pending {
		s.Allocatable(s.list(t), 0, nil, nil)
	}
	s.Reclaim().Choose(&policy.Claim{Tasks: []model.TaskID{s.claimant}, Candidates: s.candidates}, false)
	mark = s.Mark()
	for _, t := range s.pending[:50] {
		s.Order().SortQueues(s.View().Busy())
		s.Allocatable(s.list(t), policy.InSession, nil, nil)
		_ = s.Allocate(t, model.None)
	}
	_ = s.Rollback(mark)
}
