package model

// Extra is what a single policy reads of a queue or a job, beyond the fields that all policies share. The model keeps the value as it is.
type Extra struct {
	Value any
	// Bytes is about what the value takes without its texts.
	Bytes int
}

func (e *Extra) bytes() int {
	if e == nil {
		return 0
	}
	const own = 24
	return own + e.Bytes
}

// ExtraBytes returns about what everything takes that single policies read, without its texts.
func (m *Model) ExtraBytes() int { return m.extra }

// countExtras sets the size of what single policies read, for a model that is not built by a Change.
func (b *Builder) countExtras() {
	bytes := b.m.Extra.bytes()
	for i := range b.m.Queues {
		bytes += b.m.Queues[i].Extra.bytes()
	}
	for i := range b.jobs {
		bytes += b.jobs[i].Extra.bytes()
	}
	b.m.extra = bytes
}

// countExtras is that of the builder for the result of a change, and returns how much it does not share with the base. The jobs that were
// touched are in it once.
func (r *result) countExtras(ownQueues bool) (own int) {
	m, base := r.Model, r.base
	count := func(is, was *Extra) {
		if is != was {
			m.extra += is.bytes() - was.bytes()
			own += is.bytes()
		}
	}
	count(m.Extra, base.Extra)
	for q := 0; ownQueues && q < len(m.Queues); q++ {
		was := (*Extra)(nil)
		if q < len(base.Queues) {
			was = base.Queues[q].Extra
		}
		count(m.Queues[q].Extra, was)
	}
	for _, j := range r.touched {
		was := (*Extra)(nil)
		if int(j) < base.Jobs.Len() {
			was = base.Jobs.At(j).Extra
		}
		count(m.Jobs.At(j).Extra, was)
	}
	return own
}
