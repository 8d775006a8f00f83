package model

// Extra is what a single policy reads of a queue, a job or a node set, beyond the fields that all policies share. The model keeps the value
// as it is.
type Extra struct {
	Value any
	// Bytes is about what the value takes without its texts.
	Bytes int
	// Parts is how many parts of it an answer may be about.
	Parts int
}

func (e *Extra) parts() int {
	if e == nil {
		return 0
	}
	return e.Parts
}

func (e *Extra) bytes() int {
	if e == nil {
		return 0
	}
	const own = 24
	return own + e.Bytes
}

// ExtraBytes returns about what everything takes that single policies read, without its texts.
func (m *Model) ExtraBytes() int { return m.extra + m.rareBytes + m.entryBytes() }

// ExtraParts returns upper bounds of the parts of what single policies read of one queue and of one job.
func (m *Model) ExtraParts() (queue, job int) { return m.queueParts, m.jobParts }

// countExtras sets the size of what single policies read, for a model that is not built by a Change.
func (b *Builder) countExtras() {
	bytes := 0
	for i := range b.m.NodeSets {
		bytes += b.m.NodeSets[i].Extra.bytes()
	}
	for i := range b.m.Queues {
		e := b.m.Queues[i].Extra
		bytes, b.m.queueParts = bytes+e.bytes(), max(b.m.queueParts, e.parts())
	}
	for i := range b.jobs {
		e := b.jobs[i].Extra
		bytes, b.m.jobParts = bytes+e.bytes(), max(b.m.jobParts, e.parts())
	}
	b.m.extra = bytes
}

// countExtras is that of the builder for the result of a change, and returns how much it does not share with the base. The jobs that were
// touched are in it once.
func (r *result) countExtras(c *change) (own int) {
	m, base := r.Model, r.base
	count := func(is, was *Extra) {
		if is != was {
			m.extra += is.bytes() - was.bytes()
			own += is.bytes()
		}
	}
	for s := 0; c.ownNodeSets && s < len(m.NodeSets); s++ {
		was := (*Extra)(nil)
		if s < len(base.NodeSets) {
			was = base.NodeSets[s].Extra
		}
		count(m.NodeSets[s].Extra, was)
	}
	for q := 0; c.ownQueues && q < len(m.Queues); q++ {
		was := (*Extra)(nil)
		if q < len(base.Queues) {
			was = base.Queues[q].Extra
		}
		count(m.Queues[q].Extra, was)
		m.queueParts = max(m.queueParts, m.Queues[q].Extra.parts())
	}
	for _, j := range r.touched {
		was := (*Extra)(nil)
		if int(j) < base.Jobs.Len() {
			was = base.Jobs.At(j).Extra
		}
		count(m.Jobs.At(j).Extra, was)
		m.jobParts = max(m.jobParts, m.Jobs.At(j).Extra.parts())
	}
	return own
}
