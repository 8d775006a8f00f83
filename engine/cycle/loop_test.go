package cycle_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
)

// desk is a scheduler of jobs of one queue for each ten numbers, the smaller number first, with a number of free places. A job takes wants
// places, one each time that it is served.
type desk struct {
	plans            bool
	waiting, running []model.JobID
	wants            map[model.JobID]int
	free             int
	// once refuses a job until another was started, as a policy does that keeps room for others. begun jobs go first.
	once, begun map[model.JobID]bool
	fault       error
	events      []string
}

func (d *desk) note(format string, args ...any) {
	d.events = append(d.events, fmt.Sprintf(format, args...))
}

func (d *desk) Plans() bool { return d.plans }

func (d *desk) Enqueue() error {
	d.note("enqueue")
	return nil
}

func (d *desk) Waiting(cycle.Action) (begun, others []model.JobID, err error) {
	for _, j := range d.waiting {
		if d.begun[j] {
			begun = append(begun, j)
		} else {
			others = append(others, j)
		}
	}
	return begun, others, d.fault
}

func (*desk) QueueOf(j model.JobID) model.QueueID { return model.QueueID(j / 10) }

func (*desk) Before(l, r model.JobID) bool { return l < r }

// Queues serves the queue first that holds less, and none beyond two places unless all are served.
func (d *desk) Queues(queues []model.QueueID, all bool) ([]model.QueueID, error) {
	held := map[model.QueueID]int{}
	for _, j := range d.running {
		held[d.QueueOf(j)]++
	}
	slices.SortStableFunc(queues, func(l, r model.QueueID) int { return held[l] - held[r] })
	return slices.DeleteFunc(queues, func(q model.QueueID) bool { return !all && held[q] > 1 }), nil
}

func (d *desk) Serve(j model.JobID, action cycle.Action) (done, more bool, err error) {
	switch {
	case action != cycle.Allocate && (len(d.running) == 0 || d.running[0] > j):
		return false, false, nil
	case action != cycle.Allocate:
		d.note("%s %d", action, d.running[0])
		// What leaves makes room for one more than it is for.
		d.free++
		d.running = d.running[1:]
	case d.free == 0 || d.once[j]:
		delete(d.once, j)
		d.note("no %d", j)
		return false, false, nil
	default:
		d.free--
	}
	d.note("start %d", j)
	d.running = append(d.running, j)
	if d.wants[j] > 1 {
		d.wants[j]--
		return true, true, nil
	}
	d.waiting = slices.DeleteFunc(slices.Clone(d.waiting), func(other model.JobID) bool { return other == j })
	return true, false, nil
}

func TestALoopServesInOrder(t *testing.T) {
	for name, test := range map[string]struct {
		desk    desk
		actions cycle.Actions
		settled bool
		events  []string
	}{
		"without plans each job has one turn": {
			desk{waiting: []model.JobID{3, 4, 2}, free: 2, once: map[model.JobID]bool{2: true}},
			cycle.Actions{cycle.Enqueue, cycle.Allocate},
			false,
			[]string{"enqueue", "no 2", "start 3", "start 4"},
		},
		"with plans a refusal is asked about again": {
			desk{plans: true, waiting: []model.JobID{2, 3}, free: 2, once: map[model.JobID]bool{2: true}},
			cycle.Actions{cycle.Allocate},
			false,
			[]string{"no 2", "start 3", "start 2"},
		},
		"queues take turns, and a job that wants more stands in line again": {
			desk{waiting: []model.JobID{1, 2, 11}, free: 5, wants: map[model.JobID]int{1: 2}},
			cycle.Actions{cycle.Allocate},
			false,
			[]string{"start 1", "start 11", "start 1"},
		},
		"what has begun goes first": {
			desk{waiting: []model.JobID{1, 12}, free: 2, begun: map[model.JobID]bool{12: true}},
			cycle.Actions{cycle.Allocate},
			false,
			[]string{"start 12", "start 1"},
		},
		"what a plan leaves free is given out before the next plan": {
			desk{plans: true, waiting: []model.JobID{13, 24, 35}, running: []model.JobID{1, 2}},
			cycle.Actions{cycle.Reclaim},
			false,
			[]string{"reclaim 1", "start 13", "start 24", "no 35", "no 35", "reclaim 2", "start 35"},
		},
		"reclaim ends when its caller says so": {
			desk{plans: true, waiting: []model.JobID{13, 24, 35}, running: []model.JobID{1, 2}},
			cycle.Actions{cycle.Reclaim},
			true,
			[]string{"reclaim 1", "start 13", "start 24", "no 35", "no 35"},
		},
		"without plans evictions follow one another": {
			desk{waiting: []model.JobID{13, 14}, running: []model.JobID{1, 2}},
			cycle.All(), false,
			[]string{"enqueue", "no 13", "no 14", "preempt 1", "start 13", "preempt 2", "start 14"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := test.desk
			loop := cycle.Loop{Scheduler: &d, Settled: func() bool { return test.settled }}
			require.NoError(t, loop.Run(test.actions...))
			require.Equal(t, test.events, d.events)
		})
	}
}

func TestAnErrorEndsALoop(t *testing.T) {
	d := &desk{waiting: []model.JobID{3}, free: 1, fault: errors.New("lost")}
	for _, d.plans = range []bool{false, true} {
		for _, action := range []cycle.Action{cycle.Allocate, cycle.Preempt, cycle.Reclaim} {
			require.EqualError(t, (&cycle.Loop{Scheduler: d}).Run(action), "lost")
		}
	}
	require.Empty(t, d.events)
}
