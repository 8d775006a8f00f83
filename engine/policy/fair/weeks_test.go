package fair

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
)

// weeks runs queues that always want everything through weeks, in steps of half an hour, with epochs of 6 hours and a half-life of 7 days.
// Tasks take one device, and about the same time; an evicted one starts again.
type weeks struct {
	devices, queues, steps int
	// hours is the length of a task, of which each differs by up to a quarter.
	hours float64
	// from is the step at which a queue begins to want something.
	from   []int
	memory bool

	// held has what each queue holds at each step.
	held      [][]int
	evictions int
}

const (
	stepsOfEpoch = 12
	stepsOfWeek  = 7 * 48
)

// running is a task, with the steps that it still takes.
type running struct{ queue, left, began int }

func (w *weeks) run(t *testing.T) {
	t.Helper()
	random := rand.New(rand.NewPCG(*seed, 9))
	decay := math.Exp2(-1.0 / 28)
	usage, now, offered := make([]float64, w.queues), make([]float64, w.queues), 0.0
	for k := range 8 * 28 {
		offered += float64(w.devices) * 21600 * math.Pow(decay, float64(k))
	}
	var tasks []running
	for step := range w.steps {
		if step%stepsOfEpoch == 0 {
			for q := range usage {
				usage[q], now[q] = usage[q]*decay+now[q], 0
			}
		}
		tasks = w.step(t, step, tasks, usage, offered, func() int {
			return max(1, int(w.hours*2*(0.75+random.Float64()/2)))
		})
		row := make([]int, w.queues)
		for i := range tasks {
			row[tasks[i].queue]++
			now[tasks[i].queue] += 1800
		}
		w.held = append(w.held, row)
	}
}

// step ends tasks, runs the cluster to rest, and returns the tasks that run then.
func (w *weeks) step(t *testing.T, step int, tasks []running, usage []float64, offered float64, length func() int) []running {
	t.Helper()
	c := &cluster{width: 1, total: []int64{int64(w.devices)}, plugin: Plugin{Quanta: []Quantum{{"r0", 1}}, Memory: DefaultMemory()}}
	if w.memory {
		c.memory = &model.MemorySpec{EpochSeconds: 21600, HalfLife: 28, Epoch: int64(step / stepsOfEpoch), Offered: integers([]int64{int64(offered)})}
	}
	var kept []running
	for q := range w.queues {
		name := string(rune('a' + q))
		c.queues = append(c.queues, queue{name: name, weight: 1, memory: &model.QueueMemorySpec{Usage: integers([]int64{int64(usage[q])})}})
		j := job{queue: name, request: []int64{1}}
		for _, r := range tasks {
			if r.left--; r.queue == q && r.left > 0 {
				kept = append(kept, r)
				j.tasks = append(j.tasks, task{status: model.Running, node: model.None, priority: 1, created: int64(r.began) + 1})
			}
		}
		for range w.devices {
			if step >= w.from[q] {
				j.tasks = append(j.tasks, task{node: model.None, priority: 1, created: int64(step) + 1})
			}
		}
		c.jobs = append(c.jobs, j)
	}
	s := c.open(t)
	r := &Rest{State: s}
	for r.move() {
		r.Steps++
	}
	w.evictions += r.Evictions
	var after []running
	at, id := 0, model.TaskID(0)
	for q := range c.jobs {
		for _, one := range c.jobs[q].tasks {
			ran := one.status == model.Running
			if runs := s.v.Status(id) == model.Running; runs && ran {
				after = append(after, kept[at])
			} else if runs {
				after = append(after, running{q, length(), step})
			}
			if ran {
				at++
			}
			id++
		}
	}
	return after
}

// share is the part of the devices that a queue held between two steps.
func (w *weeks) share(q, from, to int) float64 {
	sum := 0
	for _, row := range w.held[from:to] {
		sum += row[q]
	}
	return float64(sum) / float64(w.devices*(to-from))
}

// evictedADay is the number of evictions.
func (w *weeks) evictedADay() float64 { return float64(w.evictions) / float64(w.steps) * 48 }

// TestWeeksNeverRotate: a queue that comes after another has had everything for weeks has more at first and its weight in the end, and
// memory evicts no more than weights alone. With one device for two queues memory divides the time, and nothing is evicted for that.
func TestWeeksNeverRotate(t *testing.T) {
	alone := 2 * stepsOfWeek
	lengths := []float64{6, 24, 72}
	if testing.Short() {
		lengths = lengths[1:2]
	}
	for _, hours := range lengths {
		late := func(memory bool) *weeks {
			w := &weeks{devices: 16, queues: 2, steps: alone + 5*stepsOfWeek, hours: hours, from: []int{0, alone}, memory: memory}
			w.run(t)
			return w
		}
		with, without := late(true), late(false)
		first, last := with.share(1, alone, alone+stepsOfWeek), with.share(1, alone+3*stepsOfWeek, with.steps)
		t.Logf("late of 2, tasks of %.0f h: share in its first week %.3f (no memory %.3f), last two weeks %.3f; evicted a day %.2f (no memory %.2f)",
			hours, first, without.share(1, alone, alone+stepsOfWeek), last, with.evictedADay(), without.evictedADay())
		require.Greater(t, first, without.share(1, alone, alone+stepsOfWeek)+0.1)
		require.InDelta(t, 0.5, last, 0.03)
		require.LessOrEqual(t, with.evictions, without.evictions)

		device := &weeks{devices: 1, queues: 2, steps: 8 * stepsOfWeek, hours: hours, from: []int{0, 0}, memory: true}
		device.run(t)
		never := &weeks{devices: 1, queues: 2, steps: 8 * stepsOfWeek, hours: hours, from: []int{0, 0}}
		never.run(t)
		t.Logf("one device for 2, tasks of %.0f h: shares %.3f and %.3f of the last four weeks (no memory %.3f and %.3f), evictions %d",
			hours, device.share(0, 4*stepsOfWeek, device.steps), device.share(1, 4*stepsOfWeek, device.steps),
			never.share(0, 4*stepsOfWeek, never.steps), never.share(1, 4*stepsOfWeek, never.steps), device.evictions)
		require.InDelta(t, 0.5, device.share(0, 4*stepsOfWeek, device.steps), 0.06)
		require.Zero(t, device.evictions)
	}
}
