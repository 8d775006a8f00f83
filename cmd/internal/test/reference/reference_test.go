package reference

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/internal/test/raced"
	"github.com/apportion/apportion/internal/test/recording"
)

// Folders of recorded answers.
const (
	recordings      = "../../../../testdata/reference"
	kueueRecordings = "../../../../testdata/kueue"
)

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
	raced.Skip(t)
	ways, stop, err := Ways("process")
	require.NoError(t, err)
	defer func() { require.NoError(t, stop()) }()
	run := Run{Paths: []string{"../../../../testdata/memory"}, Ways: ways}
	results, err := run.Do(t.Context())
	require.NoError(t, err)
	text, tally := Report(results, ways, 10)
	require.True(t, tally.Good(), text)
	require.Greater(t, tally.Answers, 170_000, text)
}

func TestOurAnswersAreThoseOfKueue(t *testing.T) {
	run := Run{Paths: []string{kueueRecordings}}
	if testing.Short() {
		run.Group = "kueue probes"
	}
	results, err := run.Do(t.Context())
	require.NoError(t, err)
	text, tally := Report(results, nil, 10)
	require.True(t, tally.Good(), text)
	if testing.Short() {
		return
	}
	require.Greater(t, tally.Answers, 200_000, text)
	// Who lets go of more than this lets go of too much.
	require.Less(t, tally.AllUnheld(), 10_000, text)
}

// TestAChangedAnswerOfKueueIsFound changes what is recorded: a comparison that drops too much would not see it.
func TestAChangedAnswerOfKueueIsFound(t *testing.T) {
	raced.Skip(t)
	for line, err := range recording.Lines(kueueRecordings + "/probes.jsonl.gz") {
		require.NoError(t, err)
		c, ok := readKueue(line)
		require.True(t, ok)
		for _, changed := range []string{`"NoFit"`, `"team/`, `"flavor":"`} {
			other := *c
			other.Expect = []byte(replaced(string(c.Expect), changed))
			if string(other.Expect) != string(c.Expect) {
				require.NotEmpty(t, other.check("").Differences, "%s %s", c.label(), changed)
			}
		}
	}
}

// replaced changes the first occurrence of a text.
func replaced(text, part string) string {
	for i := 0; i+len(part) <= len(text); i++ {
		if text[i:i+len(part)] == part {
			return text[:i+1] + "other" + text[i+1:]
		}
	}
	return text
}
