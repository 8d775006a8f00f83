package web

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlacesAreSharedByIdentities(t *testing.T) {
	for all, want := range map[int][3]int{1: {1, 0, 0}, 2: {1, 1, 0}, 3: {1, 1, 1}, 4: {2, 1, 1}, 64: {32, 16, 8}} {
		p := newPlaces(all)
		var got [3]int
		var leave []func()
		for i, identity := range []string{"a", "b", "c"} {
			for {
				l, ok := p.take(identity)
				if !ok {
					break
				}
				leave = append(leave, l)
				got[i]++
			}
		}
		require.Equal(t, want, got, "of %d", all)
		for _, l := range leave {
			l()
		}
		require.Empty(t, p.of)
		require.Zero(t, p.taken)
	}
}
