package rehearsal

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
)

// memo remembers refusals, so that equal jobs are not asked about again while nothing has changed. Attempts that fail leave nothing behind,
// so that the same question has the same answer.
type memo struct {
	// refusals hold for jobs of a kind until something is placed or evicted.
	refusals map[refusal]bool
	// full are the requests that no node has room for, until something is evicted.
	full map[roomKey]bool
}

// refusal is a question that was refused; means is 0 for an attempt without evictions.
type refusal struct {
	kind    int32
	running int
	means   plan.Means
}

// roomKey determines the nodes on which a task fits.
type roomKey struct {
	request int32
	set     model.NodeSetID
	queue   model.QueueID
}

// question returns what a job asks, and whether another job may ask the same.
func (r *run) question(j *job, means plan.Means) (refusal, bool) {
	// Beside room that is kept it matters when a job that runs ends.
	kept := r.timed && !r.turns
	return refusal{j.kind, j.running, means}, !r.options.plain && (j.running == 0 || len(j.Groups) == 1 && !kept)
}

func (m *memo) refused(r *run, j *job, means plan.Means) bool {
	q, common := r.question(j, means)
	return common && m.refusals[q]
}

func (m *memo) refuse(r *run, j *job, means plan.Means) {
	if q, common := r.question(j, means); common {
		if m.refusals == nil {
			m.refusals = map[refusal]bool{}
		}
		m.refusals[q] = true
	}
}

func (m *memo) fill(key roomKey) {
	if m.full == nil {
		m.full = map[roomKey]bool{}
	}
	m.full[key] = true
}

// changed forgets what may be answered otherwise after a placement or an admission, and freed what may be after an eviction.
func (m *memo) changed() { clear(m.refusals) }

func (m *memo) freed() {
	clear(m.refusals)
	clear(m.full)
}
