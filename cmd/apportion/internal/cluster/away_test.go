package cluster

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAServerThatIsAwayIsLoggedOnceForAllKinds(t *testing.T) {
	var log bytes.Buffer
	f := &Follower{options: FollowOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}, away: map[string]bool{}}
	kinds := []string{"nodes", "pods", "queues"}
	lines := func() int {
		n := strings.Count(log.String(), "\n")
		log.Reset()
		return n
	}
	for range 5 {
		for _, kind := range kinds {
			f.tell(kind, "the API server cannot be reached: connection refused", true)
			f.tell(kind, "the API server cannot be reached: EOF", true)
		}
	}
	require.Equal(t, 1, lines())
	for _, kind := range kinds {
		f.tell(kind, "", false)
	}
	require.Equal(t, 1, lines(), "it is back")
	f.tell("pods", "pods is forbidden", false)
	f.tell("pods", "", false)
	require.Equal(t, 2, lines(), "a fault of one kind")
}
