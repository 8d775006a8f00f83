package forecast

import (
	"errors"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// plan takes the time at which a plugin has planned that the job starts, after those before it, or would plan it, if no earlier one was
// found.
func (f *forecaster) plan() error {
	if kept, ok := f.PlannedStart(f.job); ok {
		f.planned([]policy.Reservation{kept})
		return nil
	}
	for _, p := range f.Plugins() {
		keeper, ok := p.State.(policy.Keeper)
		if !ok {
			continue
		}
		list, err := keeper.Foresee(f.job)
		if _, tooMuch := errors.AsType[*policy.WorkError](err); tooMuch {
			f.forecast.CutShort = true
			return nil
		}
		if err != nil || len(list) == 0 || list[len(list)-1].From <= f.View().AsOf {
			return err
		}
		f.forecast.Unkept = f.planned(list)
		return nil
	}
	return nil
}

// planned makes the forecast that the job starts as the last one of a list of planned jobs, unless it was found to start no later. It
// reports whether it does.
func (f *forecaster) planned(list []policy.Reservation) bool {
	kept := list[len(list)-1]
	if f.forecast.Outcome == StartsAt && f.forecast.At <= kept.From {
		return false
	}
	on := make(map[model.NodeID]bool)
	for _, n := range kept.Nodes {
		on[n] = true
	}
	ends := slices.DeleteFunc(slices.Clone(f.ends), func(j model.JobID) bool { return f.endOf(j) > kept.From || !f.runsOn(j, on) })
	ahead := slices.DeleteFunc(slices.Clone(f.forecast.Ahead), func(j model.JobID) bool {
		_, planned := f.PlannedStart(j)
		return planned || slices.ContainsFunc(list, func(r policy.Reservation) bool { return r.Job == j })
	})
	f.forecast = Forecast{
		Outcome: StartsAt, At: kept.From, Ends: ends, Unknown: f.forecast.Unknown, Overdue: f.forecast.Overdue, Ahead: ahead,
		CutShort: f.forecast.CutShort, Tasks: kept.Tasks, Nodes: kept.Nodes,
	}
	return true
}

// runsOn reports whether a job has tasks on some nodes.
func (f *forecaster) runsOn(j model.JobID, on map[model.NodeID]bool) bool {
	job := f.View().Jobs.At(j)
	for t := job.FirstTask; t < job.EndTask; t++ {
		if n := f.View().NodeOf(t); n != model.None && on[n] {
			return true
		}
	}
	return false
}
