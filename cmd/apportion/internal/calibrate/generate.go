package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// The cluster of generated traces: nodes of eight GPUs, and queues of different weight.
const (
	nodes, gpus = 12, 8
	hour, day   = int64(3600), 24 * int64(3600)
	// Forecasts begin after trains weeks and end after asks; the rest lets what they look at come true.
	weeks, trains, asks = 6, 2, 4
	gpu                 = "nvidia.com/gpu"
)

var queues = []struct {
	name   string
	weight uint32
}{{"vision", 3}, {"language", 3}, {"robotics", 2}, {"scavenge", 1}}

// cluster is that of generated traces.
func cluster() (*apportionv1.Snapshot, error) {
	s := client.NewSnapshot()
	for i := range nodes {
		s.Node(client.Node{
			Name:        fmt.Sprintf("n%02d", i),
			Allocatable: client.Resources{"cpu": "64", "memory": "512Gi", gpu: fmt.Sprint(gpus), "pods": "110"},
		})
	}
	for _, q := range queues {
		s.Queue(client.Queue{Name: q.name, Weight: q.weight, Deserved: client.Resources{
			gpu: fmt.Sprint(int(q.weight) * nodes * gpus / 9), "cpu": fmt.Sprint(int(q.weight) * nodes * 64 / 9),
		}})
	}
	return s.Build()
}

// shape is what a generated trace is like.
type shape struct {
	name string
	// load is the part of the GPUs that jobs ask for, and gang the chance of a job to be a gang of several nodes.
	load, gang float64
	// spread is that of the logarithms of runtimes, and owners that of their medians among the owners and kinds of jobs. batch is how many
	// jobs arrive together at most, and daily whether most arrive by day.
	spread, owners float64
	batch          int
	daily          bool
	// growth is how many times as large the rate of arrivals and the runtimes are at the end as at the begin; 0: they stay.
	growth float64
}

// shapes are those of the generated traces.
var shapes = []shape{
	{name: "steady", load: 0.85, gang: 0.05, spread: 0.6, batch: 1},
	{name: "daily", load: 0.85, gang: 0.1, spread: 1, batch: 2, daily: true},
	{name: "batches", load: 0.8, gang: 0.05, spread: 1, batch: 20},
	{name: "long tail", load: 0.8, gang: 0.1, spread: 1.7, batch: 2, daily: true},
	{name: "gangs", load: 0.75, gang: 0.4, spread: 1, batch: 2},
	{name: "owners", load: 0.85, gang: 0.05, spread: 0.6, owners: 1, batch: 1},
}

// drifting are shapes of which the load changes. They are measured where they are named: no forecast that draws from the past holds there.
var drifting = []shape{
	{name: "growing", load: 0.85, gang: 0.05, spread: 0.6, batch: 1, growth: 5},
	{name: "growing batches", load: 0.8, gang: 0.05, spread: 1, batch: 20, growth: 5},
	{name: "shrinking", load: 0.85, gang: 0.05, spread: 0.6, batch: 1, growth: 0.2},
}

// grown is how many times as much there is at a time as at the begin.
func (s *shape) grown(at int64) float64 {
	if s.growth == 0 {
		return 1
	}
	return 1 + (s.growth-1)*float64(at)/float64(weeks*7*day)
}

// draw draws a trace of some weeks.
func (s *shape) draw(seed uint64) *trace.Trace {
	r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // A trace is drawn by a seed, so that it can be drawn again.
	t, of := &trace.Trace{}, s.medians(seed)
	asked := 0.0
	last := weeks * 7 * day
	for at := int64(0); at < last; {
		at += int64(r.ExpFloat64() * float64(s.batch+1) / 2 * 1200 / s.grown(at))
		clock := at % day
		if s.daily && (clock < 8*hour || clock > 20*hour) && r.Float64() < 0.8 {
			continue
		}
		q, kind := r.IntN(len(queues)), r.IntN(kinds)
		for range 1 + r.IntN(s.batch) {
			job := s.job(r, len(t.Jobs), q, kind, of)
			job.Arrival, job.Seconds = at, int64(float64(job.Seconds)*s.grown(at))
			asked += float64(job.Seconds) * float64(job.Tasks()) * job.Groups[0].Request[2].Amount / 1000
			t.Jobs = append(t.Jobs, *job)
		}
	}
	scale := s.load * nodes * gpus * float64(last) / asked
	for i := range t.Jobs {
		t.Jobs[i].Seconds = max(60, int64(float64(t.Jobs[i].Seconds)*scale))
	}
	t.Sort()
	return t
}

// Each queue has some owners, who have jobs of some kinds.
const owners, kinds = 3, 3

// medians are those of runtimes, by queue, owner and kind.
type medians [4][owners][kinds]float64

func (s *shape) medians(seed uint64) *medians {
	list := &medians{}
	r := rand.New(rand.NewPCG(seed, 8)) //nolint:gosec // As above.
	for q := range list {
		for o := range list[q] {
			for kind := range list[q][o] {
				const usual = 2.5 * 3600
				list[q][o][kind] = usual * math.Exp(float64(kind-1)) * math.Exp(s.owners*r.NormFloat64())
			}
		}
	}
	return list
}

// job draws one job. The kind determines its size and, with queue and owner, the median of its runtime.
func (s *shape) job(r *rand.Rand, number, queue, kind int, of *medians) *trace.Job {
	each := [...]int{1, 2, 4}[kind]
	tasks := 1 + r.IntN(2)
	if r.Float64() < s.gang {
		each, tasks = gpus, 2+r.IntN(2)
	}
	owner := r.IntN(owners)
	return &trace.Job{
		Name: fmt.Sprintf("job-%05d", number), Queue: queues[queue].name, Min: tasks,
		Owner:   fmt.Sprintf("%s-%d", queues[queue].name, owner),
		Seconds: int64(of[queue][owner][kind] * math.Exp(s.spread*r.NormFloat64())),
		Groups: []trace.Group{{Role: "task", Tasks: tasks, Request: []trace.Amount{
			{Resource: "cpu", Amount: float64(each) * 7000},
			{Resource: "memory", Amount: float64(each) * 60 * (1 << 30)},
			{Resource: gpu, Amount: float64(each) * 1000},
		}}},
	}
}
