package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/gang"
)

// TestAJobThatCanNeverRunDoesNotRunAlone explains the jobs of random clusters, and then judges each once nothing else runs.
func TestAJobThatCanNeverRunDoesNotRunAlone(t *testing.T) {
	impossible, others := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := crowd(t, Entry{Plugin: gang.Plugin{}})
		for _, j := range s.Waiting() {
			var never bool
			require.NoError(t, s.Explain([]model.JobID{j}, false, func(e *Explanation) error {
				never = e.Blocking >= 0 && e.Findings[e.Blocking].Check == CheckFeasibility
				return nil
			}))
			if !never {
				others++
				continue
			}
			impossible++
			require.NoError(t, s.Host().Tried(func() error {
				for i := range s.view.Tasks.Len() {
					if task := model.TaskID(i); s.view.Tasks.At(task).Job != j && s.view.Status(task) == model.Running {
						s.view.SetStatus(task, model.Succeeded, model.None)
					}
				}
				d, err := NewJudge(s.Host()).Check(j, s.Host().NeedOf(j))
				require.NoError(t, err)
				require.NotNil(t, d.Against(), "job %d can never run, and runs alone", j)
				return nil
			}))
		}
	})
	t.Logf("%d jobs can never run, %d may", impossible, others)
	require.Positive(t, impossible)
	require.Positive(t, others)
}
