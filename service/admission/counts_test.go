package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCountsForgetAnIdentityThatHasNone(t *testing.T) {
	var c Counts
	require.False(t, c.Others("a"))
	mine, all := c.Add("a", 2)
	require.Equal(t, []int{2, 2}, []int{mine, all})
	require.False(t, c.Others("a"))
	require.True(t, c.Others("b"))
	mine, all = c.Add("b", 1)
	require.Equal(t, []int{1, 3}, []int{mine, all})
	require.True(t, c.Others("a"))
	c.Add("a", -2)
	require.Equal(t, 1, c.All())
	require.Len(t, c.of, 1)
}

func TestTheLastHalfOfTheCallsIsLeftToIdentitiesWithFewer(t *testing.T) {
	c := New(Options{Calls: 4})
	for range 2 {
		_, err := c.Begin("greedy")
		require.NoError(t, err)
	}
	_, err := c.Begin("modest")
	require.NoError(t, err)
	_, err = c.Begin("greedy")
	require.ErrorContains(t, err, "too many calls have begun")
	end, err := c.Begin("modest")
	require.NoError(t, err)
	_, err = c.Begin("other")
	require.ErrorContains(t, err, "too many calls have begun")
	end()
	_, err = c.Begin("other")
	require.NoError(t, err)
	require.Equal(t, 4, c.Usage().Begun)
}
