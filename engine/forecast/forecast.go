// Package forecast says when a waiting job starts: For proves at what time it could at the earliest as running jobs end, and ByChance runs
// the cluster forward many times, by the model of package odds.
package forecast

import (
	"cmp"
	"errors"
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
)

// Outcome says whether a job could start. The values are those of the contract's ForecastOutcome.
type Outcome uint8

// The outcomes of a forecast.
const (
	// StartsNow: the job could start now.
	StartsNow Outcome = 1
	// StartsAt: it could start at a time.
	StartsAt Outcome = 2
	// NotForeseen: no time was found, and it could not start once all jobs have ended whose end is known.
	NotForeseen Outcome = 3
)

// Forecast says when a job could start at the earliest if nothing else changes.
type Forecast struct {
	Outcome Outcome
	// At is when it could start, in Unix nanoseconds: the first time at which jobs or reservations of nodes end and it could.
	At int64
	// Released is the number of nodes of which a reservation ends then.
	Released int
	// Ends are the jobs on whose ends it depends, in order of time.
	Ends []model.JobID
	// Minimal: the job could not start at that time if any one of Ends ran on. If the search was not cut short, no End can be left out of
	// Ends either way; without Minimal, another job that has ended by then may take the place of one.
	Minimal bool
	// Earliest: the question was asked after every end before At, or after all ends if there is no such time. Else it was asked only after
	// some ends, among them the last one before At.
	Earliest bool
	// Unknown are other running jobs whose end is not known, Overdue those that were expected to end before now, by uid.
	Unknown, Overdue []model.JobID
	// Ahead are the waiting jobs that come first: queue by queue in queue order, job by job in job order, as of now.
	Ahead []model.JobID
	// CutShort: the search ended at a bound on its work.
	CutShort bool
	// Unkept: the policy keeps room for other jobs that wait, and none for this one. At is when it starts by a plan of all before it.
	Unkept bool
	// Tasks are those that start then, and Nodes where they have room. nil: the tasks do not exist yet, or there are no nodes.
	Tasks []model.TaskID
	Nodes []model.NodeID
}

const (
	// forecastQuestions bounds how often a forecast asks whether the job could start.
	forecastQuestions = 64
	// forecastWalk is how many times of ends are tried one after the other. Among more, forecastSpans are tried, and then halves of a
	// span.
	forecastWalk, forecastSpans = 24, 8
	// forecastFew is how many ends are left out one by one to find which are needed. Of more, halves are left out first.
	forecastFew = 12
)

// For says when a job could start at the earliest if nothing else changes: jobs end when they are expected to, all others run on, no
// other waiting job is placed before, and no task is evicted. It is nil if the end of no running job is known and no reservation ends, or
// if no node states what it offers.
//
// Whether the job could start is asked each time of a session on the cluster without the jobs that have ended: it may enter its queue, the
// queue is served and may use what the tasks need that the gang lacks, and these have room. A job whose tasks do not exist yet starts when
// it enters its queue. The answer is the earliest time at which jobs end and the job could start if the times are few, or if it could at
// every later time too, as under policies that set no room aside; else it is a time at which it could start, and could not after the end
// before.
//
// It changes nothing. The error is policy.ErrStopped.
func For(s *engine.Session, j model.JobID) (*Forecast, error) {
	f := forecaster{Host: s.Host(), job: j, left: forecastQuestions}
	f.findEnds()
	moments := f.moments()
	if len(moments)+len(f.forecast.Overdue) == 0 || judge.NothingOffered(f.Host) != nil {
		return nil, nil //nolint:nilnil // No forecast, no error.
	}
	f.findAhead()
	f.forecast.Outcome = NotForeseen
	now, err := f.starts(nil)
	switch {
	case err != nil:
		return nil, err
	case now:
		f.forecast.Outcome = StartsNow
		f.note()
		return &f.forecast, nil
	}
	if err := f.search(moments); err != nil {
		return nil, err
	}
	if err := f.plan(); err != nil {
		return nil, err
	}
	return &f.forecast, nil
}

// forecaster makes a forecast.
type forecaster struct {
	engine.Host

	job      model.JobID
	forecast Forecast
	// ends are the jobs that run and whose end is known, in order of time.
	ends []model.JobID
	// at is the time that is asked about, 0: that of the snapshot.
	at int64
	// left is how many questions may still be asked.
	left int
	// tasks could start on nodes when it was asked last.
	tasks []model.TaskID
	nodes []model.NodeID
}

// note notes where the job could start when it was asked last.
func (f *forecaster) note() {
	if len(f.nodes) > 0 {
		f.forecast.Tasks, f.forecast.Nodes = slices.Clone(f.tasks), slices.Clone(f.nodes)
	}
}

// findEnds finds the other jobs that run.
func (f *forecaster) findEnds() {
	v := f.View()
	for _, j := range v.Present() {
		job := v.Jobs.At(j)
		switch {
		case j == f.job || !f.Occupies(j):
		case job.ExpectedEnd == 0:
			f.forecast.Unknown = append(f.forecast.Unknown, j)
		case job.ExpectedEnd <= v.AsOf:
			f.forecast.Overdue = append(f.forecast.Overdue, j)
		default:
			f.ends = append(f.ends, j)
		}
	}
	slices.SortStableFunc(f.ends, func(l, r model.JobID) int { return cmp.Compare(f.endOf(l), f.endOf(r)) })
}

func (f *forecaster) endOf(j model.JobID) int64 { return f.View().Jobs.At(j).ExpectedEnd }

// findAhead lists the waiting jobs that come first.
func (f *forecaster) findAhead() {
	waiting := f.Waiting()
	f.forecast.Ahead = waiting[:max(slices.Index(waiting, f.job), 0)]
}

// moment is a time at which jobs or reservations end.
type moment struct {
	at int64
	// ended is the number of jobs that have ended by then.
	ended int
}

// moments lists the times at which something ends, in order.
func (f *forecaster) moments() []moment {
	v, at := f.View(), make([]int64, 0, len(f.ends))
	for _, j := range f.ends {
		at = append(at, f.endOf(j))
	}
	if v.Reservations() != nil {
		for _, n := range v.NodeOrder {
			for _, r := range v.Nodes[n].Reservations() {
				if r.Until > v.AsOf {
					at = append(at, r.Until)
				}
			}
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	list, ended := make([]moment, 0, len(at)), 0
	for _, t := range at {
		for ended < len(f.ends) && f.endOf(f.ends[ended]) <= t {
			ended++
		}
		list = append(list, moment{t, ended})
	}
	return list
}

// search finds the first time at which the job could start, and the ends on which it depends.
func (f *forecaster) search(moments []moment) error {
	first, err := f.first(moments)
	if err != nil || first < 0 {
		return err
	}
	ended := f.ends[:moments[first].ended]
	f.forecast.Outcome, f.forecast.At, f.at = StartsAt, moments[first].at, moments[first].at
	f.forecast.Released = f.released()
	near, err := f.near(ended)
	if err != nil {
		return err
	}
	if f.forecast.Ends, err = f.least(near); err != nil {
		return err
	}
	f.forecast.Minimal, err = f.irreplaceable(f.forecast.Ends, ended)
	return err
}

// released returns the number of nodes of which a reservation ends at the time that was found.
func (f *forecaster) released() (n int) {
	for _, node := range f.View().NodeOrder {
		if slices.ContainsFunc(f.View().Nodes[node].Reservations(), func(r model.Reservation) bool { return r.Until == f.at }) {
			n++
		}
	}
	return n
}

// first returns the first time at which the job could start, -1 if none was found. All are tried in order if they are few; of many, some
// are tried that are evenly spaced, and then halves of the span before the first of them.
func (f *forecaster) first(moments []moment) (int, error) {
	few := len(moments) <= forecastWalk
	if len(moments) == 0 {
		f.forecast.Earliest = true
		return -1, nil
	}
	step := 1
	if !few {
		step = (len(moments) + forecastSpans - 1) / forecastSpans
	}
	from, found := 0, -1
	for at := min(step, len(moments)) - 1; found < 0; at = min(at+step, len(moments)-1) {
		switch starts, err := f.startsAt(moments[at]); {
		case err != nil:
			return -1, err
		case starts:
			found = at
			f.note()
		case at == len(moments)-1:
			f.forecast.Earliest = few && !f.forecast.CutShort
			return -1, nil
		default:
			from = at + 1
		}
	}
	for from < found {
		middle := (from + found) / 2
		switch starts, err := f.startsAt(moments[middle]); {
		case err != nil:
			return -1, err
		case starts:
			found = middle
			f.note()
		default:
			from = middle + 1
		}
	}
	f.forecast.Earliest = few && !f.forecast.CutShort
	return found, nil
}

func (f *forecaster) startsAt(m moment) (bool, error) {
	f.at = m.at
	return f.starts(f.ends[:m.ended])
}

// near returns the jobs among those that have ended which hold something on the nodes where the job could start, if it could without the
// ends of the others; else all.
func (f *forecaster) near(ended []model.JobID) ([]model.JobID, error) {
	if len(ended) <= forecastFew {
		return ended, nil
	}
	starts, err := f.starts(ended)
	if !starts || err != nil {
		return ended, err
	}
	on := make(map[model.NodeID]bool)
	for _, n := range f.nodes {
		on[n] = true
	}
	near := slices.DeleteFunc(slices.Clone(ended), func(j model.JobID) bool { return !f.runsOn(j, on) })
	if starts, err = f.starts(near); !starts || err != nil {
		return ended, err
	}
	return near, nil
}

// least leaves out ends, the latest first, until the job needs each of those left beside the others of them.
func (f *forecaster) least(ended []model.JobID) ([]model.JobID, error) {
	if len(ended) > forecastFew {
		var err error
		if ended, err = f.halved(nil, ended, false); err != nil {
			return nil, err
		}
		slices.SortStableFunc(ended, func(l, r model.JobID) int { return cmp.Compare(f.endOf(l), f.endOf(r)) })
	}
	for fewer := true; fewer; {
		fewer = false
		for i := range slices.Backward(ended) {
			rest := slices.Delete(slices.Clone(ended), i, i+1)
			starts, err := f.starts(rest)
			if err != nil {
				return nil, err
			}
			if starts {
				ended, fewer = rest, true
			}
		}
	}
	return ended, nil
}

// irreplaceable reports whether the job could not start if any one of the needed jobs ran on, after all other ends.
func (f *forecaster) irreplaceable(needed, ended []model.JobID) (bool, error) {
	if len(needed) < len(ended) {
		for _, j := range needed {
			at := slices.Index(ended, j)
			if starts, err := f.starts(slices.Delete(slices.Clone(ended), at, at+1)); starts || err != nil {
				return false, err
			}
		}
	}
	return !f.forecast.CutShort, nil
}

// halved returns some of list without which, beside base, the job could not start, given that it could with all of list. It asks about
// base alone first if that is new. Of few ends that are needed among many it finds which with few questions (QuickXplain, U. Junker,
// 2004).
func (f *forecaster) halved(base, list []model.JobID, asks bool) ([]model.JobID, error) {
	if asks {
		if starts, err := f.starts(base); starts || err != nil {
			return nil, err
		}
	}
	if len(list) == 1 || f.left == 0 {
		return list, nil
	}
	before, after := list[:len(list)/2], list[len(list)/2:]
	late, err := f.halved(slices.Concat(base, before), after, true)
	if err != nil {
		return nil, err
	}
	early, err := f.halved(slices.Concat(base, late), before, len(late) > 0)
	return slices.Concat(early, late), err
}

// starts asks whether the job could start at the time that is asked about without some jobs. It is false, and the search is cut short, if
// nothing more may be asked.
func (f *forecaster) starts(without []model.JobID) (bool, error) {
	v := f.View()
	if v.Stop != nil && v.Stop() {
		return false, policy.ErrStopped
	}
	if f.left == 0 {
		f.forecast.CutShort = true
		return false, nil
	}
	f.left--
	starts := false
	err := f.Tried(func() error {
		if err := v.Work.Spend(v.Tasks.Len()+len(v.Nodes)*v.Dims.Len()+place.Trials, 1); err != nil {
			return err
		}
		// Time passes where a reservation of a node may begin or end.
		passes := f.at != 0 && v.Reservations() != nil
		if len(without) > 0 || passes {
			if err := f.Change(nil, func(b *model.ChangeBuilder) {
				b.RemoveJobs(without...)
				if passes {
					b.AsOf(f.at)
				}
			}); err != nil {
				return err
			}
		}
		d, err := judge.Once(f.Host, f.job, f.NeedOf(f.job), true)
		if err != nil {
			return err
		}
		f.tasks, f.nodes, starts = d.Tasks, d.Nodes, d.Against() == nil
		return nil
	})
	if _, ok := errors.AsType[*policy.WorkError](err); ok {
		f.left, f.forecast.CutShort = 0, true
		return false, nil
	}
	return starts, err
}
