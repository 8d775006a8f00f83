package render_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/render"
)

// evictions is a table as plan prints it, about as wide as 150 columns.
func evictions(width int) string {
	table := render.Style{Width: width}.NewTable("TASK", "QUEUE", "NODE", "FREES", "FOR", ">TIER", "RETURNS")
	for i := range 3 {
		table.Row(fmt.Sprintf("vision/detector-train-worker-%d", i), "vision", fmt.Sprintf("gpu-a100-0%d", i),
			"80 cpu, 720Gi memory, 8 nvidia.com/gpu", "robotics/grasp-train-worker-0", "1", "no")
	}
	var out strings.Builder
	table.Write(&out)
	return out.String()
}

func TestATableIsAsWideAsTheTerminal(t *testing.T) {
	for width, lines := range map[int]int{60: 21, 80: 21, 150: 4} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			text := evictions(width)
			require.Equal(t, lines, strings.Count(text, "\n"), text)
			for line := range strings.Lines(text) {
				require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), width, text)
			}
			for _, cell := range []string{"vision/detector-train-worker-2", "gpu-a100-02", "720Gi memory", "robotics/grasp-train-worker-0"} {
				require.Contains(t, text, cell, "nothing is left out")
			}
		})
	}
	require.Equal(t, `vision/detector-train-worker-0
  queue vision
  node gpu-a100-00
  frees 80 cpu, 720Gi memory, 8
        nvidia.com/gpu
  for robotics/grasp-train-worker-0
  tier 1
  returns no
`, strings.Join(strings.SplitAfter(evictions(40), "\n")[:8], ""))
}

func TestWhatANarrowTableLeavesOutIsSaidInItsWidth(t *testing.T) {
	table := render.Style{Width: 60}.NewTable("QUEUE", ">WEIGHT OF THE QUEUE", ">GUARANTEE OF THE QUEUE", ">REQUEST OF THE QUEUE").
		Optional("WEIGHT OF THE QUEUE", "GUARANTEE OF THE QUEUE", "REQUEST OF THE QUEUE")
	table.Row("research", "1", "2", "3")
	var out strings.Builder
	table.Write(&out)
	require.Contains(t, out.String(), "narrow terminal: without WEIGHT OF THE QUEUE")
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len(line), 61, out.String())
	}
}
