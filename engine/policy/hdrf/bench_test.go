package hdrf_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/hdrf"
	"github.com/apportion/apportion/engine/policy/policytest"
)

// campus is n queues in departments of 32 with 10 jobs each.
func campus(t require.TestingT, n int) (*policy.View, *hdrf.State, []model.TaskID) {
	c := policytest.Cluster{Total: policytest.Amounts{"cpu": 1e7, "gpu": 1e6, "memory": 1e15, "pods": 1e6}}
	for i := range n {
		q := strconv.Itoa(i)
		c.Queues = append(c.Queues, queue(q, "root/"+strconv.Itoa(i/32)+"/"+q, "1/2/"+strconv.Itoa(1+i%3)))
		for k := range 10 {
			j := policytest.Job{Name: q + "." + strconv.Itoa(k), Queue: q}
			for r := range 3 {
				request := policytest.Amounts{"cpu": float64(100 * (1 + i%7)), "memory": float64(1 + k), "pods": 1}
				j.Tasks = append(j.Tasks, policytest.Tasks{Request: request, Status: []model.Status{model.Running, model.Running, model.Pending}[r]})
			}
			c.Jobs = append(c.Jobs, j)
		}
	}
	v := c.View(t)
	s := open(t, v)
	candidates := make([]model.TaskID, 0, 100)
	for i := range 100 {
		candidates = append(candidates, model.TaskID((31*i%(10*n))*3))
	}
	return v, s, candidates
}

func TestQuestionsAllocateNothing(t *testing.T) {
	_, s, candidates := campus(t, 40)
	dst, _ := s.Reclaimable(2, candidates, nil, nil)
	require.NotEmpty(t, dst)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		dst, _ = s.Reclaimable(2, candidates, dst[:0], nil)
		s.CompareQueues(0, 39)
		s.Deallocate(0)
		s.Allocate(0)
		s.CompareQueues(39, 0)
	}))
}

// A change of one child among many gives what computing everything would give, to the last bit.
func TestManyChildrenAreSummedTheSameWayHoweverTheyChanged(t *testing.T) {
	c := policytest.Cluster{Total: policytest.Amounts{"cpu": 1e6, "memory": 3e5}, Queues: []model.QueueSpec{queue("q", "root/q", "1/1")}}
	for i := range 500 {
		x := 1 + float64(i*i%97)/7
		c.Jobs = append(c.Jobs, wanting(held("j"+strconv.Itoa(i), "q", policytest.Amounts{"cpu": x}, policytest.Amounts{"cpu": 1 / x, "memory": float64(i % 3)})))
	}
	v := c.View(t)
	s := open(t, v)
	s.Nodes()
	for i := range 300 {
		task := model.TaskID(i * 7 % v.Tasks.Len())
		policytest.Toggle(v, s, task)
		if i%10 == 0 {
			require.Equal(t, image(open(t, v)), image(s))
		}
	}
}

func BenchmarkHdrf(b *testing.B) {
	v, s, candidates := campus(b, 1000)
	dst := make([]model.TaskID, 0, len(candidates))
	b.Run("open, 1000 queues, 10000 jobs", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			open(b, v)
		}
	})
	b.Run("reclaimable, 100 candidates", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			dst, _ = s.Reclaimable(2, candidates, dst[:0], nil)
		}
	})
	b.Run("compare queues", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.CompareQueues(1, 999)
		}
	})
	b.Run("deallocate, compare, allocate, compare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Deallocate(0)
			s.CompareQueues(1, 999)
			s.Allocate(0)
			s.CompareQueues(1, 999)
		}
	})
	b.Run("everything anew", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for i := range 100 {
				s.Deallocate(model.TaskID(30 * i))
				s.Allocate(model.TaskID(30 * i))
			}
			s.CompareQueues(1, 999)
		}
	})
}
