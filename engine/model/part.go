package model

import (
	"slices"

	"github.com/apportion/apportion/engine/resource"
)

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
	b.counted += p.counted
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
