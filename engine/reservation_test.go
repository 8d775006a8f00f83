package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/forecast"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// keptJob is a job of a cluster with reservations: its tasks ask for the same, and run on nodes or wait.
type keptJob struct {
	cpu      int
	runs     []int
	waiting  int
	end      int64
	runtime  int64
	deadline bool
}

// keptNode is a node with what is kept of it.
type keptNode struct {
	cpu  int
	kept []model.ReservationSpec
}

const keptNow = 1_000

func keptCluster(t require.TestingT, nodes []keptNode, jobs []keptJob) *engine.Session {
	b := model.NewBuilder(keptNow)
	b.Dimensions([]string{"cpu", "gpu"})
	for i, n := range nodes {
		b.Node(model.NodeSpec{Name: fmt.Sprint("n", i), Allocatable: enginetest.Amounts(n.cpu, 0), Reservations: n.kept})
	}
	b.Queue(model.QueueSpec{Name: "q", Weight: 1})
	for i, j := range jobs {
		spec := model.JobSpec{
			UID: fmt.Sprint("j", i), Queue: "q", Phase: model.PhaseInqueue, MinAvailable: uint32(len(j.runs) + j.waiting),
			ExpectedEnd: j.end, EndIsDeadline: j.deadline, ExpectedRuntime: j.runtime,
		}
		b.Job(spec)
		b.Group(model.GroupSpec{Request: enginetest.Amounts(j.cpu, 0)})
		for k, n := range j.runs {
			b.Task(&model.TaskSpec{UID: fmt.Sprintf("j%d-r%d", i, k), Status: model.Running, Node: model.NodeID(n), Preemptable: true})
		}
		for k := range j.waiting {
			b.Task(&model.TaskSpec{UID: fmt.Sprintf("j%d-w%d", i, k), Node: model.None})
		}
	}
	m, err := b.Build()
	require.NoError(t, err)
	s, err := engine.Open(m, engine.Policy{}, nil)
	require.NoError(t, err)
	return s
}

// takers returns the nodes that a waiting task of a job fits, and the reason of the first that it does not.
func takers(s *engine.Session, job string) (fits []int, why policy.Reasons) {
	j, _ := s.View().Job(job)
	t := s.View().Jobs.At(j).EndTask - 1
	for _, n := range s.View().NodeOrder {
		if s.Nodes().Fits(t, n, &why) && s.Nodes().HasRoom(t, n, nil) {
			fits = append(fits, int(n))
		}
	}
	return fits, why
}

func TestTasksKeepOffReservedNodes(t *testing.T) {
	whole := func(from, until int64, holder string) model.ReservationSpec {
		return model.ReservationSpec{From: from, Until: until, Holder: holder, Reason: "maintenance"}
	}
	part := func(cpu int, from, until int64, holder string) model.ReservationSpec {
		return model.ReservationSpec{From: from, Until: until, Holder: holder, Request: enginetest.Amounts(cpu, 0)}
	}
	asks := keptJob{cpu: 4, waiting: 1}
	lasting := func(runtime int64) keptJob { return keptJob{cpu: 4, waiting: 1, runtime: runtime} }
	for name, c := range map[string]struct {
		kept []model.ReservationSpec
		job  keptJob
		more []keptJob
		fits bool
	}{
		"a node that is down now takes nothing":                      {kept: []model.ReservationSpec{whole(500, 2_000, "")}, job: lasting(1)},
		"a node that goes down later takes what ends before":         {kept: []model.ReservationSpec{whole(1_500, 2_000, "")}, job: lasting(500), fits: true},
		"and nothing that ends later":                                {kept: []model.ReservationSpec{whole(1_500, 2_000, "")}, job: lasting(501)},
		"and nothing whose end is not known":                         {kept: []model.ReservationSpec{whole(1_500, 2_000, "")}, job: asks},
		"a deadline is a known end":                                  {kept: []model.ReservationSpec{whole(1_500, 0, "")}, job: keptJob{cpu: 4, waiting: 1, end: 1_400, deadline: true}, fits: true},
		"a period that is over has no effect":                        {kept: []model.ReservationSpec{whole(1, 1_000, "")}, job: asks, fits: true},
		"a period without an end lasts":                              {kept: []model.ReservationSpec{whole(1, 0, "")}, job: lasting(1)},
		"the holder uses its node":                                   {kept: []model.ReservationSpec{whole(500, 2_000, "j0")}, job: asks, fits: true},
		"the holder of one of two that overlap does not":             {kept: []model.ReservationSpec{whole(500, 2_000, "j0"), whole(1_500, 3_000, "")}, job: asks},
		"a job that does not exist yet keeps others out":             {kept: []model.ReservationSpec{whole(500, 2_000, "later")}, job: asks},
		"what is free beside a part can be used":                     {kept: []model.ReservationSpec{part(6, 1_500, 2_000, "x")}, job: asks, fits: true},
		"what is not free beside a part cannot":                      {kept: []model.ReservationSpec{part(7, 1_500, 2_000, "x")}, job: asks},
		"parts add up while they overlap":                            {kept: []model.ReservationSpec{part(3, 1_200, 2_000, ""), part(4, 1_500, 2_000, "")}, job: asks},
		"parts one after the other do not":                           {kept: []model.ReservationSpec{part(6, 1_200, 1_500, ""), part(6, 1_500, 2_000, "")}, job: asks, fits: true},
		"running tasks that end before count no more":                {kept: []model.ReservationSpec{part(6, 1_500, 2_000, "")}, job: asks, more: []keptJob{{cpu: 5, runs: []int{0}, end: 1_500}}, fits: true},
		"running tasks that end later count":                         {kept: []model.ReservationSpec{part(6, 1_500, 2_000, "")}, job: asks, more: []keptJob{{cpu: 5, runs: []int{0}, end: 1_501}}},
		"running tasks that should have ended count":                 {kept: []model.ReservationSpec{part(6, 1_500, 2_000, "")}, job: asks, more: []keptJob{{cpu: 5, runs: []int{0}, end: 900}}},
		"what the holder uses is part of what it holds":              {kept: []model.ReservationSpec{part(6, 500, 2_000, "j1")}, job: asks, more: []keptJob{{cpu: 6, runs: []int{0}}}, fits: true},
		"what the holder uses counts once against two that it holds": {kept: []model.ReservationSpec{part(3, 500, 2_000, "j1"), part(6, 500, 2_000, "j1")}, job: asks, more: []keptJob{{cpu: 3, runs: []int{0}}}},
		"what is used beyond what is held counts as well":            {kept: []model.ReservationSpec{part(1, 500, 2_000, "j1")}, job: asks, more: []keptJob{{cpu: 7, runs: []int{0}}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := keptCluster(t, []keptNode{{10, c.kept}}, append([]keptJob{c.job}, c.more...))
			fits, why := takers(s, "j0")
			require.Equal(t, c.fits, len(fits) == 1, why.List)
			if !c.fits && len(why.List) > 0 {
				require.Equal(t, policy.NodeReserved, why.List[0].Code)
			}
		})
	}
}

// TestTasksOfAGangCountTogetherBesideAReservation places gangs whose tasks fit one by one.
func TestTasksOfAGangCountTogetherBesideAReservation(t *testing.T) {
	kept := []model.ReservationSpec{{From: 1_500, Request: enginetest.Amounts(5, 0)}}
	for waiting, placed := range map[int]bool{2: true, 3: true, 4: false} {
		s := keptCluster(t, []keptNode{{10, kept}, {4, nil}}, []keptJob{{cpu: 2, waiting: waiting + 1}})
		_ = placed
		j, _ := s.View().Job("j0")
		found, err := plan.For(s, &plan.Question{Job: j, Means: plan.PlaceOnly})
		require.NoError(t, err)
		require.Equal(t, waiting+1 <= 4, found.Outcome == plan.Made, waiting)
	}
}

func TestAForecastWaitsForTheEndOfDowntime(t *testing.T) {
	down := []model.ReservationSpec{{From: 500, Until: 5_000}}
	later := []model.ReservationSpec{{From: 2_000, Until: 6_000}}
	// The first node is down until 5,000. The second one is free from 1,800 on, and goes down at 2,000.
	s := keptCluster(t, []keptNode{{4, down}, {4, later}}, []keptJob{{cpu: 4, waiting: 1, runtime: 300}, {cpu: 4, runs: []int{1}, end: 1_800}})
	j, _ := s.View().Job("j0")
	f, err := forecast.For(s, j)
	require.NoError(t, err)
	require.Equal(t, forecast.StartsAt, f.Outcome)
	require.EqualValues(t, 5_000, f.At)
	require.Equal(t, 1, f.Released)
	require.Empty(t, f.Ends)
	require.Equal(t, []model.NodeID{0}, f.Nodes)
	require.True(t, f.Earliest && f.Minimal)

	s = keptCluster(t, []keptNode{{4, down}, {4, later}}, []keptJob{{cpu: 4, waiting: 1, runtime: 200}, {cpu: 4, runs: []int{1}, end: 1_800}})
	f, err = forecast.For(s, j)
	require.NoError(t, err)
	require.EqualValues(t, 1_800, f.At, "it ends as the downtime begins")
	require.Zero(t, f.Released)
}

// keptUse is the plain twin of the rule: it looks at every instant of the period in which a task would run.
func keptUse(nodes []keptNode, jobs []keptJob, n, asking int) bool {
	endOf := func(i int) int64 {
		j := jobs[i]
		switch {
		case len(j.runs) > 0 && j.end > keptNow:
			return j.end
		case len(j.runs) > 0 && j.end != 0:
			return math.MaxInt64
		case j.runtime > 0:
			return keptNow + j.runtime
		}
		return math.MaxInt64
	}
	for at := int64(keptNow); at < min(endOf(asking), keptNow+100); at++ {
		used := map[string]int{}
		all := 0
		for i, j := range jobs {
			for _, on := range j.runs {
				if on == n && endOf(i) > at {
					used[fmt.Sprint("j", i)] += j.cpu
					all += j.cpu
				}
			}
		}
		kept := map[string]int{}
		for _, r := range nodes[n].kept {
			if r.Holder == fmt.Sprint("j", asking) || r.From > at || r.Until != 0 && r.Until <= at {
				continue
			}
			if r.Request == nil {
				return false
			}
			kept[r.Holder] += int(r.Request.Amount[0] / 1000)
		}
		some := 0
		for holder, amount := range kept {
			if amount > 0 {
				some++
				all += max(0, amount-used[holder])
			}
		}
		if some > 0 && all+jobs[asking].cpu > nodes[n].cpu {
			return false
		}
	}
	return true
}

func TestReservationsAreRespectedAtEveryInstant(t *testing.T) {
	refused, permitted := 0, 0
	for seed := range uint64(3_000) {
		d := enginetest.Dice{Rand: rand.New(rand.NewPCG(seed, 91))}
		var nodes []keptNode
		free := make([]int, d.Between(1, 3))
		for n := range free {
			free[n] = d.Between(4, 10)
			nodes = append(nodes, keptNode{cpu: free[n]})
			for range d.IntN(4) {
				r := model.ReservationSpec{From: int64(d.Between(980, 1_060))}
				if d.Chance(80) {
					r.Until = r.From + int64(d.Between(1, 40))
				}
				if d.Chance(60) {
					r.Request = enginetest.Amounts(d.IntN(5), 0)
				}
				if d.Chance(60) {
					r.Holder = fmt.Sprint("j", d.IntN(5))
				}
				nodes[n].kept = append(nodes[n].kept, r)
			}
		}
		var jobs []keptJob
		for range 4 {
			j := keptJob{cpu: d.Between(1, 4), waiting: 1}
			if n := d.IntN(len(free)); d.Chance(50) && free[n] >= j.cpu {
				free[n] -= j.cpu
				j.runs = []int{n}
			}
			if d.Chance(60) && len(j.runs) > 0 {
				j.end = int64(d.Between(990, 1_060))
			} else if d.Chance(70) {
				j.runtime = int64(d.Between(1, 60))
			}
			jobs = append(jobs, j)
		}
		s := keptCluster(t, nodes, jobs)
		for i := range jobs {
			j, _ := s.View().Job(fmt.Sprint("j", i))
			for n := range nodes {
				fits := s.Nodes().Fits(s.View().Jobs.At(j).EndTask-1, model.NodeID(n), nil)
				require.Equal(t, keptUse(nodes, jobs, n, i), fits, "seed %d: job %d on node %d of %v, %v", seed, i, n, nodes, jobs)
				if fits {
					permitted++
				} else {
					refused++
				}
			}
		}
	}
	require.Greater(t, min(refused, permitted), 3_000)
}

// TestWhatIsTriedLeavesReservationsAsTheyWere places and takes off tasks, and asks again.
func TestWhatIsTriedLeavesReservationsAsTheyWere(t *testing.T) {
	kept := []model.ReservationSpec{{From: 1_500, Request: enginetest.Amounts(4, 0)}}
	s := keptCluster(t, []keptNode{{10, kept}}, []keptJob{{cpu: 4, waiting: 2}, {cpu: 3, waiting: 1}})
	answer := func() []int { fits, _ := takers(s, "j1"); return slices.Clone(fits) }
	require.Equal(t, []int{0}, answer())
	mark := s.Mark()
	j, _ := s.View().Job("j0")
	require.NoError(t, s.Allocate(s.View().Jobs.At(j).FirstTask, 0))
	require.Empty(t, answer())
	require.NoError(t, s.Deallocate(s.View().Jobs.At(j).FirstTask, model.Pending))
	require.Equal(t, []int{0}, answer())
	require.NoError(t, s.Allocate(s.View().Jobs.At(j).FirstTask, 0))
	require.NoError(t, s.Rollback(mark))
	require.Equal(t, []int{0}, answer())
}
