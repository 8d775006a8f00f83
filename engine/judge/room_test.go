package judge

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/internal/test/enginetest"
)

// TestTasksArePlacedFromTheIndexAsBySearchingAllNodes places tasks before and after others have been booked.
func TestTasksArePlacedFromTheIndexAsBySearchingAllNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := enginetest.Crowd(t)
		nodes := s.View().NodeOrder
		free, err := newFreeNodes(s.Host(), nodes, s.View().Idle)
		require.NoError(t, err)
		var pending []model.TaskID
		for i := range s.View().Tasks.Len() {
			if task := model.TaskID(i); s.View().Status(task) == model.Pending {
				pending = append(pending, task)
			}
		}
		require.NoError(t, s.Host().Tried(func() error {
			var booked []model.NodeID
			for len(pending) > 0 {
				n := rapid.IntRange(1, len(pending)).Draw(t, "together")
				tasks := pending[:n]
				pending = pending[n:]
				want, err := place.Tasks(s, tasks, nodes)
				require.NoError(t, err)
				got, known, err := free.place(tasks, booked)
				require.NoError(t, err)
				if known {
					require.Equal(t, want, got)
				}
				if want.Outcome != place.Placed {
					continue
				}
				for i, task := range tasks {
					s.Host().Book(task, model.Allocated, want.Nodes[i])
				}
				booked = append(booked, want.Nodes...)
			}
			return nil
		}))
	})
}
