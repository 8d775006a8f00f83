package rehearsal_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
	"github.com/apportion/apportion/cmd/apportion/internal/trace"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// TestALimitIsNarrowIfItsGangsRunOneAtATimeAndHaveLittleTimeToSpare: a gang an hour, of two tasks, in a queue below one with a limit.
func TestALimitIsNarrowIfItsGangsRunOneAtATimeAndHaveLittleTimeToSpare(t *testing.T) {
	limit := func(amount float64) *apportionv1.Resource {
		return &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{amount}}
	}
	for _, c := range []struct {
		name    string
		limit   float64
		jobs    int
		seconds int64
		min     int
		narrow  bool
	}{
		{"they need all of the time", 6000, 20, 3600, 2, true},
		{"they need 95 % of it", 6000, 20, 3249, 2, true},
		{"they have time to spare", 6000, 20, 3000, 2, false},
		{"two fit at the same time", 8000, 20, 3600, 2, false},
		{"none fits at all", 3000, 20, 3600, 2, false},
		{"they are no gangs", 6000, 20, 3600, 1, false},
		{"there are few", 6000, 9, 3600, 2, false},
		{"there is no limit", 0, 20, 3600, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &apportionv1.Snapshot{Dimensions: []string{"gpu"}, Queues: []*apportionv1.Queue{
				{Name: "team", Capability: limit(c.limit)}, {Name: "a", Parent: "team"},
			}}
			history := &trace.Trace{}
			for i := range c.jobs {
				history.Jobs = append(history.Jobs, trace.Job{
					Name: fmt.Sprint(i), Queue: "a", Arrival: int64(i) * 3600, Seconds: c.seconds, Min: c.min,
					Groups: []trace.Group{{Tasks: 2, Request: []trace.Amount{{Resource: "gpu", Amount: 2000}}}},
				})
			}
			found := rehearsal.Narrows(s, history)
			require.Equal(t, c.narrow, len(found) > 0, "%+v", found)
			if c.narrow {
				n := found[0]
				require.Equal(t, []any{"team", "gpu", c.limit, 4000.0, c.jobs}, []any{n.Queue, n.Resource, n.Limit, n.Most, n.Jobs})
				require.InDelta(t, float64(c.jobs)*float64(c.seconds)/(float64(c.jobs-1)*3600), n.Load, 1e-9)
			}
		})
	}
	require.Empty(t, rehearsal.Narrows(&apportionv1.Snapshot{}, &trace.Trace{}))

	s := &apportionv1.Snapshot{Dimensions: []string{"gpu"}, Queues: []*apportionv1.Queue{{Name: "a", Capability: limit(6000)}}}
	atOnce := &trace.Trace{}
	for i := range 20 {
		atOnce.Jobs = append(atOnce.Jobs, trace.Job{
			Name: fmt.Sprint(i), Queue: "a", Seconds: 3600, Min: 2,
			Groups: []trace.Group{{Tasks: 2, Request: []trace.Amount{{Resource: "gpu", Amount: 2000}}}},
		})
	}
	require.Empty(t, rehearsal.Narrows(s, atOnce), "jobs that arrive together need no part of a time")
}
