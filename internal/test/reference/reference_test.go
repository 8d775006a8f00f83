package reference

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// recordings is the folder of the recorded answers.
const recordings = "../../../testdata/reference"

func TestOurAnswersAreThoseOfVolcano(t *testing.T) {
	ways, stop, err := Ways("")
	require.NoError(t, err)
	defer func() { require.NoError(t, stop()) }()
	run := Run{Paths: []string{recordings}, Ways: ways}
	if testing.Short() {
		run.Group = probes
	}
	results, err := run.Do(t.Context())
	require.NoError(t, err)
	text, tally := Report(results, ways, 10)
	require.True(t, tally.Good(), text)
	if testing.Short() {
		return
	}
	require.Greater(t, tally.Answers, 600_000, text)
	// More answers than this must not be exempt from comparison.
	require.Less(t, tally.AllUnheld(), 10_000, text)
}

func TestOurAnswersOfFairAreThoseOfAnIndependentProgram(t *testing.T) {
	ways, stop, err := Ways("process")
	require.NoError(t, err)
	defer func() { require.NoError(t, stop()) }()
	run := Run{Paths: []string{"../../../testdata/memory"}, Ways: ways}
	results, err := run.Do(t.Context())
	require.NoError(t, err)
	text, tally := Report(results, ways, 10)
	require.True(t, tally.Good(), text)
	require.Greater(t, tally.Answers, 170_000, text)
}
