package model

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// rare contains what hardly any task has.
type rare struct {
	// nominated is the name of a node, which the model need not have.
	nominated, zone string
	// budgets are the positions in Model.DisruptionBudgets of those that select the task, in ascending order.
	budgets []int32
	// unstated replaces the group's if stated is true.
	unstated Unstated
	stated   bool
}

// RareSpec is the description of what hardly any task has. The builder copies it.
type RareSpec struct {
	// Nominated is the name of a node, empty for none.
	Nominated, RevocableZone string
	// Budgets are names of disruption budgets in the job's namespace.
	Budgets  []string
	Unstated *Unstated
}

// Unstated counts the containers of a task that name no cpu, and those that name no memory.
type Unstated struct{ CPU, Memory uint16 }

// JobDetail contains the rarely used properties of a job.
type JobDetail struct {
	// Preemptable is how the job itself is marked; nil: it is not.
	Preemptable *bool
	// WaitingLimit is how long the job waits at most, in nanoseconds; 0: not stated.
	WaitingLimit int64
	// QuotaRequest is what the job needs under the names of quotas.
	QuotaRequest []NamedAmount
	// Disruption is its own disruption budget.
	Disruption JobDisruption
}

// JobDisruption bounds the evictions of a job's tasks: numbers, or parts such as `50%`; empty: not stated.
type JobDisruption struct{ MinAvailable, MaxUnavailable string }

// maxBudgets bounds the disruption budgets that a task names.
const maxBudgets = 64

// rareOf returns what a task has of its rare properties; nil: nothing.
func (m *Model) rareOf(t TaskID) *rare {
	if task := m.Tasks.At(t); task.Detail != None {
		if at := m.Details.At(task.Detail).rare; at > 0 {
			return m.rares.At(at - 1)
		}
	}
	return nil
}

// NominatedNode returns the node on which room is being made for a task, or None.
func (m *Model) NominatedNode(t TaskID) NodeID {
	if r := m.rareOf(t); r != nil && r.nominated != "" {
		if n, ok := m.Node(r.nominated); ok && m.HasNode(n) {
			return n
		}
	}
	return None
}

// NeverPreempts reports that no other task may be evicted for a task.
func (m *Model) NeverPreempts(t TaskID) bool {
	task := m.Tasks.At(t)
	return task.Detail != None && m.Details.At(task.Detail).NeverPreempts
}

// Unlabelled reports whether a task has no labels.
func (m *Model) Unlabelled(t TaskID) bool {
	task := m.Tasks.At(t)
	return task.Detail != None && m.Details.At(task.Detail).Unlabelled
}

// RevocableZone returns the zone of revocable nodes that a task may use, or "".
func (m *Model) RevocableZone(t TaskID) string {
	if r := m.rareOf(t); r != nil {
		return r.zone
	}
	return ""
}

// BudgetsOf returns the positions in DisruptionBudgets of those that select a task, in ascending order.
func (m *Model) BudgetsOf(t TaskID) []int32 {
	if r := m.rareOf(t); r != nil {
		return r.budgets
	}
	return nil
}

// UnstatedOf returns what the containers of a task leave open in their requests.
func (m *Model) UnstatedOf(t TaskID) Unstated {
	if r := m.rareOf(t); r != nil && r.stated {
		return r.unstated
	}
	return m.Groups.At(m.Tasks.At(t).Group).Unstated
}

// RareSpecOf returns the spec of what hardly any task has; nil: this one has nothing of it.
func (m *Model) RareSpecOf(t TaskID) *RareSpec {
	r := m.rareOf(t)
	if r == nil {
		return nil
	}
	s := &RareSpec{Nominated: r.nominated, RevocableZone: r.zone}
	for _, at := range r.budgets {
		s.Budgets = append(s.Budgets, m.DisruptionBudgets[at].Name)
	}
	if r.stated {
		s.Unstated = new(r.unstated)
	}
	return s
}

// rareKey finds equal rare properties. budgets are the bytes of their positions.
type rareKey struct {
	nominated, zone, budgets string
	unstated                 Unstated
	stated                   bool
}

// rare adds the rare properties of the newest task, unless a task before has the same, and returns Detail.rare.
func (b *Builder) rare(s *RareSpec) int32 {
	if s == nil {
		return 0
	}
	r := rare{nominated: s.Nominated, zone: s.RevocableZone, budgets: b.budgetsOf(s.Budgets), stated: s.Unstated != nil}
	if r.stated {
		r.unstated = *s.Unstated
	}
	var list []byte
	for _, at := range r.budgets {
		list = binary.LittleEndian.AppendUint32(list, uint32(at))
	}
	key := rareKey{r.nominated, r.zone, string(list), r.unstated, r.stated}
	if at, known := b.rareAt[key]; known {
		return at
	}
	r.nominated, r.zone = b.text.keep(r.nominated), b.text.again(&b.zone, r.zone)
	const own = 64
	b.rareBytes += own + 4*cap(r.budgets)
	b.rares = append(b.rares, r)
	if b.rareAt == nil {
		b.rareAt = map[rareKey]int32{}
	}
	key.nominated, key.zone = r.nominated, r.zone
	b.rareAt[key] = int32(len(b.rares))
	return int32(len(b.rares))
}

// zoneOf adds the zone of a node and returns Node.zone.
func (b *Builder) zoneOf(zone string) int32 {
	if zone == "" {
		return 0
	}
	m := &b.m
	if n := len(m.zones); n == 0 || m.zones[n-1] != zone {
		const own = 16
		b.rareBytes += own
		m.zones = append(m.zones, b.text.again(&b.zone, zone))
	}
	return int32(len(m.zones))
}

// budgetsOf returns the positions of the disruption budgets that the newest task names.
func (b *Builder) budgetsOf(names []string) []int32 {
	if len(names) == 0 {
		return nil
	}
	path := func(field string) string { return b.detailPath("disruption_budgets.names" + field) }
	if len(names) > maxBudgets {
		b.faults.Add(path(""), "%d budgets, at most %d are taken", len(names), maxBudgets)
		return nil
	}
	list := make([]int32, 0, len(names))
	namespace := b.jobs[len(b.jobs)-1].Namespace
	for i, name := range names {
		at, ok := b.m.budget(namespace, name)
		switch {
		case !ok:
			b.faults.Add(path(fmt.Sprintf("[%d]", i)), "no disruption budget %q in namespace %q", name, namespace)
		case slices.Contains(list, at):
			b.faults.Add(path(fmt.Sprintf("[%d]", i)), "disruption budget %q is given twice", name)
		}
		list = append(list, at)
	}
	slices.Sort(list)
	return list
}

// jobDetail returns a copy of the rarely used properties of the newest job.
func (b *Builder) jobDetail(s *JobDetail) *JobDetail {
	if s == nil {
		return nil
	}
	d := &JobDetail{WaitingLimit: s.WaitingLimit, Disruption: JobDisruption{
		MinAvailable: b.text.keep(s.Disruption.MinAvailable), MaxUnavailable: b.text.keep(s.Disruption.MaxUnavailable),
	}}
	if s.Preemptable != nil {
		d.Preemptable = new(*s.Preemptable)
	}
	if s.WaitingLimit < 0 {
		b.faults.Add(b.jobPath("detail.waiting_limit"), "%d is not above 0", s.WaitingLimit)
	}
	d.QuotaRequest = b.namedAmounts(s.QuotaRequest, func(field string) string { return b.jobPath("detail.quota_requests" + field) })
	const own, amount = 96, 24
	b.rareBytes += own + amount*len(d.QuotaRequest)
	return d
}
