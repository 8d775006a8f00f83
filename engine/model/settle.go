package model

import (
	"bytes"
	"errors"
)

// move holds the offsets at which separately collected entries are appended to others.
type move struct {
	jobs            JobID
	groups          GroupID
	tasks           TaskID
	counts, details int32
	rares           int32
	// Texts that begin at start or later are appended at texts.
	start, texts uint32
	// at, if not nil, is the position of each job, instead of jobs.
	at []JobID
	// request, if not nil, maps requests.
	request []int32
}

// moved returns the offsets after the entries of f.
func (f *flat) moved() move {
	return move{
		jobs: JobID(len(f.jobs)), groups: GroupID(len(f.groups)), tasks: TaskID(len(f.tasks)),
		counts: int32(len(f.counts)), details: int32(len(f.details)), texts: uint32(len(f.written)), rares: int32(len(f.rares)),
	}
}

// behind returns the offsets after the entries of a model.
func (m *Model) behind() move {
	return move{
		jobs: JobID(m.Jobs.Len()), groups: GroupID(m.Groups.Len()), tasks: TaskID(m.Tasks.Len()),
		counts: int32(m.Counts.Len()), details: int32(m.Details.Len()), texts: uint32(m.text.n), rares: int32(m.rares.Len()),
	}
}

func (m *move) position(j JobID) JobID {
	if m.at != nil {
		return m.at[j]
	}
	return j + m.jobs
}

func (m *move) requested(r int32) int32 {
	if m.request != nil {
		return m.request[r]
	}
	return r
}

func (m *move) job(j Job) Job {
	j.FirstGroup, j.EndGroup = j.FirstGroup+m.groups, j.EndGroup+m.groups
	j.FirstTask, j.EndTask = j.FirstTask+m.tasks, j.EndTask+m.tasks
	return j
}

func (m *move) group(g Group) Group {
	g.Job, g.Request = m.position(g.Job), m.requested(g.Request)
	g.FirstCount, g.EndCount = g.FirstCount+m.counts, g.EndCount+m.counts
	return g
}

func (m *move) count(c Count) Count {
	c.Group += m.groups
	return c
}

// detailed moves details of which some have rare properties.
func (m *move) detailed(list []Detail) {
	for i := range list {
		if list[i].rare > 0 {
			list[i].rare += m.rares
		}
	}
}

func (m *move) task(t *Task) {
	t.Job, t.Group, t.Request = m.position(t.Job), t.Group+m.groups, m.requested(t.Request)
	t.uid, t.name = m.text(t.uid), m.text(t.name)
	if t.Detail != None {
		t.Detail += m.details
	}
}

func (m *move) text(s span) span {
	if s.empty() || s.from < m.start {
		return s
	}
	n := m.texts - m.start
	return span{s.from + n, s.to + n}
}

// errParts means that a Change built in parts has violations. Their paths need the positions of all jobs, so it must be built again without
// parts.
var errParts = errors.New("a change with violations must be built without parts")

// settled holds the indexes and accounts of one part of a change's jobs.
type settled struct {
	accounts []Account
	tasks    sorted
}

// places returns the offsets of each part's entries, given the positions of all jobs.
func (c *change) places(at []JobID) []move {
	places := make([]move, len(c.parts))
	to := c.base.behind()
	to.start = to.texts
	for i, p := range c.parts {
		to.at, to.request = at[:len(p.jobs)], p.requestAt
		to.texts = uint32(c.base.text.begin(int(to.texts), len(p.written)))
		places[i] = to
		at = at[len(p.jobs):]
		behind := p.moved()
		to.groups, to.tasks, to.counts = to.groups+behind.groups, to.tasks+behind.tasks, to.counts+behind.counts
		to.details, to.texts = to.details+behind.details, to.texts+behind.texts
		to.rares += behind.rares
	}
	return places
}

// settle indexes the tasks of a part by uid, records duplicate uids, books the tasks in the accounts of their jobs, and converts references
// to positions in the result. Parts may settle concurrently.
func (b *Builder) settle(to *move) (s settled) {
	base := b.change.base
	s.tasks.entries = b.recognized.entries
	s.tasks.sort()
	s.tasks.findClashes(flatTexts{&b.flat}, nil, func(earlier, later int32) {
		b.taken(TaskID(later), TaskID(base.Tasks.Len())+TaskID(earlier))
	})
	for _, met := range b.recognized.met {
		if !b.change.jobs.has(base.Tasks.At(met.earlier).Job) {
			b.taken(met.task, met.earlier)
		}
	}
	if b.faults.Total > 0 {
		return s
	}
	for i := range s.tasks.entries {
		s.tasks.entries[i] += uint64(to.tasks)
	}
	s.accounts = new(accountStore).open(b.jobs, len(b.groups), b.width)
	bestEffort := b.m.bestEffort()
	for j := range b.jobs {
		b.bookJob(&s.accounts[j], &b.jobs[j], bestEffort, nil)
	}
	for i := range b.jobs {
		b.jobs[i] = to.job(b.jobs[i])
	}
	for i := range b.groups {
		b.groups[i] = to.group(b.groups[i])
	}
	for i := range b.counts {
		b.counts[i] = to.count(b.counts[i])
	}
	if len(b.rares) > 0 {
		to.detailed(b.details)
	}
	for i := range b.tasks {
		to.task(&b.tasks[i])
	}
	return s
}

// faults returns the violations of the change, or errParts if it was built in several parts.
func (c *change) faults() error {
	for _, p := range c.parts {
		if p.faults.Total > 0 && len(c.parts) > 1 {
			return errParts
		}
	}
	return c.parts[0].faults.OrNil()
}

// tasksOf returns the index of all tasks of the change, which m has; false: two parts have tasks of the same uid.
func (c *change) tasksOf(parts []settled, m *Model) (all sorted, ok bool) {
	all = parts[0].tasks
	for _, p := range parts[1:] {
		all = merged(all, p.tasks, func(int32) bool { return false })
	}
	if len(parts) == 1 {
		return all, true
	}
	of := taskTexts{m}
	for i := range all.entries {
		for k := i + 1; k < len(all.entries) && all.entries[k]>>32 == all.entries[i]>>32; k++ {
			if bytes.Equal(of.uid(int32(uint32(all.entries[i]))), of.uid(int32(uint32(all.entries[k])))) {
				return all, false
			}
		}
	}
	return all, true
}
