package tdm

import (
	"math"
	"strconv"
	"strings"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Preemptable takes running tasks on nodes of no zone, of each job the first ones that its disruption budget allows. A claimant that may
// itself be evicted, or may use revocable nodes, is given none.
func (s *State) Preemptable(claimant model.TaskID, candidates, dst []model.TaskID, g *policy.Grounds) ([]model.TaskID, policy.Vote) {
	v := s.view
	if v.Tasks.At(claimant).Preemptable || v.RevocableZone(claimant) != "" {
		for _, t := range candidates {
			g.Protect(t, policy.Because(Name, policy.ClaimantPreemptable, model.None))
		}
		return dst, policy.Reject
	}
	var jobs allowance
	for i, t := range candidates {
		v.Yield(i)
		n := v.NodeOf(t)
		if v.Status(t) != model.Running || !v.Tasks.At(t).Preemptable || n == model.None {
			g.Protect(t, policy.Because(Name, policy.NotPreemptable, model.None))
			continue
		}
		if zone := v.ZoneOf(n); zone != "" {
			reason := policy.Because(Name, policy.OnRevocableNode, model.None)
			reason.Detail = zone
			g.Protect(t, reason)
			continue
		}
		most, left := jobs.take(s, v.Tasks.At(t).Job)
		if left < 1 {
			reason := policy.Because(Name, policy.JobDisruption, model.None)
			reason.Limit = float64(most)
			g.Protect(t, reason)
			continue
		}
		dst = append(dst, t)
	}
	return dst, policy.Permit
}

// Shuffled names running tasks that may be evicted on the nodes of zones that are not lent now, of each job and zone the first ones that
// the job's disruption budget allows. Volcano asks this once in a while (`tdm.evict.period`); here it is always time.
func (s *State) Shuffled(running, dst []model.TaskID) []model.TaskID {
	v := s.view
	var jobs map[string]*allowance
	for i, t := range running {
		v.Yield(i)
		n := v.NodeOf(t)
		if n == model.None || v.Status(t) != model.Running || !v.Tasks.At(t).Preemptable {
			continue
		}
		zone := v.ZoneOf(n)
		if open, configured := s.open[zone]; zone == "" || !configured || open {
			continue
		}
		if jobs[zone] == nil {
			if jobs == nil {
				jobs = map[string]*allowance{}
			}
			jobs[zone] = &allowance{}
		}
		if _, left := jobs[zone].take(s, v.Tasks.At(t).Job); left > 0 {
			dst = append(dst, t)
		}
	}
	return dst
}

// allowance counts how many tasks of each job may still be named in one question.
type allowance struct{ left map[model.JobID]int64 }

// take counts one task of a job off. It returns how many may be named in all, and how many could be before this one.
func (a *allowance) take(s *State, j model.JobID) (most, left int64) {
	most = s.most(j)
	left, known := a.left[j]
	if !known {
		if left = most; a.left == nil {
			a.left = map[model.JobID]int64{}
		}
	}
	a.left[j] = left - 1
	return most, left
}

// most returns how many running tasks of a job may be evicted at once: what its disruption budget leaves, or one.
func (s *State) most(j model.JobID) int64 {
	var budget model.JobDisruption
	if d := s.view.Jobs.At(j).Detail; d != nil {
		budget = d.Disruption
	}
	a := s.view.Account(j)
	all, running := int64(a.AllTasks()), int64(a.Tasks[model.Running])
	if budget.MaxUnavailable != "" {
		missing := all - int64(a.Tasks[model.Succeeded]) - int64(a.Tasks[model.Failed]) - running
		return max(counted(budget.MaxUnavailable, all)-missing, 0)
	}
	if budget.MinAvailable != "" {
		if least := counted(budget.MinAvailable, all); running >= least {
			return running - least
		}
	}
	return 1
}

// counted is a number, or such a part of all as `50%`, rounded up; 0 for anything else.
func counted(text string, all int64) int64 {
	if percent, isPart := strings.CutSuffix(text, "%"); isPart {
		part, err := strconv.ParseInt(percent, 10, 32)
		if err != nil {
			return 0
		}
		return int64(math.Ceil(float64(part) * float64(all) / 100))
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return n
}

const (
	minute = 60
	day    = 24 * 60 * minute
)

// covers reports whether a time, in Unix nanoseconds, is within a period of its day, both ends included. A period that ends before it
// begins goes on until the next day, but has not begun on the day before: in its part after midnight it does not cover, as in Volcano.
func covers(period string, at int64) bool {
	from, until, two := strings.Cut(strings.TrimSpace(period), "-")
	start, ok := clock(from)
	end, ok2 := clock(until)
	if !two || !ok || !ok2 {
		return false
	}
	if start >= end {
		end += day
	}
	second := floor(at, 1e9)
	second -= floor(second, day) * day
	return start <= second && second <= end
}

// floor divides and rounds down.
func floor(n, by int64) int64 {
	q := n / by
	if n%by < 0 {
		q--
	}
	return q
}

// clock returns the seconds since midnight of a time of day such as `9:05` (Go's layout `15:04`).
func clock(text string) (int64, bool) {
	hour, minutes, two := strings.Cut(text, ":")
	h, ok := digits(hour)
	m, ok2 := digits(minutes)
	if !two || !ok || !ok2 || len(minutes) != 2 || h > 23 || m > 59 {
		return 0, false
	}
	return (h*60 + m) * minute, true
}

// digits reads one or two digits.
func digits(text string) (int64, bool) {
	if len(text) < 1 || len(text) > 2 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}
