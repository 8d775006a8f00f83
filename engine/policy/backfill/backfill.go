// Package backfill keeps room for jobs that wait until they can start, so that others which start before them do not delay them: EASY
// backfill (D. Lifka, The ANL/IBM SP Scheduling System, 1995) and conservative backfill, as Slurm's sched/backfill does it. Volcano has no
// such plugin; its action backfill places tasks that ask for nothing.
package backfill

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Name is the name of the plugin in answers.
const Name = "backfill"

// Kind says for which jobs room is kept.
type Kind uint8

// The kinds.
const (
	// EASY keeps room for the first job that cannot start now, and for those before it.
	EASY Kind = iota
	// Conservative keeps room for every job.
	Conservative
)

// Plugin is the policy with its settings.
type Plugin struct {
	Kind Kind
	// Jobs bounds the jobs for which a time is looked for.
	Jobs int
	// Window is how far ahead it may be, in nanoseconds. Times at which running jobs end are rounded up to multiples of Resolution.
	Window, Resolution int64
}

const second = 1_000_000_000

// Default returns the settings of an empty message: those of Slurm (bf_max_job_test, bf_window, bf_resolution).
func Default() Plugin {
	const jobs, day, minute = 500, 24 * 60 * 60, 60
	return Plugin{Kind: EASY, Jobs: jobs, Window: day * second, Resolution: minute * second}
}

// Name is the name in answers.
func (Plugin) Name() string { return Name }

// Open returns a *State.
func (p Plugin) Open(v *policy.View) (policy.State, error) {
	return &State{plugin: p, view: v, at: map[model.JobID]int{}}, nil
}

// State knows for which jobs room is kept. That is settled when the session is opened and when it changes to another snapshot; what starts
// in between is beside it.
type State struct {
	plugin Plugin
	view   *policy.View
	line   policy.Line
	// kept are the reservations in order of service, and at has the position of that of a job.
	kept []policy.Reservation
	at   map[model.JobID]int
	// asking is true while the other plugins are asked.
	asking bool
}

// Keep plans the jobs that wait, under EASY until one cannot start now.
func (s *State) Keep(l policy.Line) ([]policy.Reservation, error) {
	s.line = l
	kept, err := s.plan(nil, func(one *policy.Reservation) bool { return s.plugin.Kind == EASY && one.From > s.view.AsOf })
	for i := range kept {
		s.at[kept[i].Job] = i
	}
	s.kept = kept
	return kept, err
}

// plan adds the jobs that wait to a list of planned ones, one after the other, until last is true: each starts at the earliest time at
// which it has room beside those before it.
func (s *State) plan(list []policy.Reservation, last func(one *policy.Reservation) bool) ([]policy.Reservation, error) {
	p, err := newProfile(s.view, s.line, s.plugin)
	if err != nil || p == nil {
		return nil, err
	}
	for i := range list {
		if err := p.take(&list[i]); err != nil {
			return nil, err
		}
	}
	s.asking = true
	defer func() { s.asking = false }()
	var fault error
	looked := len(list)
	err = s.line.Each(func(j model.JobID, tasks []model.TaskID) (more bool) {
		one, ok, err := p.earliest(j, tasks, list)
		if err != nil {
			fault = err
			return false
		}
		if ok {
			list = append(list, one)
		}
		looked++
		return looked < s.plugin.Jobs && !(ok && last(&one))
	})
	if fault != nil {
		err = fault
	}
	return list, err
}

// Foresee plans the jobs up to one for which no room is kept, as conservative backfill does. That one is the last of the list, which is nil
// if there is no time for it.
func (s *State) Foresee(j model.JobID) ([]policy.Reservation, error) {
	if s.plugin.Kind != EASY || len(s.kept) == 0 {
		return nil, nil
	}
	var list []policy.Reservation
	for i := range s.kept {
		if s.kept[i].Job == j {
			return nil, nil
		}
		if one := s.unstarted(&s.kept[i]); len(one.Tasks) > 0 {
			list = append(list, one)
		}
	}
	list, err := s.plan(list, func(one *policy.Reservation) bool { return one.Job == j })
	if err != nil || len(list) == 0 || list[len(list)-1].Job != j {
		return nil, err
	}
	return list, nil
}

// unstarted returns a reservation for those of its tasks that have not started.
func (s *State) unstarted(r *policy.Reservation) policy.Reservation {
	one := policy.Reservation{Job: r.Job, From: r.From, Until: r.Until}
	for i, t := range r.Tasks {
		if s.view.Status(t) == model.Pending {
			one.Tasks, one.Nodes = append(one.Tasks, t), append(one.Nodes, r.Nodes[i])
		}
	}
	return one
}

// ReservationOf returns the room that is kept for a job; false if there is none.
func (s *State) ReservationOf(j model.JobID) (policy.Reservation, bool) {
	i, ok := s.at[j]
	if !ok || !s.waits(&s.kept[i]) {
		return policy.Reservation{}, false
	}
	return s.kept[i], true
}

// waits reports whether some task of a reservation has not started.
func (s *State) waits(r *policy.Reservation) bool {
	for _, t := range r.Tasks {
		if s.view.Status(t) == model.Pending {
			return true
		}
	}
	return false
}

// Enqueueable permits the job that waits and starts now by the plan. While some job for which room is kept has not entered its queue, it
// rejects others that may not start because of what is kept: they would wait for it inside of their queues, and evict it once it has
// started where the policy lets them. It has no opinion on all else.
func (s *State) Enqueueable(j model.JobID, why *policy.Reasons) policy.Vote {
	if s.startsNow(j) {
		return policy.Permit
	}
	if !slices.ContainsFunc(s.kept, func(r policy.Reservation) bool { return s.view.Phase(r.Job) == model.PhasePending }) {
		return policy.Abstain
	}
	q, tasks := s.view.Jobs.At(j).Queue, s.line.Needs(j)
	if i, planned := s.at[j]; planned {
		tasks = s.unstarted(&s.kept[i]).Tasks
	}
	if len(tasks) == 0 || s.Allocatable(q, policy.Request{Tasks: tasks}, policy.InSession, why, nil) {
		return policy.Abstain
	}
	return policy.Reject
}

// startsNow reports whether a job waits and starts now by the plan.
func (s *State) startsNow(j model.JobID) bool {
	i, ok := s.at[j]
	return ok && s.kept[i].From <= s.view.AsOf && s.waits(&s.kept[i])
}

// Allocatable permits the tasks of a job that starts now by the plan. Others, and those that would start earlier than planned, may start
// if they end before each job starts for which room is kept, or if its queue may still use what it asks for, and if not all nodes with
// room for them are kept: which node takes a task is said by the reservations.
func (s *State) Allocatable(q model.QueueID, r policy.Request, _ policy.Mode, why *policy.Reasons, checks *policy.Checks) bool {
	if s.asking || len(s.kept) == 0 || len(r.Tasks) == 0 {
		return true
	}
	j := s.view.Tasks.At(r.Tasks[0]).Job
	if s.startsNow(j) {
		return true
	}
	s.asking = true
	defer func() { s.asking = false }()
	if before := s.hindered(q, j, r.Tasks); before != nil {
		return policy.Refuse(why, checks, policy.BecauseKept(Name, s.view, before))
	}
	for i, t := range r.Tasks {
		if i > 0 && s.alike(t, r.Tasks[i-1]) {
			continue
		}
		if reason, kept := s.line.KeptOff(t); kept {
			return policy.Refuse(why, checks, reason)
		}
	}
	return true
}

// hindered returns the first reservation of another job that waits and starts before tasks of a job end, and of which the queue could not
// use what it asks for beside them; nil if there is none.
func (s *State) hindered(q model.QueueID, j model.JobID, tasks []model.TaskID) *policy.Reservation {
	end := s.view.EndOf(j)
	for i := range s.kept {
		r := &s.kept[i]
		if r.Job == j || r.From >= end || s.line.Kin(s.view.Jobs.At(r.Job).Queue) != s.line.Kin(q) || !s.waits(r) {
			continue
		}
		others := slices.DeleteFunc(during(s.kept, r.From), func(o policy.Reservation) bool { return o.Job == j })
		if s.line.Permits(tasks, r.From, nil) && !s.line.Permits(tasks, r.From, others) {
			return r
		}
	}
	return nil
}

// during lists the reservations that have begun at a time and not ended.
func during(list []policy.Reservation, at int64) []policy.Reservation {
	var some []policy.Reservation
	for i := range list {
		if r := &list[i]; r.From <= at && r.Until > at {
			some = append(some, *r)
		}
	}
	return some
}

// alike reports whether all rules treat two tasks of a job alike.
func (s *State) alike(l, r model.TaskID) bool { return kindOf(s.view, l) == kindOf(s.view, r) }

// kind is what the nodes on which a task of a job may start depend on.
type kind struct {
	request int32
	set     model.NodeSetID
	pods    int32
}

func kindOf(v *policy.View, t model.TaskID) kind {
	return kind{v.Tasks.At(t).Request, v.NodeSetOf(t), v.PodKind(t)}
}
