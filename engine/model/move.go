package model

// move holds the offsets at which separately collected entries are appended to others.
type move struct {
	jobs            JobID
	groups          GroupID
	tasks           TaskID
	counts, details int32
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
		counts: int32(len(f.counts)), details: int32(len(f.details)), texts: uint32(len(f.written)),
	}
}

// behind returns the offsets after the entries of a model.
func (m *Model) behind() move {
	return move{
		jobs: JobID(m.Jobs.Len()), groups: GroupID(m.Groups.Len()), tasks: TaskID(m.Tasks.Len()),
		counts: int32(m.Counts.Len()), details: int32(m.Details.Len()), texts: uint32(m.text.n),
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
