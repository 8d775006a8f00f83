package backfill

import (
	"slices"
	"sort"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// permission finds times at which the queue of tasks may use what they ask for as long as they run, beside the jobs for which room is kept.
//
// Between two starts of such jobs of the same kin, what the queue may use only grows, as jobs end. At a start it may become less.
type permission struct {
	profile *profile
	job     model.JobID
	tasks   []model.TaskID
	runtime int64
	kept    []policy.Reservation
	// starts are the times at which jobs of the same kin start, in order.
	starts []int64
	// known says of times whether the queue may use it then.
	known map[int64]bool
}

// permission returns when a job may enter its queue, and when the queue may use what its tasks ask for while they run for a time, in
// nanoseconds, beside the jobs of kept.
func (p *profile) permission(j model.JobID, tasks []model.TaskID, runtime int64, kept []policy.Reservation) *permission {
	m := &permission{profile: p, job: j, tasks: tasks, runtime: runtime, kept: kept, known: map[int64]bool{}}
	kin := p.line.Kin(p.view.QueueOf(tasks[0]))
	for i := range kept {
		if from := kept[i].From; from > p.view.AsOf && p.line.Kin(p.view.Jobs.At(kept[i].Job).Queue) == kin {
			m.starts = append(m.starts, from)
		}
	}
	slices.Sort(m.starts)
	m.starts = slices.Compact(m.starts)
	return m
}

// permits reports whether the queue may use it at a time.
func (m *permission) permits(at int64) bool {
	permits, known := m.known[at]
	if !known {
		permits = m.profile.line.Permits(m.tasks, at, during(m.kept, at))
		m.known[at] = permits
	}
	return permits
}

// from returns the first time from another one on, of this one and those at which something ends or starts, at which the queue may use it
// as long as the tasks run; false if there is none.
func (m *permission) from(at int64) (int64, bool) {
	for {
		next, _ := slices.BinarySearch(m.starts, at+1)
		end := policy.Endless
		if next < len(m.starts) {
			end = m.starts[next]
		}
		if first, ok := m.within(at, end); ok {
			refused, reaches := m.refused(m.starts[next:], first)
			if !reaches {
				return first, true
			}
			// Every time before that start reaches into it.
			end = refused
		}
		if end == policy.Endless {
			return 0, false
		}
		at = end
	}
}

// refused returns the first of starts at which tasks still run that start at a time, and the queue may not use it; false if there is none.
func (m *permission) refused(starts []int64, at int64) (int64, bool) {
	until := policy.After(at, m.runtime)
	for _, start := range starts {
		if start >= until {
			break
		}
		if !m.permits(start) {
			return start, true
		}
	}
	return 0, false
}

// within returns the first time from another one on, and before an end, at which the queue may use it. No job starts between them for which
// room is kept.
func (m *permission) within(at, end int64) (int64, bool) {
	if m.permits(at) {
		return at, true
	}
	return m.first(at, end, m.permits)
}

// first returns the first time after another one, and before an end, at which something ends or starts and a condition holds, which holds
// from some time on.
func (m *permission) first(at, end int64, holds func(int64) bool) (int64, bool) {
	times := m.profile.times
	i, _ := slices.BinarySearch(times, at+1)
	to, _ := slices.BinarySearch(times, end)
	times = times[i:max(i, to)]
	if len(times) == 0 || !holds(times[len(times)-1]) {
		return 0, false
	}
	return times[sort.Search(len(times)-1, func(i int) bool { return holds(times[i]) })], true
}

// entry returns the first time from another one on, of this one and those at which something ends or starts, at which the job may enter its
// queue; false if there is none. Between two starts of jobs for which room is kept what is missing only becomes less.
func (m *permission) entry(at int64) (first int64, ok bool, err error) {
	enters := func(at int64) bool {
		enters, fault := m.profile.line.Enters(m.job, at, during(m.kept, at))
		if fault != nil {
			err = fault
		}
		return enters && fault == nil
	}
	for {
		end := policy.Endless
		for i := range m.kept {
			if from := m.kept[i].From; from > at {
				end = min(end, from)
			}
		}
		if enters(at) {
			return at, true, err
		}
		first, ok = m.first(at, end, enters)
		if ok || end == policy.Endless || err != nil {
			return first, ok && err == nil, err
		}
		at = end
	}
}
