package scratch_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/policy/scratch"
)

func TestAValueIsNewOncePerQuestionAndItsMemoryIsUsedAgain(t *testing.T) {
	values := scratch.New[int32, []int](4)
	list, first := values.At(2)
	require.True(t, first)
	*list = append(*list, 7)
	list, first = values.At(2)
	require.False(t, first)
	require.Equal(t, []int{7}, *list)

	values.Clear()
	list, first = values.At(3)
	require.True(t, first)
	require.Equal(t, []int{7}, *list, "what an earlier question left")
	_, first = values.At(2)
	require.True(t, first)
}

func TestValuesAreThoseOfAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 8
		values, twin := scratch.New[int32, int](n), map[int32]int{}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			id := rapid.Int32Range(-1, n-1).Draw(t, "id")
			if id < 0 {
				values.Clear()
				clear(twin)
				continue
			}
			value, first := values.At(id)
			_, known := twin[id]
			require.Equal(t, !known, first)
			if first {
				*value = 0
			}
			*value++
			twin[id]++
			require.Equal(t, twin[id], *value)
		}
	})
}
