package cycle_test

import (
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/cycle"
)

// desk is a scheduler of jobs of one task each, with a number of free places. Jobs in running hold a place each.
type desk struct {
	waiting, running []string
	free             int
	// once refuses a job until another was started, as a policy does that keeps room for others.
	once   map[string]bool
	fault  error
	events []string
}

func (d *desk) Enqueue() error {
	d.events = append(d.events, "enqueue")
	return nil
}

func (d *desk) Waiting(cycle.Action) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if d.fault != nil {
			yield("", d.fault)
			return
		}
		tried := map[string]bool{}
		for i := 0; i < len(d.waiting); i++ {
			job := d.waiting[i]
			if tried[job] {
				continue
			}
			if tried[job] = true; !yield(job, nil) {
				return
			}
			if i >= len(d.waiting) || d.waiting[i] != job {
				i = -1
			}
		}
	}
}

func (d *desk) Allocate(job string) (bool, error) {
	if d.free == 0 || d.once[job] {
		delete(d.once, job)
		d.events = append(d.events, "no "+job)
		return false, nil
	}
	d.free--
	d.start(job)
	return true, nil
}

func (d *desk) Evict(job string, action cycle.Action) (bool, error) {
	if len(d.running) == 0 || d.running[0] > job {
		return false, nil
	}
	d.events = append(d.events, fmt.Sprintf("%s %s for %s", action, d.running[0], job))
	// The items that it stops leave one more place than it takes.
	d.free++
	d.running = d.running[1:]
	d.start(job)
	return true, nil
}

func (d *desk) start(job string) {
	d.events = append(d.events, "start "+job)
	d.running = append(d.running, job)
	for i := range d.waiting {
		if d.waiting[i] == job {
			d.waiting = append(d.waiting[:i:i], d.waiting[i+1:]...)
			break
		}
	}
}

func TestACycleServesInOrderAndOnceWithoutPlans(t *testing.T) {
	d := &desk{waiting: []string{"b", "c", "d"}, free: 2, once: map[string]bool{"b": true}}
	c := cycle.Cycle[string]{Scheduler: d}
	require.NoError(t, c.Run(cycle.Enqueue, cycle.Allocate))
	require.Equal(t, []string{"enqueue", "no b", "start c", "start d"}, d.events)
}

func TestWithPlansARefusalIsAskedAboutAgain(t *testing.T) {
	d := &desk{waiting: []string{"b", "c"}, free: 2, once: map[string]bool{"b": true}}
	c := cycle.Cycle[string]{Scheduler: d, Plans: true}
	require.NoError(t, c.Run(cycle.Allocate))
	require.Equal(t, []string{"no b", "start c", "start b"}, d.events)
}

func TestWhatAPlanLeavesFreeIsGivenOutBeforeTheNextPlan(t *testing.T) {
	d := &desk{waiting: []string{"c", "d", "e"}, running: []string{"a", "b"}}
	c := cycle.Cycle[string]{Scheduler: d, Plans: true}
	require.NoError(t, c.Run(cycle.Reclaim))
	require.Equal(t, []string{"reclaim a for c", "start c", "start d", "no e", "no e", "reclaim b for e", "start e"}, d.events)
}

func TestReclaimEndsWhenTheCallerSaysSo(t *testing.T) {
	d := &desk{waiting: []string{"c", "d", "e"}, running: []string{"a", "b"}}
	c := cycle.Cycle[string]{Scheduler: d, Plans: true, Settled: func() bool { return true }}
	require.NoError(t, c.Run(cycle.Reclaim))
	require.Equal(t, []string{"e"}, d.waiting)
}

func TestWithoutPlansEvictionsFollowOneAnother(t *testing.T) {
	d := &desk{waiting: []string{"c", "d"}, running: []string{"a", "b"}}
	c := cycle.Cycle[string]{Scheduler: d}
	require.NoError(t, c.Run(cycle.Actions()...))
	require.Equal(t, []string{"enqueue", "no c", "no d", "preempt a for c", "start c", "preempt b for d", "start d"}, d.events)
}

func TestAnErrorEndsACycle(t *testing.T) {
	d := &desk{waiting: []string{"c"}, free: 1, fault: errors.New("lost")}
	for _, plans := range []bool{false, true} {
		c := cycle.Cycle[string]{Scheduler: d, Plans: plans}
		for _, action := range []cycle.Action{cycle.Allocate, cycle.Preempt, cycle.Reclaim} {
			require.EqualError(t, c.Run(action), "lost")
		}
	}
	require.Empty(t, d.events)
}
