package bench_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/fair"
)

// BenchmarkFairRound allocates up to a thousand tasks one by one at a thousand queues, asking for the order of queues and whether the task
// may be allocated each time. ns/round is the time of one allocation: while queues are entitled to their tasks, and while they borrow, so
// that claims are computed again.
func BenchmarkFairRound(b *testing.B) {
	for _, borrow := range []bool{false, true} {
		name, rounds := "entitled", 1000
		if borrow {
			name, rounds = "borrowed", 100
		}
		b.Run(name, func(b *testing.B) {
			s := open(b, "fair")
			tasks := s.chosen(borrow, rounds)
			require.NotEmpty(b, tasks)
			queues := s.View().Busy()
			mark := s.Mark()
			before := processorTime()
			for b.Loop() {
				for _, t := range tasks {
					s.Order().SortQueues(queues)
					s.Allocatable(s.list(t), policy.InSession, nil, nil)
					if err := s.Allocate(t, model.None); err != nil {
						b.Fatal(err)
					}
				}
				if err := s.Rollback(mark); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(tasks)), "ns/round")
			b.ReportMetric(float64((processorTime()-before).Nanoseconds())/float64(b.N*len(tasks)), "cpu-ns/round")
			b.ReportMetric(float64(len(tasks)), "tasks")
		})
	}
}

// chosen returns at most n pending tasks to allocate one after the other: their queues are entitled to each of them in turn, or to none.
func (s *subject) chosen(borrow bool, n int) []model.TaskID {
	var list []model.TaskID
	mark := s.Mark()
	for t := range s.m.Tasks.All() {
		if len(list) == n {
			break
		}
		if s.View().Status(t) != model.Pending || s.Preemptive(s.list(t), nil, nil) == borrow {
			continue
		}
		list = append(list, t)
		if s.Allocate(t, model.None) != nil {
			return nil
		}
	}
	if s.Rollback(mark) != nil {
		return nil
	}
	return list
}

// BenchmarkFairDivision divides eight dimensions among many siblings.
func BenchmarkFairDivision(b *testing.B) {
	for _, queues := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("queues=%d", queues), func(b *testing.B) {
			m := wide(b, queues)
			session, err := engine.Open(m, rule(b, "fair"), nil)
			require.NoError(b, err)
			state, ok := session.Dividers()[0].State.(*fair.State)
			require.True(b, ok)
			b.ReportAllocs()
			for b.Loop() {
				state.Divide()
			}
		})
	}
}

// processorTime returns the processor time of this process.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
