package timeline_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/timeline"
)

// shop serves one customer at a time, for 5 minutes each.
type shop struct {
	now, ends int64
	queue     []int64
	events    []string
	fault     error
}

func (s *shop) Arrival(customer int64) int64 { return customer }

func (s *shop) Next() int64 { return s.ends }

func (s *shop) Pass(to int64) {
	if s.now = to; s.ends == to {
		s.ends = timeline.Never
		s.events = append(s.events, fmt.Sprint(to, " done"))
	}
}

func (s *shop) Arrive(customer int64) { s.queue = append(s.queue, customer) }

func (s *shop) Decide() error {
	if s.ends == timeline.Never && len(s.queue) > 0 {
		s.events = append(s.events, fmt.Sprint(s.now, " serves who came at ", s.queue[0]))
		s.queue, s.ends = s.queue[1:], s.now+5
	}
	return s.fault
}

func TestTimePassesFromEventToEvent(t *testing.T) {
	s := &shop{ends: timeline.Never}
	require.NoError(t, timeline.Simulate(s, []int64{1, 1, 6, 20}))
	require.Equal(t, []string{
		"1 serves who came at 1", "6 done", "6 serves who came at 1", "11 done", "11 serves who came at 6", "16 done",
		"20 serves who came at 20", "25 done",
	}, s.events)
	require.Equal(t, int64(25), s.now)
}

func TestAnErrorEndsASimulation(t *testing.T) {
	s := &shop{ends: timeline.Never, fault: errors.New("closed")}
	require.ErrorIs(t, timeline.Simulate(s, []int64{3, 9}), s.fault)
	require.Equal(t, int64(3), s.now)
}
