package variation

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
)

func TestPlannedDowntimeReplacesThatOfANodeAndKeepsWhatIsReservedForJobs(t *testing.T) {
	at := func(text string) int64 {
		moment, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return moment.UnixNano()
	}
	const first, second = "2026-03-02T15:00:00Z/2026-03-02T17:00:00Z", "2026-03-03T15:00:00+01:00/2026-03-03T17:00:00+01:00"
	cluster := func(asOf int64) *lookup.Snapshot {
		return lookup.Of(&apportionv1.Snapshot{AsOf: asOf, Nodes: []*apportionv1.Node{
			{Name: "free"}, {Name: "n.maintenance", Reservations: []*apportionv1.NodeReservation{
				{StartUnixNano: 1, Holder: "ns/j"}, {StartUnixNano: at("2026-03-05T15:00:00Z"), Reason: "firmware"}, {StartUnixNano: 2, Request: &apportionv1.Resource{}},
			}},
		}})
	}
	now := at("2026-03-02T14:00:00Z")
	for name, c := range map[string]struct {
		set, line string
		want      [][2]int64
		fault     string
	}{
		"a period": {
			"free.maintenance=" + first, "set maintenance of node free to " + first + " (now none)",
			[][2]int64{{at("2026-03-02T15:00:00Z"), at("2026-03-02T17:00:00Z")}},
			"",
		},
		"two, in place of one without an end": {
			"n.maintenance.maintenance=" + first + ", " + second,
			"set maintenance of node n.maintenance to " + first + ",2026-03-03T14:00:00Z/2026-03-03T16:00:00Z (now 2026-03-05T15:00:00Z/)",
			[][2]int64{{1, 0}, {2, 0}, {at("2026-03-02T15:00:00Z"), at("2026-03-02T17:00:00Z")}, {at("2026-03-03T14:00:00Z"), at("2026-03-03T16:00:00Z")}},
			"",
		},
		"nothing":                          {"n.maintenance.maintenance=", "set maintenance of node n.maintenance to none (now 2026-03-05T15:00:00Z/)", [][2]int64{{1, 0}, {2, 0}}, ""},
		"none":                             {"n.maintenance.maintenance=none", "set maintenance of node n.maintenance to none (now 2026-03-05T15:00:00Z/)", [][2]int64{{1, 0}, {2, 0}}, ""},
		"nothing where nothing is planned": {"free.maintenance=", "", nil, "no downtime of the node is planned"},
		"words and a period backwards": {
			"free.maintenance=today, 2026-03-02T17:00:00Z/2026-03-02T15:00:00Z", "", nil,
			`"today": not a period like 2006-01-02T15:04:05Z/2006-01-02T17:04:05Z; "2026-03-02T17:00:00Z/2026-03-02T15:00:00Z": the period does not end after it begins`,
		},
		"a period that is over": {"free.maintenance=2026-03-02T12:00:00Z/2026-03-02T14:00:00Z", "", nil, "the period is over at 2026-03-02T14:00:00Z"},
		"too many": {
			"n.maintenance.maintenance=" + strings.Repeat(first+",", 14) + second, "", nil,
			"17 reservations of the node, with those for jobs and of parts of it, are more than 16",
		},
		"no node": {"gone.maintenance=" + first, "", nil, `no node "gone"`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, stated := range []int64{now, 0} {
				v := of(t, []string{"--set", "node/" + c.set})
				v.Now = now
				made, err := v.Of(cluster(stated), nil)
				if c.fault != "" {
					require.ErrorContains(t, err, "--set node/"+c.set+": ")
					require.ErrorContains(t, err, c.fault)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, []string{c.line}, made.Lines)
				var got [][2]int64
				for _, r := range made.Change.GetNodes()[0].GetReservations() {
					got = append(got, [2]int64{r.GetStartUnixNano(), r.GetEndUnixNano()})
				}
				require.Equal(t, c.want, got)
				if strings.HasSuffix(c.line, "to none (now 2026-03-05T15:00:00Z/)") || stated != 0 {
					require.Nil(t, made.Change.AsOf)
				} else {
					require.Equal(t, now, made.Change.GetAsOf(), "reservations depend on the time")
				}
			}
		})
	}
}
