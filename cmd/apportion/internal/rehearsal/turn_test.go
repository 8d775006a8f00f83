package rehearsal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/cycle"
)

// TestSessionsStateExactlyWhenJobsEnd runs jobs that are never evicted and need all of their tasks: each ends as long after its start as it
// runs, and every session while it runs says so.
func TestSessionsStateExactlyWhenJobsEnd(t *testing.T) {
	jobs := drawn(3, 300, 2, 64, 24*3600, .9)
	for i := range jobs.Jobs {
		jobs.Jobs[i].Min = jobs.Jobs[i].Tasks()
	}
	stated := 0
	o := options(t)
	o.Observe = func(m *Moment) {
		for i := range m.Jobs {
			j := &m.Jobs[i]
			if end := m.Session.View().Jobs.At(j.ID).ExpectedEnd; end != 0 {
				require.Equal(t, (j.Since+j.Seconds)*int64(time.Second), end, "%s at %d", j.Name, m.Now)
				stated++
			}
		}
	}
	_, err := Run(t.Context(), &Variant{
		Snapshot: cluster(8, 1, 2), Policy: preset(t, "fair"), Memory: &Memory{Epoch: 6 * time.Hour, HalfLife: 28},
		Actions: []cycle.Action{cycle.Enqueue, cycle.Allocate},
	}, jobs, o)
	require.NoError(t, err)
	require.Greater(t, stated, 300)
}
