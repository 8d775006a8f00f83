package fair

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// verdicts asks each block of each queue whether it may start, and returns the reasons.
func (r *Rest) verdicts() []policy.Reason {
	var reasons []policy.Reason
	for _, q := range r.Order() {
		for _, job := range r.Blocks(q) {
			block := job.Gang
			if len(block) == 0 {
				block = job.Loose[:1]
			}
			why := &policy.Reasons{}
			if r.Allocatable(q, policy.Request{Tasks: block}, policy.InSession, why, nil) {
				reasons = append(reasons, policy.Reason{Code: policy.Entitled})
				continue
			}
			reasons = append(reasons, why.List...)
		}
	}
	return reasons
}

// TestAReservationIsFormedOnceForAStateWhenItIsAskedFor counts the work that is spent.
func TestAReservationIsFormedOnceForAStateWhenItIsAskedFor(t *testing.T) {
	formed := 0
	for i := range *runs {
		s := drawTurns(*seed + uint64(i)).open(t)
		if s.turns == nil {
			continue // What is known is of a queue that is set aside.
		}
		r := &Rest{State: s}
		s.v.Work = policy.NewWork(policy.DefaultWork)
		spent := func(ask func()) int64 {
			before := s.v.Work.Spent()
			ask()
			return s.v.Work.Spent() - before
		}
		reserve := func() { s.Reservation() }
		require.Positive(t, spent(reserve))
		require.Zero(t, spent(reserve), "seed %d: asked again", *seed+uint64(i))
		first, is := s.Reservation()
		mark := s.v.Journal.Mark()
		moved := false
		for task := range model.TaskID(s.v.Tasks.Len()) {
			if s.v.Status(task) == model.Running {
				require.Zero(t, spent(func() { r.set(task, model.Releasing, s.v.NodeOf(task)) }), "a change forms none")
				moved = true
				break
			}
		}
		if !moved {
			continue
		}
		require.Positive(t, spent(reserve), "seed %d: another state", *seed+uint64(i))
		s.v.Journal.Rollback(mark)
		require.Zero(t, spent(reserve), "seed %d: the state that a rollback returns to", *seed+uint64(i))
		again, still := s.Reservation()
		require.Equal(t, is, still)
		require.Equal(t, first, again)
		formed++
	}
	require.Positive(t, formed)
}

// TestWhatCannotBePaidIsNotRemembered asks with too little work, which fails, and then with enough: the answers are those of a state that
// was never short of work.
func TestWhatCannotBePaidIsNotRemembered(t *testing.T) {
	failed := 0
	for i := range *runs {
		c := drawTurns(*seed + uint64(i))
		free := &Rest{State: c.open(t)}
		free.v.Work = policy.NewWork(policy.DefaultWork)
		expected := free.verdicts()
		needed := free.v.Work.Spent()
		require.NoError(t, free.v.Work.Exceeded())

		bounded := &Rest{State: c.open(t)}
		for _, maximum := range []int64{0, needed / 3, needed / 2, needed - 1} {
			bounded.v.Work = policy.NewWork(maximum)
			bounded.verdicts()
			if bounded.v.Work.Exceeded() != nil {
				failed++
			}
		}
		bounded.v.Work = policy.NewWork(policy.DefaultWork)
		require.Equal(t, expected, bounded.verdicts(), "seed %d", *seed+uint64(i))
		require.NoError(t, bounded.v.Work.Exceeded())
		expectedRoom, expectedIs := free.Reservation()
		room, is := bounded.Reservation()
		require.Equal(t, expectedIs, is)
		require.Equal(t, expectedRoom, room)
	}
	require.Positive(t, failed)
}
