package explain

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/fair"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/engine/policy/overcommit"
	"github.com/apportion/apportion/engine/policy/proportion"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// TestJobsAreExplainedTogetherAsEachAlone compares what one explainer remembers of several jobs with what one for each job finds.
func TestJobsAreExplainedTogetherAsEachAlone(t *testing.T) {
	for name, plugins := range map[string][]engine.Entry{
		"proportion": {{Plugin: gang.Plugin{}}, {Plugin: overcommit.Default()}, {Plugin: proportion.Plugin{}}},
		"fair":       {{Plugin: gang.Plugin{}}, {Plugin: fair.Plugin{}}},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := enginetest.Crowd(t, plugins...)
				brief := rapid.Bool().Draw(t, "brief")
				explained := func(jobs []model.JobID) (list []*Explanation) {
					x := newExplainer(s.Host())
					x.Brief = brief
					require.NoError(t, x.each(jobs, false, func(e *Explanation) error {
						list = append(list, e)
						return nil
					}))
					return list
				}
				waiting := s.Waiting()
				var alone []*Explanation
				for _, j := range waiting {
					alone = append(alone, explained([]model.JobID{j})...)
				}
				require.Equal(t, alone, explained(waiting))
			})
		})
	}
}
