package model

// NewPart returns a builder that is a Part of b.
func (b *Builder) NewPart() *Builder {
	p := NewBuilder(b.m.AsOf)
	b.Part(p)
	return p
}

// Part makes p, whose memory is used again, a builder of jobs that follow those of b. They refer to the queues and nodes of b, which must
// all be there already; b and its parts may then be fed at the same time.
func (b *Builder) Part(p *Builder) {
	// What p has of these is not its own.
	p.m.Queues, p.m.Nodes, p.m.NodeSets, p.m.queueIndex, p.m.nodeIndex, p.m.nodeSetIndex = nil, nil, nil, index{}, index{}, index{}
	p.Reset(b.m.AsOf)
	p.m.Queues, p.m.Nodes, p.m.queueIndex, p.m.nodeIndex = b.m.Queues, b.m.Nodes, b.m.queueIndex, b.m.nodeIndex
	p.m.NodeSets, p.m.nodeSetIndex = b.m.NodeSets, b.m.nodeSetIndex
	p.m.Dims, p.index, p.width, p.known = b.m.Dims, b.index, b.width, b.known
	p.scratch = p.slab.row(b.width, 0)
	p.m.Requests = append(p.m.Requests[:0], p.slab.clone(b.m.Requests[0]))
}

// Join adds the jobs of a part behind those of b, as if b had been fed with them. False: something is wrong with either, and what is told
// by paths, which count from the first job on; b is of no use then but to be Reset and fed with everything.
func (b *Builder) Join(p *Builder) bool {
	b.closeJob()
	p.closeJob()
	if b.faults.Total+p.faults.Total > 0 || b.counted+p.counted > maxCount || len(b.m.text)+len(p.m.text) > maxText {
		return false
	}
	b.counted += p.counted
	b.job += len(p.m.Jobs)
	b.group = -1
	m, from := &b.m, &p.m
	request := b.joinRequests(p)
	jobs, groups, tasks := JobID(len(m.Jobs)), GroupID(len(m.Groups)), TaskID(len(m.Tasks))
	counts, details, texts := int32(len(m.Counts)), int32(len(m.Details)), uint32(len(m.text))
	for i := range from.Jobs {
		j := from.Jobs[i]
		j.FirstGroup, j.EndGroup = j.FirstGroup+groups, j.EndGroup+groups
		j.FirstTask, j.EndTask = j.FirstTask+tasks, j.EndTask+tasks
		m.Jobs = append(m.Jobs, j)
	}
	for i := range from.Groups {
		g := from.Groups[i]
		g.Job, g.Request = g.Job+jobs, request[g.Request]
		g.FirstCount, g.EndCount = g.FirstCount+counts, g.EndCount+counts
		m.Groups = append(m.Groups, g)
	}
	for _, c := range from.Counts {
		c.Group += groups
		m.Counts = append(m.Counts, c)
	}
	m.Details, m.text = append(m.Details, from.Details...), append(m.text, from.text...)
	m.Tasks = append(m.Tasks, from.Tasks...)
	added := m.Tasks[tasks:]
	for i := range added {
		t := &added[i]
		t.Job, t.Group, t.Request = t.Job+jobs, t.Group+groups, request[t.Request]
		t.uid, t.name = t.uid.after(texts), t.name.after(texts)
		if t.Detail != None {
			t.Detail += details
		}
	}
	return true
}

// joinRequests returns the positions in b of a part's requests, in whose order those that b has not yet are added.
func (b *Builder) joinRequests(p *Builder) []int32 {
	keys := make([]string, len(p.m.Requests))
	for key, id := range p.requestIDs {
		keys[id] = key
	}
	at := make([]int32, len(keys))
	for i, key := range keys[1:] {
		id, ok := b.requestIDs[key]
		if !ok {
			id = int32(len(b.m.Requests))
			b.requestIDs[key] = id
			b.m.Requests = append(b.m.Requests, p.m.Requests[i+1])
		}
		at[i+1] = id
	}
	return at
}

// after returns where a text lies once so many bytes are put before it.
func (s span) after(n uint32) span {
	if s.empty() {
		return s
	}
	return span{s.from + n, s.to + n}
}
