package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/client"
)

func TestTwoCyclesRunEveryJob(t *testing.T) {
	jobs := []client.Job{gang("train", "research", 5), gang("tune", "research", 2), gang("sweep", "batch", 3)}
	l, err := newLoop(client.InProcess())
	require.NoError(t, err)
	require.NoError(t, l.cycle(t.Context(), jobs))
	var placed []string
	for i := range jobs {
		for _, task := range jobs[i].Groups[0].Tasks {
			if task.Node != "" {
				placed = append(placed, task.UID)
			}
		}
	}
	require.Len(t, placed, 5, "train runs whole, the others not at all")
	require.True(t, strings.HasPrefix(placed[0], "train-"))

	require.NoError(t, l.mirror.RemoveJob("train"))
	require.NoError(t, l.cycle(t.Context(), jobs[1:]), "train has ended")
	for _, job := range jobs[1:] {
		for _, task := range job.Groups[0].Tasks {
			require.NotEmpty(t, task.Node, task.UID)
		}
	}
}
