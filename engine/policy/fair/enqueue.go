package fair

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// inqueue sums the amounts that admitted jobs still lack of their minimum; filled in when it is first needed.
type inqueue struct {
	// lacked is a row for each place.
	lacked []int64
	jobs   map[model.JobID]*admitted
	spare  map[place]*spare
}

// admitted is a job in phase Inqueue that names minimum resources.
type admitted struct {
	minimum, held, lack []int64
}

// Enqueueable permits a job that could run at all, whose minimum is within the total and, together with what the queue and its ancestors
// hold and have admitted, within their limits, but for what it may take there. The gang that holds a reservation and can start now may
// enter in any case: its limits leave room, and jobs that were admitted before and wait for it must not keep it out. A permit books
// nothing: a job that is admitted counts by its phase.
func (s *State) Enqueueable(j model.JobID, why *policy.Reasons) policy.Vote {
	job := s.v.Jobs.At(j)
	q := job.Queue
	p, refusal := s.serving(q)
	switch {
	case p == none:
	case !s.tree.open[p]:
		refusal = policy.Because(name, policy.QueueNotOpen, q)
	default:
		var fits bool
		if refusal, fits = s.couldRun(j); !fits {
			break
		}
		if job.MinResources.Absent() {
			return policy.Permit
		}
		if r := s.reserved(); r != nil && r.job == j && r.from <= s.v.AsOf {
			return policy.Permit
		}
		if s.admits(j, p, why) {
			return policy.Permit
		}
		return policy.Reject
	}
	why.Add(refusal)
	return policy.Reject
}

// couldRun reports whether enough tasks of a job fit an empty node, those counted that hold something without being numbered.
func (s *State) couldRun(j model.JobID) (policy.Reason, bool) {
	v, job := s.v, s.v.Jobs.At(j)
	numbered := int64(job.EndTask - job.FirstTask)
	if numbered == 0 {
		return policy.Reason{}, true
	}
	fitting := int64(0)
	for t := job.FirstTask; t < job.EndTask; t++ {
		if s.fitsTask(t) {
			fitting++
		}
	}
	counted := int64(0)
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		for c := range v.CountsOf(g) {
			if c.Status.Granted() {
				counted += int64(c.N)
			}
		}
	}
	need := min(numbered+counted, max(1, int64(job.MinAvailable)))
	if fitting+counted >= need {
		return policy.Reason{}, true
	}
	reason := policy.Because(name, policy.NeverFits, job.Queue)
	reason.Have, reason.Limit = float64(fitting+counted), float64(need)
	return reason, false
}

// admits compares a job's minimum with the total and the limits. why gets the first limit that it exceeds, or all if it asks for that.
func (s *State) admits(j model.JobID, p place, why *policy.Reasons) bool {
	minimum := s.scratch.asked
	s.minimumOf(j, minimum)
	for _, d := range s.dims {
		if minimum[d] > s.total(d) {
			why.Add(policy.Reason{
				Plugin: name, Code: policy.AboveTotal, Queue: s.v.Jobs.At(j).Queue, Dimension: d,
				Need: float64(minimum[d]), Limit: float64(s.total(d)),
			})
			return false
		}
	}
	exceeded := s.exceededBy(j, p, minimum)
	if !slices.ContainsFunc(exceeded, func(e excess) bool { return !s.takes(j, p, e, minimum[e.dimension]) }) {
		return true
	}
	if !why.All() {
		exceeded = exceeded[:1]
	}
	for _, e := range exceeded {
		why.Add(s.aboveLimit(e.limited, e.dimension, e.have, minimum[e.dimension]))
	}
	return false
}

// excess is a dimension of which a place would have more than its limit.
type excess struct {
	limited    place
	dimension  int
	have, over int64
}

// exceededBy lists the limits that a job's minimum exceeds together with what its leaf and the places above hold and have admitted. The
// list is valid until the next call.
func (s *State) exceededBy(j model.JobID, p place, minimum []int64) []excess {
	s.openInqueue()
	list := s.scratch.exceeded[:0]
	own := s.inqueue.jobs[j]
	for a := p; a != none; a = s.tree.parent[a] {
		for _, d := range s.dims {
			have := s.row(s.accounts.held, a)[d] + s.row(s.inqueue.lacked, a)[d]
			if own != nil {
				have -= own.lack[d]
			}
			if limit := s.limits[a].capability[d]; minimum[d] > 0 && limit != unlimited && have+minimum[d] > limit {
				list = append(list, excess{a, d, have, have + minimum[d] - limit})
			}
		}
	}
	s.scratch.exceeded = list
	return list
}

func (s *State) minimumOf(j model.JobID, minimum []int64) {
	clear(minimum)
	row := s.v.Jobs.At(j).MinResources
	for m := row.Has; m != 0; m = m.Rest() {
		minimum[m.First()] = atLeast(row.V[m.First()])
	}
}

// openInqueue sums what admitted jobs lack.
func (s *State) openInqueue() {
	if s.inqueue.lacked != nil {
		return
	}
	s.inqueue.lacked = make([]int64, s.tree.len()*s.width)
	s.inqueue.jobs, s.inqueue.spare = map[model.JobID]*admitted{}, map[place]*spare{}
	for _, j := range s.v.Present() {
		if s.v.Phase(j) == model.PhaseInqueue {
			s.admit(j)
		}
	}
}

// admit counts a job as admitted and reports whether it is one that counts: it names a minimum, takes part, and has no tasks or some that
// could run.
func (s *State) admit(j model.JobID) bool {
	v, job, p := s.v, s.v.Jobs.At(j), s.leafOf(j)
	if p == none || job.MinResources.Absent() || s.inqueue.jobs[j] != nil || s.hopeless(j) {
		return false
	}
	a := &admitted{make([]int64, s.width), make([]int64, s.width), make([]int64, s.width)}
	s.minimumOf(j, a.minimum)
	for t := job.FirstTask; t < job.EndTask; t++ {
		if v.Status(t).Granted() {
			addTimes(a.held, s.requestOf(t), 1)
		}
	}
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		for c := range v.CountsOf(g) {
			if c.Status.Granted() {
				addTimes(a.held, &s.requests[v.Groups.At(g).Request], int64(c.N))
			}
		}
	}
	s.inqueue.jobs[j] = a
	s.updateLack(a, p)
	return true
}

// updateLack makes a job's lack what its minimum exceeds what it holds by.
func (s *State) updateLack(a *admitted, p place) {
	for d := range a.lack {
		change := max(0, a.minimum[d]-a.held[d]) - a.lack[d]
		a.lack[d] += change
		for up := p; change != 0 && up != none; up = s.tree.parent[up] {
			s.row(s.inqueue.lacked, up)[d] += change
		}
	}
}

// dismiss takes back what admit counted.
func (s *State) dismiss(j model.JobID) {
	a := s.inqueue.jobs[j]
	delete(s.inqueue.jobs, j)
	for d, lack := range a.lack {
		for p := s.leafOf(j); p != none; p = s.tree.parent[p] {
			s.row(s.inqueue.lacked, p)[d] -= lack
		}
	}
}

// hopeless reports whether a job has tasks with numbers of which none could ever run.
func (s *State) hopeless(j model.JobID) bool {
	job := s.v.Jobs.At(j)
	for t := job.FirstTask; t < job.EndTask; t++ {
		if s.fitsTask(t) {
			return false
		}
	}
	return job.FirstTask < job.EndTask
}

// Enqueued counts what an admitted job lacks of its minimum.
func (s *State) Enqueued(j model.JobID) {
	if s.inqueue.lacked != nil && s.admit(j) {
		s.v.Journal.Undo(func() { s.dismiss(j) })
	}
}
