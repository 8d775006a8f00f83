package capacity_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
)

// large is a tree of a root, ten departments, a hundred teams and a thousand queues below them, with ten jobs a queue and ten tasks a
// job, one of them pending.
func large() cluster {
	c := cluster{
		total:  amounts{"cpu": 1e9, "memory": 1e15, "gpu": 1e7, "pods": 1e6},
		queues: []queue{{name: "root"}},
	}
	some := amounts{"cpu": 4000, "memory": 1 << 33}
	for i := range 10 {
		c.queues = append(c.queues, queue{name: fmt.Sprint("d", i), deserved: some})
	}
	for i := range 100 {
		c.queues = append(c.queues, queue{name: fmt.Sprint("t", i), parent: fmt.Sprint("d", i%10), deserved: some})
	}
	for i := range 1000 {
		name := fmt.Sprint("q", i)
		c.queues = append(c.queues, queue{name: name, parent: fmt.Sprint("t", i%100), deserved: some, guarantee: amounts{"cpu": 100}})
		for range 10 {
			tasks := append(times(9, running(small)), pending(small))
			c.jobs = append(c.jobs, job{queue: name, min: amounts{"cpu": 1000}, phase: model.PhaseRunning, tasks: tasks})
		}
	}
	return c
}

var plugins = map[string]capacity.Plugin{
	"flat": {}, "tree": {Hierarchical: true}, "tree with ancestors": {Hierarchical: true, AncestorReclaimLevel: 2},
}

func BenchmarkOpen(b *testing.B) {
	m := large().model(b)
	for name, p := range plugins {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := p.Open(policy.NewView(m, nil))
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkAllocatableThousand(b *testing.B) {
	for name, p := range plugins {
		b.Run(name, func(b *testing.B) {
			s := large().open(b, p)
			b.ReportAllocs()
			for b.Loop() {
				for i := range 1000 {
					t := s.v.Jobs.At(model.JobID(i * 10)).FirstTask
					s.Allocatable(s.v.QueueOf(t), s.request(t), policy.InSession, nil, nil)
				}
			}
		})
	}
}

func BenchmarkEnqueueableThousand(b *testing.B) {
	for name, p := range plugins {
		b.Run(name, func(b *testing.B) {
			s := large().open(b, p)
			b.ReportAllocs()
			for b.Loop() {
				for i := range 1000 {
					s.Enqueueable(model.JobID(i*10), nil)
				}
			}
		})
	}
}

func BenchmarkReclaimHundred(b *testing.B) {
	for name, p := range plugins {
		b.Run(name, func(b *testing.B) {
			s := large().open(b, p)
			claimant := s.task("j0.9")
			candidates := make([]model.TaskID, 100)
			for i := range candidates {
				candidates[i] = s.v.Jobs.At(model.JobID((i + 1) * 37)).FirstTask
			}
			dst := make([]model.TaskID, 0, len(candidates))
			b.ReportAllocs()
			for b.Loop() {
				dst, _ = s.Reclaimable(claimant, candidates, dst[:0], nil)
			}
		})
	}
}

func BenchmarkEventAndRollback(b *testing.B) {
	s := large().open(b, plugins["tree"])
	t := s.task("j0.0")
	b.ReportAllocs()
	for b.Loop() {
		mark := s.v.Journal.Mark()
		for range 10 {
			s.Deallocate(t)
		}
		s.v.Journal.Rollback(mark)
		s.v.Journal.Release()
	}
}
