package admission

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSmallBookingsAreFreeAndLargeOnesCount(t *testing.T) {
	b := NewBudget(BudgetOptions{Name: "b", Bytes: 1000, Retry: time.Second})
	s := NewBookings(b, "a", 64)
	small, err := s.Book(t.Context(), 60, 0)
	require.NoError(t, err)
	require.Zero(t, b.Used())
	second, err := s.Book(t.Context(), 60, 0)
	require.NoError(t, err)
	require.EqualValues(t, 60, b.Used(), "the spare is taken")
	small.Release()
	small.Release()
	third, err := s.Book(t.Context(), 64, 0)
	require.NoError(t, err)
	require.EqualValues(t, 60, b.Used())
	second.Release()
	require.Zero(t, b.Used())
	third.Release()
}

func TestClosedBookingsHoldNothing(t *testing.T) {
	b := NewBudget(BudgetOptions{Name: "b", Bytes: 1000, Retry: time.Second})
	s := NewBookings(b, "a", 0)
	first, err := s.Book(t.Context(), 100, 0)
	require.NoError(t, err)
	s.Close()
	require.Zero(t, b.Used())
	first.Release()
	require.Zero(t, b.Used(), "given back once")
	_, err = s.Book(t.Context(), 100, 0)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, b.Used())
}
