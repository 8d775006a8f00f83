package policytest

import (
	"cmp"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Game gives resources away task by task: the next one goes to the job that the order puts first among those whose next task fits into
// what is left; equal jobs go by uid. The papers on fair sharing use this procedure for their examples.
type Game struct {
	View *policy.View
	// Compare is the order of jobs.
	Compare func(l, r model.JobID) int
	// Events are called for every task.
	Events policy.EventHandler
	// Left is the free amount.
	Left Amounts
}

// Play gives away at most n tasks and returns the uids of the jobs that got them, in order.
func (g *Game) Play(t require.TestingT, n int) []string {
	var got []string
	for range n {
		first := model.JobID(model.None)
		for _, j := range g.View.Present() {
			if next := g.next(j); next == model.None || !g.fits(next) {
				continue
			}
			if first == model.None || g.before(j, first) {
				first = j
			}
		}
		if first == model.None {
			return got
		}
		g.Give(t, g.next(first))
		got = append(got, g.View.Jobs.At(first).UID)
	}
	return got
}

// Give lets a task have what it asks for.
func (g *Game) Give(t require.TestingT, task model.TaskID) {
	require.Equal(t, model.Pending, g.View.Status(task))
	g.book(task, -1)
	g.View.SetStatus(task, model.Allocated, model.None)
	g.Events.Allocate(task)
}

// Take ends a task.
func (g *Game) Take(t require.TestingT, task model.TaskID) {
	require.Equal(t, model.Allocated, g.View.Status(task))
	g.book(task, 1)
	g.View.SetStatus(task, model.Succeeded, model.None)
	g.Events.Deallocate(task)
}

func (g *Game) before(l, r model.JobID) bool {
	c := g.Compare(l, r)
	return c < 0 || c == 0 && cmp.Less(g.View.Jobs.At(l).UID, g.View.Jobs.At(r).UID)
}

func (g *Game) next(j model.JobID) model.TaskID {
	job := g.View.Jobs.At(j)
	for t := job.FirstTask; t < job.EndTask; t++ {
		if g.View.Status(t) == model.Pending {
			return t
		}
	}
	return model.None
}

func (g *Game) fits(task model.TaskID) bool {
	for d, x := range g.View.Request(task).V {
		if left, bounded := g.Left[g.View.Dims.Name(d)]; bounded && x > left {
			return false
		}
	}
	return true
}

func (g *Game) book(task model.TaskID, sign float64) {
	for d, x := range g.View.Request(task).V {
		if name := g.View.Dims.Name(d); x != 0 {
			g.Left[name] += sign * x
		}
	}
}

// Count returns how often each name occurs.
func Count(names []string) map[string]int {
	counts := map[string]int{}
	for _, name := range names {
		counts[name]++
	}
	return counts
}
