package trace

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDealtDaysKeepTheirJobsAndTheTimeOfDay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := &Trace{}
		for i, arrival := range rapid.SliceOfN(rapid.Int64Range(0, 30*day), 1, 50).Draw(t, "arrivals") {
			given.Jobs = append(given.Jobs, Job{Name: fmt.Sprint(i), Arrival: arrival})
		}
		given.Sort()
		before := slices.Clone(given.Jobs)
		dealt := given.Dealt(rapid.UintMin(1).Draw(t, "seed"))
		require.Equal(t, before, given.Jobs, "the trace is left as it is")
		require.Len(t, dealt.Jobs, len(before))
		require.True(t, slices.IsSortedFunc(dealt.Jobs, func(a, b Job) int { return int(a.Arrival - b.Arrival) }))
		first, last := before[0].Arrival/day, before[len(before)-1].Arrival/day
		moved, taken := map[int64]int64{}, map[int64]int64{}
		was := map[string]int64{}
		for _, j := range before {
			was[j.Name] = j.Arrival
		}
		for _, j := range dealt.Jobs {
			from, to := was[j.Name]/day, j.Arrival/day
			require.Equal(t, was[j.Name]%day, j.Arrival%day)
			require.True(t, first <= to && to <= last)
			if known, ok := moved[from]; ok {
				require.Equal(t, known, to, "a day stays together")
			}
			if known, ok := taken[to]; ok {
				require.Equal(t, known, from, "no two days become one")
			}
			moved[from], taken[to] = to, from
		}
	})
}

func TestASeedAlwaysGivesTheSameOrder(t *testing.T) {
	require.Equal(t, []int{2, 1, 4, 0, 3, 6, 5}, dealOrder(1, 7))
	given := &Trace{Jobs: []Job{{Arrival: 7}}}
	require.Same(t, given, given.Dealt(0))
	empty := &Trace{}
	require.Same(t, empty, empty.Dealt(3))
}

func TestTheDigestOfATraceIsThatOfItsJobs(t *testing.T) {
	given := func() *Trace { return &Trace{Jobs: []Job{{Name: "a", Groups: []Group{{Tasks: 1}}}}} }
	of, err := given().Digest()
	require.NoError(t, err)
	for name, change := range map[string]func(*Trace){
		"a job's":    func(c *Trace) { c.Jobs[0].Seconds = 5 },
		"a group's":  func(c *Trace) { c.Jobs[0].Groups[0].Tasks = 2 },
		"another":    func(c *Trace) { c.Jobs = append(c.Jobs, Job{}) },
		"the moment": func(c *Trace) { c.Start = c.Start.AddDate(1, 0, 0) },
	} {
		other := given()
		change(other)
		changed, err := other.Digest()
		require.NoError(t, err)
		require.NotEqual(t, of, changed, name)
	}
	noted := given()
	noted.Notes = []string{"what was left out"}
	same, err := noted.Digest()
	require.NoError(t, err)
	require.Equal(t, of, same)
}
