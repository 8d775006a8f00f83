package drf_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/drf"
	"github.com/apportion/apportion/engine/policy/policytest"
)

func open(t require.TestingT, total policytest.Amounts, jobs ...policytest.Job) (*policy.View, *drf.State) {
	for i := range jobs {
		jobs[i].Queue = "q"
	}
	v := policytest.Cluster{Total: total, Queues: policytest.Queues("q"), Jobs: jobs}.View(t)
	state, err := drf.Plugin{}.Open(v)
	require.NoError(t, err)
	return v, state.(*drf.State)
}

func running(name string, requests ...policytest.Amounts) policytest.Job {
	j := policytest.Job{Name: name}
	for _, request := range requests {
		j.Tasks = append(j.Tasks, policytest.Tasks{Status: model.Running, Request: request})
	}
	return j
}

func TestDrfTakesNoPartInQueues(t *testing.T) {
	_, s := open(t, policytest.Amounts{"cpu": 1})
	require.NotImplements(t, (*policy.QueueOrderer)(nil), s)
	require.NotImplements(t, (*policy.Reclaimer)(nil), s)
	require.NotImplements(t, (*policy.Sharer)(nil), s)
	require.Implements(t, (*policy.Preemptor)(nil), s)
	require.Implements(t, (*policy.JobSharer)(nil), s)
	require.Implements(t, (*policy.EventHandler)(nil), s)
}

func TestDominantShare(t *testing.T) {
	for name, c := range map[string]struct {
		total, held policytest.Amounts
		share       float64
		dominant    string
	}{
		"nothing held":                                      {total: policytest.Amounts{"cpu": 10}, held: nil},
		"the largest part of any dimension":                 {total: policytest.Amounts{"cpu": 10, "memory": 10}, held: policytest.Amounts{"cpu": 3, "memory": 4}, share: 0.4, dominant: "memory"},
		"pods are a dimension":                              {total: policytest.Amounts{"cpu": 100, "pods": 8}, held: policytest.Amounts{"cpu": 1, "pods": 1}, share: 0.125, dominant: "pods"},
		"what the cluster has less than 0.1 of is left out": {total: policytest.Amounts{"cpu": 10, "gpu": 0.05}, held: policytest.Amounts{"cpu": 1, "gpu": 7}, share: 0.1, dominant: "cpu"},
		"what the cluster does not name is left out":        {total: policytest.Amounts{"cpu": 10}, held: policytest.Amounts{"cpu": 1, "gpu": 7}, share: 0.1, dominant: "cpu"},
		"of equal parts the first dimension by name":        {total: policytest.Amounts{"a": 4, "b": 8, "c": 4}, held: policytest.Amounts{"a": 1, "b": 2, "c": 1}, share: 0.25, dominant: "a"},
		"more than there is":                                {total: policytest.Amounts{"memory": 2}, held: policytest.Amounts{"memory": 3}, share: 1.5, dominant: "memory"},
		"a cluster of nothing":                              {held: policytest.Amounts{"cpu": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			v, s := open(t, c.total, running("j", c.held))
			got, ok := s.JobShare(0)
			require.True(t, ok)
			require.Equal(t, c.share, got.Share)
			dominant := ""
			if got.Dominant >= 0 {
				dominant = v.Dims.Name(got.Dominant)
			}
			require.Equal(t, c.dominant, dominant)
			require.Equal(t, v.Account(0).Allocated, got.Allocated)
		})
	}
}

func TestTheSmallerShareComesFirstByTheLastBit(t *testing.T) {
	v, s := open(t, policytest.Amounts{"cpu": 1 << 40},
		running("small", policytest.Amounts{"cpu": 1}), running("large", policytest.Amounts{"cpu": 1 + 1e-15}), running("none"))
	small, large, none := policytest.JobID(t, v, "small"), policytest.JobID(t, v, "large"), policytest.JobID(t, v, "none")
	require.Equal(t, -1, s.CompareJobs(small, large))
	require.Equal(t, 1, s.CompareJobs(large, small))
	require.Equal(t, -1, s.CompareJobs(none, small))
	require.Zero(t, s.CompareJobs(small, small))
}

func TestVictimsHaveNoSmallerShareAfterwards(t *testing.T) {
	ten := policytest.Amounts{"cpu": 10000}
	cpus := func(n float64) policytest.Amounts { return policytest.Amounts{"cpu": 1000 * n} }
	claims := func(held, asked float64) policytest.Job {
		return policytest.Job{Name: "claims", Tasks: []policytest.Tasks{{Request: cpus(asked)}, {Status: model.Running, Request: cpus(held)}}}
	}
	higher := func(have, limit float64) policy.Reason {
		return policy.Reason{Plugin: "drf", Code: policy.ShareNotHigher, Queue: model.None, Dimension: -1, Have: have, Limit: limit}
	}
	for name, c := range map[string]struct {
		claims              policytest.Job
		others              []policytest.Job
		candidates, victims []string
		spared              map[string]policy.Reason
	}{
		"victims of one job add up": {
			claims: claims(1, 1), others: []policytest.Job{running("j", cpus(1), cpus(1), cpus(1), cpus(1))},
			candidates: []string{"j-0", "j-1", "j-2", "j-3"}, victims: []string{"j-0", "j-1"},
			spared: map[string]policy.Reason{"j-2": higher(0.2, 0.1), "j-3": higher(0.2, 0)},
		},
		"a refused candidate is gone for the next: big before small": {
			claims: claims(0, 3), others: []policytest.Job{running("j", cpus(4), cpus(1))},
			candidates: []string{"j-0", "j-1"},
			spared:     map[string]policy.Reason{"j-0": higher(0.3, 0.1), "j-1": higher(0.3, 0)},
		},
		"a refused candidate is gone for the next: small before big": {
			claims: claims(0, 3), others: []policytest.Job{running("j", cpus(4), cpus(1))},
			candidates: []string{"j-1", "j-0"}, victims: []string{"j-1"},
			spared: map[string]policy.Reason{"j-0": higher(0.3, 0)},
		},
		"jobs do not add up with each other": {
			claims: claims(0, 1), others: []policytest.Job{running("a", cpus(1), cpus(1)), running("b", cpus(1), cpus(1))},
			candidates: []string{"a-0", "b-0"}, victims: []string{"a-0", "b-0"},
		},
		"a share above the victim's by a millionth counts as equal": {
			claims: claims(0, 1+0.9e-5), others: []policytest.Job{running("j", cpus(1), cpus(1))},
			candidates: []string{"j-0"}, victims: []string{"j-0"},
		},
		"one above it by more does not": {
			claims: claims(0, 1.001), others: []policytest.Job{running("j", cpus(1), cpus(1))},
			candidates: []string{"j-0"}, spared: map[string]policy.Reason{"j-0": higher(1001.0/10000, 0.1)},
		},
		"a task that holds nothing is taken off all the same": {
			claims: claims(0, 1), others: []policytest.Job{{Name: "j", Tasks: []policytest.Tasks{{Request: cpus(1)}, {Status: model.Running, Request: cpus(1)}}}},
			candidates: []string{"j-0", "j-1"}, spared: map[string]policy.Reason{"j-0": higher(0.1, 0), "j-1": higher(0.1, 0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v, s := open(t, ten, append(c.others, c.claims)...)
			before, _ := s.JobShare(0)
			held := before.Allocated.Clone()
			victims, spared := policytest.Victims(t, v, s.Preemptable, "claims-0", c.candidates...)
			require.Equal(t, c.victims, victims)
			require.Len(t, spared, len(c.spared))
			for task, want := range c.spared {
				require.InDelta(t, want.Have, spared[task].Have, 1e-12, task)
				require.InDelta(t, want.Limit, spared[task].Limit, 1e-12, task)
				got := spared[task]
				got.Have, got.Limit = want.Have, want.Limit
				require.Equal(t, want, got)
			}
			after, _ := s.JobShare(0)
			require.Equal(t, held, after.Allocated, "the question changed nothing")
		})
	}
}

func TestAJobThatWasRemovedHasNoShare(t *testing.T) {
	v, _ := open(t, policytest.Amounts{"cpu": 10}, running("a", policytest.Amounts{"cpu": 1}), running("b", policytest.Amounts{"cpu": 1}))
	without, err := v.Changed(nil, func(b *model.ChangeBuilder) error {
		b.RemoveJobs(0)
		return nil
	})
	require.NoError(t, err)
	state, err := drf.Plugin{}.Open(without)
	require.NoError(t, err)
	s := state.(*drf.State)
	_, ok := s.JobShare(0)
	require.False(t, ok)
	share, ok := s.JobShare(1)
	require.True(t, ok)
	require.Equal(t, 0.1, share.Share)
	victims, _ := s.Preemptable(0, []model.TaskID{0, 1}, nil, nil)
	require.Empty(t, victims, "no job asks, but nothing breaks")
}

func TestOpenStopsWhenNobodyWaits(t *testing.T) {
	jobs := make([]policytest.Job, 1024)
	for i := range jobs {
		jobs[i] = policytest.Job{Name: strconv.Itoa(i)}
	}
	v, _ := open(t, nil, jobs...)
	v.Stop = func() bool { return true }
	_, err := drf.Plugin{}.Open(v)
	require.ErrorIs(t, err, policy.ErrStopped)
}

func TestRollbackPutsEveryBitBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := make([]policytest.Job, 3)
		for i := range jobs {
			jobs[i] = policytest.Job{Name: strconv.Itoa(i)}
			for range 4 {
				request := policytest.Amounts{"cpu": rapid.Float64Range(0, 1e6).Draw(t, "cpu")}
				if rapid.Bool().Draw(t, "scalar") {
					request["gpu"] = rapid.Float64Range(0, 10).Draw(t, "gpu")
				}
				jobs[i].Tasks = append(jobs[i].Tasks, policytest.Tasks{
					Request: request, Status: rapid.SampledFrom([]model.Status{model.Pending, model.Running}).Draw(t, "status"),
				})
			}
		}
		v, s := open(t, policytest.Amounts{"cpu": 3e6, "gpu": 8}, jobs...)
		image := func() []policy.JobShare {
			var all []policy.JobShare
			for j := range jobs {
				share, _ := s.JobShare(model.JobID(j))
				share.Allocated = share.Allocated.Clone()
				all = append(all, share)
			}
			return all
		}
		before := image()
		mark := v.Journal.Mark()
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			task := model.TaskID(rapid.IntRange(0, v.Tasks.Len()-1).Draw(t, "task"))
			policytest.Toggle(v, s, task)
			account := v.Account(v.Tasks.At(task).Job).Allocated
			share, _ := s.JobShare(v.Tasks.At(task).Job)
			require.Equal(t, account, share.Allocated, "events follow the statuses")
			require.False(t, math.IsNaN(share.Share))
		}
		v.Journal.Rollback(mark)
		require.Equal(t, before, image())
	})
}

func crowd(t require.TestingT, n int) (*policy.View, *drf.State, []model.TaskID) {
	jobs := make([]policytest.Job, n)
	for i := range jobs {
		jobs[i] = running(strconv.Itoa(i), policytest.Amounts{"cpu": 10 * float64(i), "pods": 1}, policytest.Amounts{"cpu": 1000 * float64(i), "gpu": 1, "pods": 1})
	}
	v, s := open(t, policytest.Amounts{"cpu": 1e6, "gpu": 1e4, "memory": 1e12, "pods": 1e4}, jobs...)
	candidates := make([]model.TaskID, v.Tasks.Len())
	for i := range candidates {
		candidates[i] = model.TaskID(i)
	}
	return v, s, candidates
}

func TestQuestionsAllocateNothing(t *testing.T) {
	_, s, candidates := crowd(t, 20)
	dst := make([]model.TaskID, 0, len(candidates))
	dst, _ = s.Preemptable(0, candidates, dst, nil)
	require.NotEmpty(t, dst)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		dst, _ = s.Preemptable(0, candidates, dst[:0], nil)
		s.CompareJobs(0, 1)
		s.JobShare(0)
		s.Deallocate(0)
		s.Allocate(0)
	}))
}

func BenchmarkDrf(b *testing.B) {
	v, s, candidates := crowd(b, 1000)
	dst := make([]model.TaskID, 0, len(candidates))
	b.Run("open, 1000 jobs", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = drf.Plugin{}.Open(v)
		}
	})
	b.Run("preemptable, 100 candidates", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			dst, _ = s.Preemptable(0, candidates[:100], dst[:0], nil)
		}
	})
	b.Run("allocate and deallocate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Deallocate(0)
			s.Allocate(0)
		}
	})
}
