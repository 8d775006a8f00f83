package remedy

import (
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/edit"
	"github.com/apportion/apportion/engine/model"
)

// Runs reports whether a job could start at once, whatever other jobs wait.
func Runs(s *engine.Session, j model.JobID) (bool, error) {
	now, err := runs(s.Host(), j)
	return now.runs, err
}

// ChangeBy goes on from the cluster after edits that are about a job, as Change does.
func ChangeBy(s *engine.Session, j model.JobID, edits []edit.Edit) error {
	if !s.View().Fresh() {
		if err := s.Change(nil, func(*model.ChangeBuilder) {}); err != nil {
			return err
		}
	}
	return changeBy(s.Host(), s.View().Model, j, edits)
}
