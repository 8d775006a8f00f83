package volcano

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMaintenanceOfNodesIsReadFromTheirAnnotation(t *testing.T) {
	at := func(text string) int64 {
		moment, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return moment.UnixNano()
	}
	const first, second = "2026-03-02T15:00:00Z/2026-03-02T17:00:00Z", "2026-03-03T15:00:00+01:00/2026-03-03T17:00:00+01:00"
	for name, story := range map[string]struct {
		annotation string
		want       [][2]int64
		warning    string
	}{
		"a period":                       {first, [][2]int64{{at("2026-03-02T15:00:00Z"), at("2026-03-02T17:00:00Z")}}, ""},
		"two, in another zone and apart": {first + ", " + second, [][2]int64{{at("2026-03-02T15:00:00Z"), at("2026-03-02T17:00:00Z")}, {at("2026-03-03T14:00:00Z"), at("2026-03-03T16:00:00Z")}}, ""},
		"nothing":                        {"", nil, ""},
		"a time alone":                   {"2026-03-02T15:00:00Z", nil, "not a period like"},
		"words":                          {"tomorrow/later", nil, "not a period like"},
		"backwards":                      {"2026-03-02T17:00:00Z/2026-03-02T15:00:00Z", nil, "does not end after it begins"},
		"of no length":                   {"2026-03-02T15:00:00Z/2026-03-02T15:00:00Z", nil, "does not end after it begins"},
		"a year without nanoseconds":     {"2026-03-02T15:00:00Z/9999-03-02T15:00:00Z", nil, "the years of a period are 1971 to 2261"},
		"a good one beside a wrong one":  {"x/y," + first, [][2]int64{{at("2026-03-02T15:00:00Z"), at("2026-03-02T17:00:00Z")}}, `for it: "x/y"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := read(t, "kind: Node\nmetadata:\n  name: n\n  annotations:\n    apportion.dev/maintenance: '"+story.annotation+"'\n")
			var got [][2]int64
			for _, r := range c.Snapshot.GetNodes()[0].GetReservations() {
				require.Equal(t, "maintenance", r.GetReason())
				require.Nil(t, r.GetRequest())
				require.Empty(t, r.GetHolder())
				got = append(got, [2]int64{r.GetStartUnixNano(), r.GetEndUnixNano()})
			}
			require.Equal(t, story.want, got)
			if story.warning == "" {
				require.Empty(t, c.Warnings)
				return
			}
			require.Len(t, c.Warnings, 1)
			require.Contains(t, c.Warnings[0].GetPath(), "apportion.dev/maintenance")
			require.Contains(t, c.Warnings[0].GetMessage(), story.warning)
		})
	}
}

func TestANodeHasAtMostSoManyPeriodsOfMaintenance(t *testing.T) {
	const period = "2026-03-02T15:00:00Z/2026-03-02T17:00:00Z"
	c := read(t, "kind: Node\nmetadata:\n  name: n\n  annotations:\n    apportion.dev/maintenance: "+strings.Repeat(period+",", 40)+period+"\n")
	require.Len(t, c.Snapshot.GetNodes()[0].GetReservations(), 16)
	require.Len(t, c.Warnings, 1)
}
