package sessions

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// known are the sessions that go otherwise than Volcano's, and why.
var known = map[string]string{
	"s1-376 session 0":  "what a pod releases whose job is not in the session is not in a snapshot",
	"s1-1102 session 0": "by chance: preempt takes another one of equal victims first, and then one more",
}

// TestSessionsGoAsRecorded plays all recorded sessions, and finds each known difference, so that none stands here that is mended.
func TestSessionsGoAsRecorded(t *testing.T) {
	tally, err := Compare("../../../../testdata/volcano-sessions")
	require.NoError(t, err)
	t.Log(tally)
	for session, why := range known {
		require.Contains(t, tally.Differences, session, why)
		delete(tally.Differences, session)
	}
	require.Empty(t, tally.Differences)
	require.Equal(t, []int{751, 2043, 210}, []int{tally.Clusters, tally.Certain, tally.Chance})
}
