package explain

import (
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
)

// Plainly does what Jobs does, and chooses victims for each claimant anew.
func Plainly(s *engine.Session, jobs []model.JobID, eviction bool, each func(*Explanation) error) error {
	x := newExplainer(s.Host())
	x.reclaims.Plainly = true
	return x.each(jobs, eviction, each)
}
