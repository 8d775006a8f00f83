package model

import (
	"slices"

	"github.com/apportion/apportion/engine/resource"
)

// Loader feeds a builder from a message of which not all is known to be valid: it reserves memory, reads jobs in parts, reports violations,
// and can count tasks in place of keeping them. Programs that put a model together themselves need Builder only.
type Loader struct{ *Builder }

// Loader returns a loader that feeds b.
func (b *Builder) Loader() Loader { return Loader{b} }

// Reset prepares the builder for another snapshot and reuses its memory: the model that it built, and every row of that model, must no
// longer be used. Strings taken from it stay valid.
func (l Loader) Reset(asOf int64) { l.reset(asOf) }

// ExpectPlaces reserves memory for nodes and queues. More can be added, at the cost of a reallocation.
func (l Loader) ExpectPlaces(nodes, queues int) {
	m := &l.m
	m.Nodes, m.Queues = room(m.Nodes, nodes), room(m.Queues, queues)
}

// Expect reserves memory for jobs and their contents; texts is the maximum number of bytes of all uids and names of tasks. More can be
// added, at the cost of a reallocation. Most texts of a change are those of its base, for which it needs none.
func (l Loader) Expect(jobs, groups, tasks, texts int) {
	b := l.Builder
	b.jobs, b.groups, b.tasks = room(b.jobs, jobs), room(b.groups, groups), room(b.tasks, tasks)
	if b.change != nil {
		b.recognized.expect(jobs, tasks)
		return
	}
	b.written = room(b.written, min(texts, maxText))
}

// room returns s with room for n more. slices.Grow would clear that, and so touch all of it at once: for a million tasks that takes long.
func room[T any](s []T, n int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	return append(make([]T, 0, len(s)+n), s...)
}

// Fault records a violation found by the caller, such as an invalid number.
func (l Loader) Fault(path, format string, args ...any) { l.faults.Add(path, format, args...) }

// QueueID returns the queue of a name, or None.
func (l Loader) QueueID(name string) QueueID {
	q, _ := l.m.Queue(name)
	return q
}

// RequestID returns the position in Requests of a request of the newest group or one of its tasks.
func (l Loader) RequestID(request *Amounts) int32 { return l.request(request, l.groupPath) }

// HasNodeSet reports whether there is a node set of a name.
func (l Loader) HasNodeSet(name string) bool {
	_, ok := l.m.nodeSetIndex.find(name, l.m.nodeSetName)
	return ok
}

// HasBudget reports whether there is a disruption budget of a name in a namespace.
func (l Loader) HasBudget(namespace, name string) bool {
	_, ok := l.m.budget(namespace, name)
	return ok
}

// HasPodClass reports whether there is a class of pods of a number, or the number is 0.
func (l Loader) HasPodClass(n uint32) bool { return l.m.hasPodClass(n) }

// BuildUnless is Build, but calls stop periodically and returns ErrStopped if it returns true. each, if not nil, may do work at the same
// time: it calls f with 0 … n-1, in any order or at once, and returns when all have returned; stop must then be safe for concurrent use.
// Afterwards only Reset may be called.
func (l Loader) BuildUnless(stop func() bool, each func(n int, f func(int))) (*Model, error) {
	if each == nil {
		each = oneByOne
	}
	return l.build(stop, each)
}

// Part makes p, whose memory is reused, a loader of jobs that follow those of l. They refer to the queues and nodes of l, which must all
// exist already; l and its parts may then be fed concurrently. The memory of a part of a change becomes the result's.
func (l Loader) Part(p Loader) {
	b := l.Builder
	if b.change != nil {
		b.changePart(p.Builder)
		return
	}
	p.forget()
	// p shares these with another builder.
	p.m.Queues, p.m.Nodes, p.m.NodeSets, p.m.queueIndex, p.m.nodeIndex, p.m.nodeSetIndex = nil, nil, nil, index{}, index{}, index{}
	p.reset(b.m.AsOf)
	p.m.Queues, p.m.Nodes, p.m.queueIndex, p.m.nodeIndex = b.m.Queues, b.m.Nodes, b.m.queueIndex, b.m.nodeIndex
	p.m.NodeSets, p.m.nodeSetIndex, p.m.Pods = b.m.NodeSets, b.m.nodeSetIndex, b.m.Pods
	p.m.budgetIndex = b.m.budgetIndex
	p.m.Dims, p.index, p.width, p.known = b.m.Dims, b.index, b.width, b.known
	p.scratch = p.slab.row(b.width, 0)
	p.tally.on = b.tally.on
	p.m.Requests = append(p.m.Requests[:0], p.slab.clone(b.m.Requests[0]))
}

// changePart is Part for a change.
func (b *Builder) changePart(p *Builder) {
	*p = Builder{
		m: b.m, change: b.change, job: -1, requestIDs: map[string]int32{}, index: b.index, width: b.width, known: b.known,
		scratch: resource.NewRow(b.width), flat: flat{before: b.before, start: b.start},
	}
	p.m.Requests = slices.Clip(b.m.Requests)
}

// Join appends the jobs of a part to those of l, as if l had been fed with them. It returns false if either has violations, because their
// paths count from the first job; l must then be Reset and fed with everything. A change takes no jobs after that.
func (l Loader) Join(part Loader) bool {
	b, p := l.Builder, part.Builder
	b.closeJob()
	p.closeJob()
	if b.faults.Total+p.faults.Total > 0 || b.counted+p.counted > maxCount || len(b.written)+len(p.written) > maxText {
		return false
	}
	if b.tally.on {
		return b.joinTally(p)
	}
	b.counted, b.rareBytes = b.counted+p.counted, b.rareBytes+p.rareBytes
	if c := b.change; c != nil {
		p.requestAt = b.joinRequests(p)
		c.parts = append(c.parts, p)
		return true
	}
	b.job += len(p.jobs)
	b.group = -1
	move := b.moved()
	move.request = b.joinRequests(p)
	for _, j := range p.jobs {
		b.jobs = append(b.jobs, move.job(j))
	}
	for _, g := range p.groups {
		b.groups = append(b.groups, move.group(g))
	}
	for _, c := range p.counts {
		b.counts = append(b.counts, move.count(c))
	}
	if len(p.rares) > 0 {
		move.detailed(p.details)
		b.rares = append(b.rares, p.rares...)
	}
	b.details, b.written = append(b.details, p.details...), append(b.written, p.written...)
	b.tasks = append(b.tasks, p.tasks...)
	for added := b.tasks[move.tasks:]; len(added) > 0; added = added[1:] {
		move.task(&added[0])
	}
	return true
}

// joinRequests adds a part's requests to b, in their order, and returns their positions in b. The first ones are the same in both: the
// empty request, or those of the base of a Change.
func (b *Builder) joinRequests(p *Builder) []int32 {
	first := 1
	if b.change != nil {
		first = len(b.change.base.Requests)
	}
	keys := make([]string, len(p.m.Requests))
	for key, id := range p.requestIDs {
		keys[id] = key
	}
	at := make([]int32, len(keys))
	for i := range at {
		if i < first {
			at[i] = int32(i)
			continue
		}
		id, ok := b.requestIDs[keys[i]]
		if !ok {
			id = int32(len(b.m.Requests))
			b.requestIDs[keys[i]] = id
			b.m.Requests = append(b.m.Requests, p.m.Requests[i])
		}
		at[i] = id
	}
	return at
}
