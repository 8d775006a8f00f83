package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/internal/generate"
	"github.com/apportion/apportion/wire"
)

// BenchmarkCost reports the processor time of what a scheduler asks, as cpu-ns/op, so that two builds can be compared in turns on a busy
// machine (scripts/bench-pair.sh). It uses nothing that older builds lack.
func BenchmarkCost(b *testing.B) {
	for _, rule := range []string{"proportion", "fair", "fair-tree"} {
		shape := generate.Standard()
		if inTree(rule) {
			shape.Depth = 3
		}
		data, p := encoded(b, shape), message(b, rule)
		b.Run("call/"+rule, func(b *testing.B) {
			var decoder wire.Decoder
			require.NoError(b, answer(&decoder, data, p))
			costs(b, func() { _ = answer(&decoder, data, p) })
		})
		b.Run("questions/"+rule, func(b *testing.B) {
			s := open(b, rule)
			s.questions()
			costs(b, s.questions)
		})
	}
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
		s.Allocatable(s.one(t), 0, nil, nil)
	}
	s.Reclaim().Choose(&policy.Claim{Tasks: []model.TaskID{s.claimant}, Candidates: s.candidates}, false)
	mark = s.Mark()
	for _, t := range s.pending[:50] {
		s.Order().SortQueues(s.View().Busy())
		s.Allocatable(s.one(t), policy.InSession, nil, nil)
		_ = s.Allocate(t, model.None)
	}
	_ = s.Rollback(mark)
}
