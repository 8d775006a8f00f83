package engine

import "github.com/apportion/apportion/engine/model"

// MaxWarnings is the largest number of listed warnings.
const MaxWarnings = maxWarnings

// Runs reports whether a job could start at once, whatever other jobs wait.
func (s *Session) Runs(j model.JobID) (bool, error) {
	now, err := s.Host().runs(j)
	return now.runs, err
}

// ChangeBy goes on from the cluster after edits that are about a job, as Change does.
func (s *Session) ChangeBy(j model.JobID, edits []Edit) error {
	if !s.view.Fresh() {
		if err := s.Change(nil, func(*model.ChangeBuilder) {}); err != nil {
			return err
		}
	}
	return s.Host().changeBy(&editor{Model: s.view.Model, job: j, edits: edits})
}

// ExplainPlainly does what Explain does, and chooses victims for each claimant anew.
func (s *Session) ExplainPlainly(jobs []model.JobID, eviction bool, each func(*Explanation) error) error {
	x := newExplainer(s.Host())
	x.reclaims.Plainly = true
	return x.each(jobs, eviction, each)
}
