package odds

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestNodesOpenWhenAPeriodEndsThatAppliesToSomeTasks compares with a look at every period for all kinds of tasks.
func TestNodesOpenWhenAPeriodEndsThatAppliesToSomeTasks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 4).Draw(t, "nodes")
		holder := rapid.Int32Range(-1, 2)
		m := &Model{Periods: make([][]Period, nodes)}
		for n := range m.Periods {
			for range rapid.IntRange(0, 3).Draw(t, "periods") {
				m.Periods[n] = append(m.Periods[n], Period{
					Until: rapid.Int64Range(1, 1<<40).Draw(t, "until"), Holder: holder.Draw(t, "holder"), Part: rapid.Bool().Draw(t, "part"),
				})
			}
		}
		for range rapid.IntRange(0, 4).Draw(t, "kinds") {
			shut := &Shut{Lasts: Never, Holder: holder.Draw(t, "job")}
			if rapid.Bool().Draw(t, "tight") {
				shut.Tight = rapid.SliceOfN(rapid.Bool(), nodes, nodes).Draw(t, "nodes")
			}
			m.Kinds = append(m.Kinds, Kind{Gang: []Tasks{{Shut: shut}}, More: []Tasks{{}}})
		}
		want := map[int64]bool{}
		for node, list := range m.Periods {
			for i := range list {
				for k := range m.Kinds {
					want[list[i].Until] = want[list[i].Until] || m.Kinds[k].Gang[0].Shut.applies(&list[i], node)
				}
			}
		}
		var opens []int64
		for until, applies := range want {
			if applies {
				opens = append(opens, until)
			}
		}
		slices.Sort(opens)
		require.Equal(t, opens, m.opens())
	})
}
