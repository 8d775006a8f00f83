package resource_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/resource"
)

func TestAStockFindsTheFirstSlotThatALookAtEachFinds(t *testing.T) {
	t.Run("whole numbers", func(t *testing.T) { checkStock(t, 0, func(n int64) int64 { return n }) })
	t.Run("sums", func(t *testing.T) { checkStock(t, 0.25, func(n int64) float64 { return float64(n) / 8 }) })
}

func checkStock[A int64 | float64](t *testing.T, slack A, amountOf func(int64) A) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		slots, width := rapid.IntRange(0, 20).Draw(t, "slots"), rapid.IntRange(1, 3).Draw(t, "width")
		draw := func(row []A, least int64) {
			for d := range row {
				row[d] = amountOf(rapid.Int64Range(least, 6).Draw(t, "amount"))
			}
		}
		plain := make([][]A, slots)
		s := resource.NewStock(slots, width, slack, func(slot int, row []A) {
			draw(row, -2)
			plain[slot] = slices.Clone(row)
		})
		other, before := s.Clone(), slices.Clone(plain)
		for range rapid.IntRange(0, 10).Draw(t, "steps") {
			if slots > 0 && rapid.Bool().Draw(t, "change") {
				slot := rapid.IntRange(0, slots-1).Draw(t, "slot")
				draw(s.Row(slot), -2)
				plain[slot] = slices.Clone(s.Row(slot))
				s.Changed(slot)
			}
			asked, positive := make([]A, width), resource.Mask(0)
			draw(asked, 0)
			for d, a := range asked {
				if a > 0 {
					positive = positive.With(d)
				}
			}
			covers := func(slot int) bool {
				for d, a := range asked {
					if a > 0 && a > plain[slot][d]+slack {
						return false
					}
				}
				return true
			}
			firstFrom := func(from int) int {
				for slot := from; slot < slots; slot++ {
					if covers(slot) {
						return slot
					}
				}
				return -1
			}
			found := func(slot int) int {
				if slot >= slots {
					require.Zero(t, positive)
					return -1
				}
				return slot
			}
			for from := range slots {
				require.Equal(t, covers(from), s.Covers(from, asked, positive))
				slot, _ := s.First(s.Leaf(from), asked, positive)
				require.Equal(t, firstFrom(from), found(slot))
				if vertex := s.After(from); vertex > 0 {
					slot, _ = s.First(vertex, asked, positive)
					require.Equal(t, firstFrom(from+1), found(slot))
				} else {
					require.Negative(t, firstFrom(from+1))
				}
			}
			slot, seen := s.First(resource.Top, asked, positive)
			require.Equal(t, firstFrom(0), found(slot))
			require.Less(t, seen, 2<<s.Height(), "a search looks at no vertex twice")
		}
		for slot := range slots {
			require.Equal(t, before[slot], other.Row(slot), "a clone stays as it was")
		}
	})
}
