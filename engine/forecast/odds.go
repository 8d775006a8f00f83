package forecast

import (
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/odds"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// OddsQuestion asks when a waiting job starts, by chance.
type OddsQuestion struct {
	Job model.JobID
	// Runs is how many times the cluster is run forward; 0: 100.
	Runs int
	// Seed determines all draws.
	Seed uint64
	// Past are jobs that have finished, each of one of Kinds. Without any, the answer has bounds in place of odds.
	Kinds []PastKind
	Past  []PastJob
	// Arrivals lets jobs arrive as they did in the past; without it none arrives.
	Arrivals bool
	// Started says since when jobs run, in Unix nanoseconds. A job that is missing runs since its first task was created.
	Started map[model.JobID]int64
	// Horizon is how far runs look ahead, in seconds; 0: 30 days. Pause is the time between two rounds of decisions; 0: a minute.
	Horizon, Pause int64
	// Beside runs the independent runs, as odds.Model has it; nil: one after the other. The answer does not depend on it. The function by
	// which work stops is then called by several goroutines.
	Beside func(n int, run func(i int))
}

// PastKind is what some past jobs have in common. All their tasks ask for the same.
type PastKind struct {
	Queue    model.QueueID
	Owner    string
	Priority int32
	// Tasks is how many tasks a job had, and Min how many of them had to run at the same time.
	Tasks, Min int
	Request    resource.Row
}

// PastJob is a job of the history.
type PastJob struct {
	// Kind is a position in OddsQuestion.Kinds.
	Kind int
	// Arrival is in seconds after the time of the snapshot, so below 0. Seconds is how long it ran.
	Arrival, Seconds int64
	// Wait is how many seconds it waited before it ran, odds.Unknown if that is not known.
	Wait int64
	// Unfinished: it had not ended when the history did, and runs longer than Seconds.
	Unfinished bool
}

// Odds says when a job starts, by chance.
type Odds struct {
	*odds.Summary

	// Nothing is the finding that no node offers anything to judge by; all else is then empty.
	Nothing *policy.Reason
	// Runs is how many runs there were; 0: the job waits for nothing that a run shows, or there is no history.
	Runs int
	// Known is false without history. Earliest and Latest are then the starts if all jobs end at once, and if they run to their limits;
	// they are in seconds after the snapshot, odds.Never if the job does not start before the horizon.
	Known            bool
	Earliest, Latest int64
	Horizon          int64
	// Sources counts other jobs by where their runtimes are drawn from.
	Sources [NumSources]int
	// Hindcasts is at how many moments of the past it was asked when waiting jobs would start, to correct the starts by what came of them;
	// 0: they are not corrected. Raw are the starts before that.
	Hindcasts int
	Raw       []int64
	// Drift is how the load of the history changes, which the chances lag behind.
	Drift odds.Drift
	// Jobs are those that a Cause of the summary refers to.
	Jobs []model.JobID
}

// Source is where a job's runtime is drawn from.
type Source int

// The sources of runtimes, the best first.
const (
	// FromStated: the job states when it ends.
	FromStated Source = iota
	// FromKind: past jobs of the same size: of the same queue and owner if there are enough, of all queues if their runtimes are alike.
	FromKind
	// FromQueue: past jobs of the same queue, of the same owner if there are enough.
	FromQueue
	// FromAll: all past jobs.
	FromAll
	// FromPrior: no past job ran that long.
	FromPrior
	NumSources int = iota
)

// The bounds and defaults of a question.
const (
	MaxOddsRuns     = 10_000
	defaultOddsRuns = 100
	defaultHorizon  = int64(30 * 24 * 3600)
	maxHorizon      = int64(366 * 24 * 3600)
	defaultPause    = int64(60)
	// enoughPast is how many past runtimes are enough not to look at jobs that are less alike.
	enoughPast = 8
	// leastHindcast is the work that forecasts for jobs of the past may do in any case.
	leastHindcast = 80_000_000
	// naming is the work of saying what a job or a kind of past jobs has in common with others.
	naming = 500
	second = int64(1_000_000_000)
)

// ByChance runs the cluster forward many times, with runtimes and arrivals drawn from past jobs, and says when a job starts in them. It is
// nil if the job does not wait for a place, or cannot start at all because of its gang or its queue. See package odds for what a run
// leaves out. It changes nothing. The error is policy.ErrStopped, or a *policy.WorkError.
func ByChance(s *engine.Session, q *OddsQuestion) (*Odds, error) {
	h, v := s.Host(), s.View()
	if !h.Waits(q.Job) {
		return nil, nil //nolint:nilnil // No odds, no error.
	}
	if nothing := judge.NothingOffered(h); nothing != nil {
		return &Odds{Nothing: nothing}, nil
	}
	c := compiler{
		Host: h, question: q, on: map[engine.Kind][]bool{}, alike: map[string][]bool{}, kinds: map[string]int{},
		shuts: map[engine.Kind]*odds.Shut{},
	}
	if err := c.compile(); err != nil {
		return nil, err
	}
	if c.asked < 0 {
		return nil, nil //nolint:nilnil // As above.
	}
	out := &Odds{Summary: &odds.Summary{}, Known: len(q.Past) > 0, Horizon: c.m.Horizon, Sources: c.sources, Jobs: c.jobs}
	base := odds.NewBase(&c.m)
	if err := c.looked(); err != nil {
		return nil, err
	}
	if !out.Known {
		out.Earliest, out.Latest = base.Bound(odds.Shortest).Start, base.Bound(odds.Longest).Start
		return out, c.looked()
	}
	// Each run is bounded by an equal part of the work that is left, so that it may be booked after all runs.
	outcomes, work := base.RunAll(q.Seed, q.runs()), int64(0)
	for i := range outcomes {
		if outcomes[i].Stopped {
			return nil, policy.ErrStopped
		}
		if err := v.Work.Spend(int(outcomes[i].Work), 1); err != nil {
			return nil, err
		}
		work += outcomes[i].Work
	}
	out.Runs, out.Summary, out.Drift = len(outcomes), odds.Summarize(outcomes), c.m.Drift()
	if err := c.correct(out, work); err != nil {
		return nil, err
	}
	return out, c.looked()
}

// correct corrects starts by forecasts for jobs of the past, which may cost twice what the runs did.
func (c *compiler) correct(out *Odds, work int64) error {
	running := 0
	for i := range c.m.Jobs {
		if c.m.Jobs[i].Running > 0 {
			running++
		}
	}
	if !c.question.Arrivals || 2*out.Sources[FromStated] > running {
		// No such past can be told from what is asked about.
		return nil
	}
	h := c.m.Hindcast(c.question.Seed, min(max(2*work, leastHindcast), c.View().Work.Left()/2))
	if err := c.View().Work.Spend(int(min(h.Work, c.View().Work.Left())), 1); err != nil {
		return err
	}
	raw := slices.Clone(out.Starts)
	if h.Correct(out.Starts) {
		out.Hindcasts, out.Raw = h.Times, raw
	}
	return nil
}

// looked asks whether to stop.
func (c *compiler) looked() error {
	if v := c.View(); v.Stop != nil && v.Stop() {
		return policy.ErrStopped
	}
	return nil
}

// runs returns how many runs are asked for.
func (q *OddsQuestion) runs() int {
	if q.Runs <= 0 {
		return defaultOddsRuns
	}
	return min(q.Runs, MaxOddsRuns)
}
