package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheCircleThatASolverFoundIsOneUnderVolcanoAndNoneUnderFair plays the trace of proof/model.py.
func TestTheCircleThatASolverFoundIsOneUnderVolcanoAndNoneUnderFair(t *testing.T) {
	const scenario = "../../examples/scenarios/volcano-circle.yaml"
	out, _, err := runLine(t, "simulate", scenario)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(out, "may evict, in this order:"), out)

	out, _, err = runLine(t, "simulate", scenario, "--policy", "fair")
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(out, "may evict no task"), out)
}
