package engine

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Session answers questions about one model by one policy, and tracks changes.
type Session struct {
	policy Policy
	*state
	marks []mark
	// kept is the state to which Restore returns.
	kept mark
	// spared collects the grounds of one question about victims.
	spared []policy.Check
}

// state is replaced as a whole by a what-if about jobs. Marks refer to it, so that a mark takes a few bytes.
type state struct {
	view    *policy.View
	plugins []Opened
	by      table
	scratch resource.Row
	// diverged contains the tasks whose booking by the plugins contradicts their status.
	diverged map[model.TaskID]bool
	// plans is nil until a brief plan is made.
	plans *briefly
	// permitted is true once a plugin has permitted an admission, which it may have booked.
	permitted bool
}

// Opened is a plugin of the policy with its state.
type Opened struct {
	Name  string
	Tier  int
	State policy.State
}

// voter is a plugin's part in choosing victims.
type voter struct {
	name   string
	tier   int
	choose policy.VictimFunc
	// planner is set in place of choose for a plugin that makes plans.
	planner policy.Planner
	// class says which claimants are alike; nil: perhaps none. steady is that of policy.Steady.
	class  func(claimant model.TaskID) (class uint64, local bool)
	steady bool
}

type named[T any] struct {
	name string
	tier int
	part T
}

// table lists for each decision the plugins that take part, in order of the policy.
type table struct {
	queueOrder       []policy.QueueOrderer
	victimQueueOrder []policy.VictimQueueOrderer
	jobOrder         []policy.JobOrderer
	taskOrder        []policy.TaskOrderer
	overused         []policy.Overuser
	allocatable      []policy.Allocater
	preemptive       []policy.Preempter
	// entering are the plugins that keep room and decide about admission before all others.
	entering  []policy.Enqueuer
	enqueue   []named[policy.Enqueuer]
	enqueued  []policy.EnqueuedHandler
	reclaim   []voter
	preempt   []voter
	gangs     []named[policy.GangEvictor]
	shuffle   []named[policy.Shuffler]
	valid     []policy.Validator
	ready     []policy.Readier
	pipelined []named[policy.Pipeliner]
	starving  []named[policy.Starver]
	predicate []policy.Predicater
	fitClass  []policy.FitClasser
	bounds    []policy.NodeBounder
	score     []named[policy.NodeScorer]
	filter    filter
	absent    []absentee
	events    []policy.EventHandler
	statuses  []policy.StatusHandler
	queues    queueOrder
	victims   victimOrder
}

// Open returns a session on a model. stop, if not nil, is called periodically during long work; if it returns true, Open returns
// policy.ErrStopped. Violations of the policy, or of the snapshot as read by a plugin, are a *model.Error.
func Open(m *model.Model, p Policy, stop func() bool) (*Session, error) {
	return openWithin(m, p, stop, nil)
}

func openWithin(m *model.Model, p Policy, stop func() bool, work *policy.Work) (*Session, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	s := &Session{policy: p}
	v := policy.NewView(m, stop)
	v.Work, v.Release = work, p.Release
	st, err := open(v, p)
	if err != nil {
		return nil, err
	}
	s.state = st
	return s, nil
}

func open(v *policy.View, p Policy) (*state, error) {
	if err := v.Work.Spend(v.Tasks.Len()+v.Tallied, 1); err != nil {
		return nil, err
	}
	if err := v.OpenPods(); err != nil {
		return nil, err
	}
	if err := v.OpenReservations(); err != nil {
		return nil, err
	}
	st := &state{view: v, scratch: resource.NewAccount(v.Dims.Len())}
	for i, tier := range p.Tiers {
		for _, entry := range tier {
			if err := v.Work.Spend(len(v.Queues)+len(v.Present()), v.Dims.Len()); err != nil {
				return nil, err
			}
			opening, err := entry.Plugin.Open(v)
			if exceeded := v.Work.Exceeded(); exceeded != nil {
				err = exceeded
			}
			if err != nil {
				return nil, err
			}
			st.plugins = append(st.plugins, Opened{entry.Plugin.Name(), i, opening})
			st.by.add(entry.Plugin.Name(), i, opening, entry.Disabled)
		}
	}
	v.SortVictims = func(claimant model.TaskID, candidates []model.TaskID) { sortVictims(v, &st.by, claimant, candidates) }
	if err := st.keep(p); err != nil {
		return nil, err
	}
	return st, nil
}

// part appends a plugin's state to a list if it takes part in the decision.
func part[T any](list *[]T, state policy.State, d Decision, off Decisions) {
	if p, ok := state.(T); ok && !off.Has(d) {
		*list = append(*list, p)
	}
}

// partOf is part for a list that tells tiers apart.
func partOf[T any](list *[]named[T], name string, tier int, state policy.State, d Decision, off Decisions) {
	if p, ok := state.(T); ok && !off.Has(d) {
		*list = append(*list, named[T]{name, tier, p})
	}
}

func (t *table) add(name string, tier int, state policy.State, off Decisions) {
	part(&t.queueOrder, state, QueueOrder, off)
	part(&t.victimQueueOrder, state, VictimQueueOrder, off)
	part(&t.jobOrder, state, JobOrder, off)
	part(&t.taskOrder, state, TaskOrder, off)
	part(&t.overused, state, Overused, off)
	part(&t.allocatable, state, Allocatable, off)
	part(&t.preemptive, state, Preemptive, off)
	part(&t.enqueued, state, JobEnqueued, off)
	part(&t.valid, state, JobValid, off)
	part(&t.ready, state, JobReady, off)
	part(&t.predicate, state, Predicate, off)
	part(&t.fitClass, state, Predicate, off)
	part(&t.bounds, state, Predicate, off)
	part(&t.events, state, 0, off)
	part(&t.statuses, state, 0, off)
	if a, ok := state.(policy.Absentee); ok {
		t.absent = append(t.absent, absentee{name, Decisions(a.Votes()) &^ off})
	}
	if _, ok := state.(policy.NodeFilter); ok {
		if t.filter = filtersNodes; off.Has(Predicate) {
			t.filter = placesNothing
		}
	}
	partOf(&t.pipelined, name, tier, state, JobPipelined, off)
	partOf(&t.starving, name, tier, state, JobStarving, off)
	partOf(&t.score, name, tier, state, NodeOrder, off)
	partOf(&t.gangs, name, tier, state, 0, off)
	partOf(&t.shuffle, name, tier, state, Victim, off)
	if p, ok := state.(policy.Enqueuer); ok && !off.Has(JobEnqueued) {
		if _, keeps := state.(policy.Keeper); keeps {
			t.entering = append(t.entering, p)
		} else {
			t.enqueue = append(t.enqueue, named[policy.Enqueuer]{name, tier, p})
		}
	}
	if p, ok := state.(policy.Reclaimer); ok && !off.Has(Reclaimable) {
		v := voter{name: name, tier: tier, choose: p.Reclaimable, steady: steady(state)}
		if classer, ok := state.(policy.ReclaimClasser); ok {
			v.class = classer.ReclaimClass
		}
		t.reclaim = append(t.reclaim, v)
	}
	if p, ok := state.(policy.Planner); ok && !off.Has(Reclaimable) {
		t.reclaim = append(t.reclaim, voter{name: name, tier: tier, planner: p})
	}
	if p, ok := state.(policy.Preemptor); ok && !off.Has(Preemptable) {
		t.preempt = append(t.preempt, voter{name: name, tier: tier, choose: p.Preemptable})
	}
}

// View returns the state that questions use. Callers must not modify it.
func (s *Session) View() *policy.View { return s.view }

// Policy returns the policy of the session.
func (h Host) Policy() Policy { return h.policy }

// Plugins returns the plugins of the policy, in its order.
func (h Host) Plugins() []Opened { return h.plugins }

// Enqueuers returns the plugins that decide about admission and keep no room.
func (h Host) Enqueuers() []policy.Enqueuer {
	list := make([]policy.Enqueuer, len(h.by.enqueue))
	for i := range h.by.enqueue {
		list[i] = h.by.enqueue[i].part
	}
	return list
}

// Divider is a plugin that divides; its non-nil fields are the supported questions.
type Divider struct {
	Name   string
	State  policy.State
	Queues policy.Sharer
	Jobs   policy.JobSharer
	Tree   policy.TreeSharer
	Forest policy.Tree
}

// Dividers returns the plugins that divide among queues, among jobs, or along a tree, in order of the policy.
func (s *Session) Dividers() []Divider {
	var list []Divider
	for _, p := range s.plugins {
		d := Divider{Name: p.Name, State: p.State}
		d.Queues, _ = p.State.(policy.Sharer)
		d.Jobs, _ = p.State.(policy.JobSharer)
		d.Tree, _ = p.State.(policy.TreeSharer)
		d.Forest, _ = p.State.(policy.Tree)
		if d.Queues != nil || d.Jobs != nil || d.Tree != nil {
			list = append(list, d)
		}
	}
	return list
}

// Host is a session for a program that opens it to others, such as a server or an adapter of another scheduler: such a program bounds the
// work, reuses the session, and books what happened elsewhere. Packages that answer further questions about a session find in it what they
// share. A scheduler itself needs Session only.
type Host struct{ *Session }

// Host returns the session for a program that opens it to others.
func (s *Session) Host() Host { return Host{s} }

// OpenHost is Open for a session that spends work: if opening costs more than is left, the error is a *policy.WorkError. The session
// continues to spend from it whenever it is opened again.
func OpenHost(m *model.Model, p Policy, stop func() bool, work *policy.Work) (Host, error) {
	s, err := openWithin(m, p, stop, work)
	return Host{s}, err
}

// Stop replaces the function by which long work checks whether to stop.
func (h Host) Stop(stop func() bool) {
	v := h.view
	v.Stop = stop
}

// Keep makes the current state the one that Restore returns to; earlier marks are removed.
func (h Host) Keep() {
	s := h.Session
	for range s.marks {
		s.view.Journal.Release()
	}
	s.marks = nil
	s.kept = mark{s.view.Journal.Mark(), s.state}
}

// Restore undoes everything since Keep, including marks, so that a session can be reused for the next caller.
func (h Host) Restore() {
	s := h.Session
	journal := s.view.Journal
	journal.Rollback(s.kept.at)
	for range s.marks {
		journal.Release()
	}
	journal.Shrink()
	s.marks = nil
	s.state = s.kept.state
	const few = 1024
	if cap(s.spared) > few {
		s.spared = nil
	}
}

// Scratch returns the number of checks for which memory is kept from one question about victims to the next. Restore releases large memory.
func (h Host) Scratch() int { return cap(h.spared) }

// ChangeIf is Change with a feed that may fail, and with a check of the result before a session is opened on it. It returns their errors,
// which change nothing. accept may be nil.
func (h Host) ChangeIf(dimensions []string, feed func(*model.ChangeBuilder) error, accept func(*model.Model) error) error {
	if err := h.view.Work.Spend(h.view.Jobs.Len()+h.view.Tasks.Len(), 1); err != nil {
		return err
	}
	v, err := h.view.Changed(dimensions, feed)
	if err != nil {
		return err
	}
	if accept != nil {
		if err := accept(v.Model); err != nil {
			return err
		}
	}
	return h.reopen(v)
}

// Book sets the status of a task that no plugin has booked, on the node if one is given, and every plugin books it. Volcano's allocation
// handlers also run for a task that is pipelined, which holds nothing yet, and for a task whose eviction is undone, which runs again. The
// caller tracks which tasks are booked.
func (h Host) Book(t model.TaskID, as model.Status, n model.NodeID) { h.book(t, as, n) }

// Unbook sets the status of a booked task, and every plugin releases its resources; see Book.
func (h Host) Unbook(t model.TaskID, as model.Status) { h.unbook(t, as) }
