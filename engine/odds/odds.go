// Package odds runs a plain model of a cluster forward many times, with runtimes and arrivals drawn by chance, until one job starts.
// Nothing of it depends on anything but its arguments: equal models and seeds have equal starts.
//
// The model is a reduction. The policy divides among queues and orders them (policy.Course), jobs of a queue are served by priority and
// age, a gang starts whole or not at all, and whatever fits may pass what does not. Jobs may have to be admitted to their queues first.
// Tasks go to the first node with room. No task is evicted, and no node fails.
package odds

import (
	"cmp"
	"math"
	"slices"

	"github.com/apportion/apportion/engine/policy"
)

// Never is the start of a job that does not start before the horizon.
const Never = int64(math.MaxInt64)

// Unknown is a runtime that is not stated.
const Unknown = int64(-1)

// Model is a cluster at second 0. It is not changed by runs, so that runs may share it.
type Model struct {
	// Nodes are the amounts that nodes have free when nothing of Jobs runs; all rows have the same width.
	Nodes [][]float64
	// Periods keep nodes from tasks, for each node; nil: there are none.
	Periods [][]Period
	Queues  []Queue
	Kinds   []Kind
	// Jobs run or wait. Asked is the one whose start is asked for; it waits.
	Jobs  []Job
	Asked int
	// Past are finished jobs, in order of arrival; Arrivals lets jobs like them arrive.
	Past     []Past
	Arrivals bool
	// Course returns the policy for one run: it divides among the queues, and says which is served first. nil: queues deserve nothing, and
	// are served in their order.
	Course func(*policy.Amounts) policy.Course
	// Admission says that jobs are admitted to their queue before they may start: while the minima of the jobs of a queue that are admitted
	// or run are within its limits. Admits bounds the amounts that run and that admitted jobs wait for, of all queues together; nil: there
	// is no such bound.
	Admission bool
	Admits    []float64
	// Horizon is the second after which a run ends. Pause is the time between two rounds of decisions.
	Horizon, Pause int64
	// Work bounds what one run does, in looks at nodes, kinds and queues; 0: no bound.
	Work int64
	// Stop, if not nil, ends a run if it returns true.
	Stop func() bool
	// Beside, if not nil, calls run for each number below n, in any order and at the same time if it likes, and returns after all. Each
	// call has its own results, so answers do not depend on it; Stop must allow it.
	Beside func(n int, run func(i int))
}

// beside calls run for each number below n.
func (m *Model) beside(n int, run func(i int)) {
	if m.Beside != nil {
		m.Beside(n, run)
		return
	}
	for i := range n {
		run(i)
	}
}

// Queue is a queue. Of those that the policy puts on a level the first is served first.
type Queue struct {
	// Parent is -1 for none. Limits hold on the whole path.
	Parent int
	// Limit has an amount for each dimension, +Inf for none; nil for no limit at all.
	Limit []float64
}

// Kind is a kind of job: what its tasks ask for, in a queue, by a priority.
type Kind struct {
	Queue    int
	Priority int32
	// Gang must start together; More are tasks that start when there is room, once the gang runs.
	Gang, More []Tasks
	// Min is what has to be within bounds for a job to be admitted; nil: it is admitted in any case.
	Min []float64
}

// Tasks is a number of equal tasks.
type Tasks struct {
	Request []float64
	N       int
	// On are the nodes that may take them; nil: all. Shut says which periods of nodes keep them off; nil: none does.
	On   []bool
	Shut *Shut
}

// Job is a job of the present. It runs if it holds something.
type Job struct {
	// Kind is that of what it still waits for. Rank is its place among jobs of the same queue and priority.
	Kind, Rank int
	// Held are the amounts that it holds, by node.
	Held []Held
	// Running counts the tasks that run.
	Running int
	// Elapsed is how long it runs. Ends is the second at which it ends, Unknown if that is not stated, and Limit the longest runtime.
	Elapsed, Ends, Limit int64
	// Drawn are the runtimes that it may have; nil: none is known.
	Drawn *Sample
	// Waits is true if some of its tasks wait. Pending says that it waits to be admitted, and Booked is what counts against the bounds of
	// admission for a job that is; nil: nothing.
	Waits, Pending bool
	Booked         []float64
	// Arrived says that it is among Model.Past too.
	Arrived bool
}

// Held is what a job holds of a node.
type Held struct {
	Node   int
	Amount []float64
}

// Past is a job that arrived in the past. Arrival is before 0. Seconds is how long it ran; 0: it has not ended, and Elapsed is how long it
// has run. In one half of the runs a job like it runs as long, which keeps what jobs that arrive together have in common. In the other
// half, and if it has not ended, it runs as long as one of Drawn that ran longer than Elapsed: so jobs may run longer than any did. Without
// Drawn it always runs as long.
type Past struct {
	Arrival, Seconds, Elapsed int64
	Kind                      int
	Drawn                     *Sample
	// Wait is how long it waited before it began, Unknown if that is not known; Waits says that it has not begun.
	Wait  int64
	Waits bool
}

// Outcome is what one run found.
type Outcome struct {
	// Start is when the job started, or Never.
	Start int64
	// Cause are the jobs of Model.Jobs whose ends led to the start one after the other, the last first.
	Cause []int
	// Cut is true if the run ended at its bound on work, which it did so much of.
	Cut  bool
	Work int64
	// Stopped is true if Model.Stop ended it, so that it says nothing.
	Stopped bool
}

// Summary is what many runs found together.
type Summary struct {
	// Starts are sorted; Never stands at the end.
	Starts []int64
	// Causes are the jobs whose ends led to the start in most runs, the most frequent first.
	Causes []Cause
	// Cut counts the runs that ended at their bound on work.
	Cut int
}

// Cause is a job whose end leads to the start in a number of runs.
type Cause struct{ Job, Runs int }

// Summarize puts together what runs found.
func Summarize(outcomes []Outcome) *Summary {
	s := &Summary{}
	runs := map[int]int{}
	for i := range outcomes {
		o := &outcomes[i]
		s.Starts = append(s.Starts, o.Start)
		if o.Cut {
			s.Cut++
		}
		for _, j := range o.Cause {
			runs[j]++
		}
	}
	slices.Sort(s.Starts)
	for j, n := range runs {
		s.Causes = append(s.Causes, Cause{j, n})
	}
	slices.SortFunc(s.Causes, func(l, r Cause) int { return cmp.Or(cmp.Compare(r.Runs, l.Runs), cmp.Compare(l.Job, r.Job)) })
	return s
}

// Percentile returns the start that so many percent of the runs do not exceed: one that occurs.
func (s *Summary) Percentile(percent int) int64 {
	if len(s.Starts) == 0 {
		return Never
	}
	return s.Starts[max(0, (len(s.Starts)*percent+99)/100-1)]
}

// Within counts the runs in which the job has started by a second.
func (s *Summary) Within(second int64) int {
	n, _ := slices.BinarySearchFunc(s.Starts, second, func(start, by int64) int {
		if start <= by {
			return -1
		}
		return 1
	})
	return n
}
