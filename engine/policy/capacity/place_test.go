package capacity_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/capacity"
)

// TestPlacesCompareAsTheQueuesDo draws some of the queues, because which of them are ranked together decides the places.
func TestPlacesCompareAsTheQueuesDo(t *testing.T) {
	ordered := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		flat := rapid.Bool().Draw(t, "flat")
		s := c.open(t, capacity.Plugin{Hierarchical: !flat})
		for range rapid.IntRange(0, 5).Draw(t, "events") {
			if n := s.v.Tasks.Len(); n > 0 {
				s.Allocate(model.TaskID(rapid.IntRange(0, n-1).Draw(t, "task")))
			}
		}
		var queues []model.QueueID
		for q := range s.v.Queues {
			if rapid.IntRange(0, 3).Draw(t, "one of them") > 0 {
				queues = append(queues, model.QueueID(q))
			}
		}
		places := make([]policy.QueuePlace, len(queues))
		if !s.decider.(policy.QueueOrderer).PlaceQueues(queues, places) {
			require.False(t, flat, "flat, there are always places")
			return
		}
		ordered++
		order := s.decider.(policy.QueueOrderer)
		for i, l := range queues {
			for k, r := range queues[:i] {
				require.Equal(t, order.CompareQueues(l, r), places[i].Compare(places[k]),
					"%s and %s", s.v.Queues[l].Name, s.v.Queues[r].Name)
			}
		}
	})
	require.Positive(t, ordered)
}

// TestLeavesOfATreeHavePlaces draws leaves of a tree, where nothing but ties between branches with several of them forbids places.
func TestLeavesOfATreeHavePlaces(t *testing.T) {
	ordered := 0
	rapid.Check(t, func(t *rapid.T) {
		s := drawCluster(t).tree(t)
		parents := map[string]bool{"root": true}
		for q := range s.v.Queues {
			parents[s.v.Queues[q].Parent] = true
		}
		var leaves []model.QueueID
		for q := range s.v.Queues {
			if !parents[s.v.Queues[q].Name] && rapid.IntRange(0, 3).Draw(t, "one of them") > 0 {
				leaves = append(leaves, model.QueueID(q))
			}
		}
		places := make([]policy.QueuePlace, len(leaves))
		order := s.decider.(policy.QueueOrderer)
		placed := s.decider.(policy.QueueOrderer).PlaceQueues(leaves, places)
		if placed && len(leaves) > 1 {
			ordered++
		}
		for i, l := range leaves {
			for k, r := range leaves[:i] {
				if placed {
					require.Equal(t, order.CompareQueues(l, r),
						places[i].Compare(places[k]),
						"%s and %s", s.v.Queues[l].Name, s.v.Queues[r].Name)
				}
			}
		}
	})
	require.Positive(t, ordered)
}
