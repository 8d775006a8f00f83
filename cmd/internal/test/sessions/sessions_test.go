package sessions

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSessionsGoAsRecorded plays all recorded sessions.
func TestSessionsGoAsRecorded(t *testing.T) {
	tally, err := Compare("../../../../testdata/volcano-sessions")
	require.NoError(t, err)
	t.Log(tally)
	require.Zero(t, tally.Different, strings.Join(tally.Differences, "\n"))
	require.Equal(t, 751, tally.Clusters)
}
