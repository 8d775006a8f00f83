package trace

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/apportion/apportion/contract/lookup"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// TestABadHistoryIsUsedAsFarAsItGoes counts what is left out, and shows the first of each.
func TestABadHistoryIsUsedAsFarAsItGoes(t *testing.T) {
	history, err := ReadCSV("jobs.csv", strings.NewReader("arrival,job,queue,seconds,cpu\n"+
		"2026-03-02T08:00:00Z,a,lab,60,1\n"+
		"2026-03-02T08:10:00Z,b,lab,-60,1\n"+
		"2026-03-02T08:20:00Z,c,lab,-1,1\n"+
		"2026-03-02T08:30:00Z,a,lab,60,1\n"+
		"2026-03-02T08:40:00Z,d,gone,60,1\n"+
		"2026-03-02T08:50:00Z,e,lab,360000,1\n"+
		"2026-03-03T08:00:00Z,f,lab,60,1\n"+
		"2026-03-02T08:55:00Z,g,lab,120,2\n"), Tolerant)
	require.NoError(t, err)
	require.Equal(t, []string{
		`jobs.csv: 2 lines are left out because of seconds; the first is line 3: "-60" is not a whole number from 1 to 3162240000`,
		`jobs.csv: 1 line is left out because of job; the first is line 5: job "a" is in line 2 already`,
	}, history.Faulty.Summary())

	snapshot := lookup.Of(&apportionv1.Snapshot{Dimensions: []string{"cpu"}, Queues: []*apportionv1.Queue{{Name: "other"}, {Name: "lab"}}})
	past, left := history.Past(snapshot, time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	require.Equal(t, []string{
		"1 job of queues that the cluster does not have is left out, such as gone",
		"1 job ending after the time of the snapshot is left out, such as e",
		"1 job arriving after the time of the snapshot is left out, such as f",
	}, left)
	require.Equal(t, []uint64{3600, 300}, past.GetAge())
	require.Equal(t, []uint64{60, 120}, past.GetSeconds())
	require.Equal(t, []uint32{0, 1}, past.GetKind())
	require.Equal(t, uint32(1), past.GetKinds()[0].GetQueue())
	require.Equal(t, []float64{2000}, past.GetKinds()[1].GetRequest().GetAmount())

	_, err = ReadCSV("jobs.csv", strings.NewReader("job,seconds\n"), Tolerant)
	require.ErrorContains(t, err, "arrival: the column is missing", "nothing can be read of it")
}

func TestALogWhoseClockJumpsIsReadAndSaysSo(t *testing.T) {
	line := func(number, submit, run string) string {
		return number + " " + submit + " 0 " + run + " 1 -1 -1 1 -1 -1 1 1 1 -1 1 1 -1 -1\n"
	}
	swf := &SWF{Processor: []Amount{{"cpu", 1000}}, Strictness: Tolerant}
	history, err := swf.Read("log.swf", strings.NewReader(
		line("1", "100", "10")+line("2", "50", "10")+line("3", "200", "-20")+line("3", "nonsense", "5")+line("4", "-7", "5")))
	require.NoError(t, err)
	require.Len(t, history.Jobs, 2)
	require.Equal(t, []string{
		"log.swf: 1 job arrives before the job of the line above, as if the clock had jumped",
		"log.swf: 1 job is left out: ends before it starts",
	}, history.Notes)
	require.Equal(t, []string{
		`log.swf: 2 lines are left out because of submit time; the first is line 4: "nonsense" is not a number`,
	}, history.Faulty.Summary())
}
