package trace

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/ledger"
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
	require.Equal(t, []uint64{3600, 300}, past.GetAgeSeconds())
	require.Equal(t, []uint64{60, 120}, past.GetRunSeconds())
	require.Equal(t, []uint32{0, 1}, past.GetKindIndices())
	require.Equal(t, uint32(1), past.GetKinds()[0].GetQueue())
	require.Equal(t, []float64{2000}, past.GetKinds()[1].GetRequest().GetAmounts())

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
		"log.swf: 1 job arrives before the job of the line above, as if the clock had jumped; the first is line 2",
		"log.swf: 1 job is left out: ends before it starts",
	}, history.Notes)
	require.Equal(t, []string{
		`log.swf: 2 lines are left out because of submit time; the first is line 4: "nonsense" is not a number`,
	}, history.Faulty.Summary())
}

func TestPartsOfALogThatAreFarFromTheOthersAreLeftOutIfItSaysNoTime(t *testing.T) {
	const month = 30 * 24 * 3600
	at := &Trace{}
	for _, arrival := range []int64{0, 10, 20, 100 * month, 100*month + 5} {
		at.Jobs = append(at.Jobs, Job{Name: fmt.Sprint("job-", len(at.Jobs)), Queue: "lab", Arrival: arrival, Seconds: 5, Min: 1})
	}
	snapshot := lookup.Of(&apportionv1.Snapshot{Queues: []*apportionv1.Queue{{Name: "lab"}}})
	past, left := at.Past(snapshot, time.Unix(1_000_000_000, 0))
	require.Equal(t, []uint64{25, 15, 5}, past.GetAgeSeconds())
	require.Equal(t, []string{"2 jobs arriving 30 days or more apart from the others, as if the clock had jumped, are left out, such as job-3"}, left)

	at.Start = time.Unix(0, 0)
	past, left = at.Past(snapshot, time.Unix(200*month, 0))
	require.Len(t, past.GetAgeSeconds(), 5)
	require.Equal(t, []string{
		"no job arrives for 30 days or more in 1 place, as if the clock had jumped or jobs were missing; the first follows job-2",
	}, left)
	past, left = (&Trace{}).Past(snapshot, time.Unix(0, 0))
	require.Empty(t, past.GetAgeSeconds())
	require.Empty(t, left)
}

func TestACSVInOrderWhoseClockJumpsSaysSo(t *testing.T) {
	var file strings.Builder
	file.WriteString("arrival,queue,seconds,wait,cpu\n")
	for i := range 20 {
		at := 1_000_000 + 100*i
		if i == 7 {
			at = 5
		}
		fmt.Fprintf(&file, "%d,lab,60,%d,1\n", at, i)
	}
	history, err := ReadCSV("jobs.csv", strings.NewReader(file.String()), Tolerant)
	require.NoError(t, err)
	require.Equal(t, []string{
		"jobs.csv: 1 job arrives a day or more before the job of the line above, as if the clock had jumped; the first is line 9",
	}, history.Notes)
	require.Equal(t, int64(19), history.Jobs[19].Wait)
	require.True(t, history.Jobs[19].Waited)
}

func TestAJobThatHasNotEndedIsUnfinishedUnlessTheSnapshotHasIt(t *testing.T) {
	l, err := ledger.New(ledger.Options{})
	require.NoError(t, err)
	follow := func(at int64, names ...string) {
		s := &apportionv1.Snapshot{Dimensions: []string{"cpu"}, Queues: []*apportionv1.Queue{{Name: "lab"}}}
		for _, name := range names {
			s.Jobs = append(s.Jobs, &apportionv1.Job{Uid: name, Queue: "lab", Owner: "ann", CreateTime: 500e9, Groups: []*apportionv1.TaskGroup{{
				Request: &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{2000}},
				Tasks:   []*apportionv1.Task{{Uid: name, Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING}},
			}}})
		}
		l.Follow(s, at)
	}
	follow(1000, "a", "b", "c")
	follow(1060, "b", "c")
	follow(1090, "b", "c")
	read := OfLedger("usage.ledger", l)
	require.Equal(t, []string{"usage.ledger: 2 jobs had not ended"}, read.Notes)
	snapshot := lookup.Of(&apportionv1.Snapshot{
		Dimensions: []string{"cpu"}, Queues: []*apportionv1.Queue{{Name: "lab"}}, Jobs: []*apportionv1.Job{{Uid: "c", Queue: "lab"}},
	})
	past, left := read.Past(snapshot, time.Unix(2000, 0))
	require.Empty(t, left)
	require.Equal(t, []uint64{1500, 1500}, past.GetAgeSeconds())
	require.Equal(t, []uint64{1, 90}, past.GetRunSeconds())
	require.Equal(t, []uint64{500, 500}, past.GetWaitSeconds())
	require.Equal(t, []uint32{1}, past.GetUnfinishedJobs())
	require.Equal(t, "ann", past.GetKinds()[0].GetOwner())
}
