package model

import (
	"bytes"
	"errors"
)

// ErrParts means that a Change whose jobs were given in parts has violations, whose paths count from the first job: it must be built again
// from jobs that are given in one go.
var ErrParts = errors.New("the jobs of a faulty change must be given in one go")

// settled is what a part of the jobs of a change is found by, and what its tasks add up to.
type settled struct {
	accounts []Account
	tasks    sorted
}

// places returns where the entries of each part come to lie, given where each job does.
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
	}
	return places
}

// settle indexes the tasks of a part by uid, records those whose uid another task has, books all in the accounts of their jobs, and lets
// all refer to each other where they come to lie. Parts may settle at the same time.
func (b *Builder) settle(to *move) (s settled) {
	base := b.change.base
	s.tasks.entries = b.recognized.entries
	s.tasks.sort()
	s.tasks.tellApart(flatTexts{&b.flat}, nil, func(earlier, later int32) {
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
	for i := range b.tasks {
		to.task(&b.tasks[i])
	}
	return s
}

// faults returns the violations of the change, or ErrParts if they do not lie in one part.
func (c *change) faults() error {
	for _, p := range c.parts {
		if p.faults.Total > 0 && len(c.parts) > 1 {
			return ErrParts
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
