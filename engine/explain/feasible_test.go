package explain

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy/gang"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// TestAJobThatCanNeverRunDoesNotRunAlone explains the jobs of random clusters, and then judges each once nothing else runs.
func TestAJobThatCanNeverRunDoesNotRunAlone(t *testing.T) {
	impossible, others := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := enginetest.Crowd(t, engine.Entry{Plugin: gang.Plugin{}})
		for _, j := range s.Waiting() {
			var never bool
			require.NoError(t, Jobs(s, []model.JobID{j}, false, func(e *Explanation) error {
				never = e.Blocking >= 0 && e.Findings[e.Blocking].Check == judge.CheckFeasibility
				return nil
			}))
			if !never {
				others++
				continue
			}
			impossible++
			require.NoError(t, s.Host().Tried(func() error {
				for i := range s.View().Tasks.Len() {
					if task := model.TaskID(i); s.View().Tasks.At(task).Job != j && s.View().Status(task) == model.Running {
						s.View().SetStatus(task, model.Succeeded, model.None)
					}
				}
				d, err := judge.New(s.Host()).Check(j, s.Host().NeedOf(j))
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
