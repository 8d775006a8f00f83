package trace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/ledger"
)

func TestAJobThatRunsTwiceAtTheSameTimeIsNoted(t *testing.T) {
	const dated, plain = "arrival,job,queue,seconds,wait,cpu\n", "arrival,job,queue,seconds,cpu\n"
	for name, c := range map[string]struct {
		lines string
		want  []string
	}{
		"two runs that overlap": {
			dated + "2026-03-02T08:00:00Z,a,lab,600,60,1\n2026-03-02T08:01:00Z,b,lab,60,0,1\n2026-03-02T08:10:00Z,a,lab,60,0,1\n",
			[]string{`jobs.csv: 1 job runs twice at the same time, as if a line were wrong; the first is "a", in lines 2 and 4`},
		},
		"a run after the other":            {dated + "2026-03-02T08:00:00Z,a,lab,600,60,1\n2026-03-02T08:11:00Z,a,lab,60,0,1\n", nil},
		"a wait until the other has ended": {dated + "2026-03-02T08:00:00Z,a,lab,600,0,1\n2026-03-02T08:05:00Z,a,lab,60,300,1\n", nil},
		"the later run in the first line": {
			plain + "500,a,lab,60,1\n0,b,lab,60,1\n0,a,lab,600,1\n30,b,lab,5,1\n",
			[]string{`jobs.csv: 2 jobs run twice at the same time, as if a line were wrong; the first is "a", in lines 2 and 4`},
		},
		"two further lines, none with the first": {
			plain + "0,a,lab,60,1\n100,a,lab,60,1\n120,a,lab,10,1\n",
			[]string{`jobs.csv: 1 job runs twice at the same time, as if a line were wrong; the first is "a", in lines 3 and 4`},
		},
		"a line that has other faults":         {plain + "0,a,lab,60,1\n30,a,lab,-5,1\n", nil},
		"other jobs of the queue at that time": {plain + "0,a,lab,60,1000\n30,b,lab,60,1000\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := ReadCSV("jobs.csv", strings.NewReader(c.lines), Tolerant)
			require.NoError(t, err)
			require.Equal(t, c.want, read.Notes)
		})
	}
}

func TestAJobOfALogThatRunsTwiceAtTheSameTimeIsNoted(t *testing.T) {
	line := func(number, submit, wait, run int) string {
		return fmt.Sprintf("%d %d %d %d 1 -1 -1 1 -1 -1 1 1 1 -1 1 1 -1 -1\n", number, submit, wait, run)
	}
	swf := &SWF{Processor: []Amount{{"cpu", 1000}}, Strictness: Tolerant}
	read, err := swf.Read("log.swf", strings.NewReader("; MaxJobs: 4\n"+line(1, 0, 10, 50)+line(2, 10, -1, 5)+line(2, 20, -1, 5)+line(1, 30, 29, 5)))
	require.NoError(t, err)
	require.Len(t, read.Jobs, 2)
	require.Equal(t, []string{`log.swf: 1 job runs twice at the same time, as if a line were wrong; the first is "job-1", in lines 2 and 5`}, read.Notes)
	require.Equal(t, []string{"log.swf: 2 lines are left out because of job number; the first is line 4: job 2 is in line 3 already"}, read.Faulty.Summary())
}

func TestAJobOfALedgerThatRunsTwiceAtTheSameTimeIsNoted(t *testing.T) {
	follow := func(at ...int64) *ledger.Ledger {
		l, err := ledger.New(ledger.Options{})
		require.NoError(t, err)
		for i, at := range at {
			s := &apportionv1.Snapshot{Dimensions: []string{"cpu"}, Queues: []*apportionv1.Queue{{Name: "lab"}}}
			if i%2 == 0 {
				s.Jobs = []*apportionv1.Job{{Uid: "a", Queue: "lab", Groups: []*apportionv1.TaskGroup{{
					Request: &apportionv1.Resource{Dimensions: []uint32{0}, Amounts: []float64{2000}},
					Tasks:   []*apportionv1.Task{{Uid: "a-0", Status: apportionv1.TaskStatus_TASK_STATUS_RUNNING}},
				}}}}
			}
			l.Follow(s, at)
		}
		return l
	}
	runs := func(names ...[2]int64) []ledger.Job {
		var jobs []ledger.Job
		for _, times := range names {
			jobs = append(jobs, ledger.Job{Name: "a", Began: times[0], Ended: times[1]})
		}
		return jobs
	}
	require.Empty(t, OfLedger("usage.ledger", follow(1000, 1060, 1090, 1120)).Notes, "it ended and began again")
	for _, c := range []struct {
		jobs []ledger.Job
		want []string
	}{
		{runs([2]int64{1000, 1060}, [2]int64{1060, 1090}), nil},
		{runs([2]int64{1000, 1060}, [2]int64{1005, 1060}), []string{`usage.ledger: 1 job runs twice at the same time, as if its start were recorded twice; the first is "a"`}},
	} {
		read := &Trace{}
		noteTwice("usage.ledger", read, c.jobs)
		require.Equal(t, c.want, read.Notes)
	}
}

// TestOverlapsAreThoseOfEveryPairOfRuns compares with all pairs.
func TestOverlapsAreThoseOfEveryPairOfRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var firsts []run
		var found overlaps
		all := map[int][]run{}
		for line := range rapid.IntRange(1, 20).Draw(t, "lines") {
			of := rapid.IntRange(0, len(firsts)).Draw(t, "job")
			from := rapid.Int64Range(0, 20).Draw(t, "from")
			one := run{of, line, from, from + rapid.Int64Range(1, 9).Draw(t, "seconds")}
			if of == len(firsts) {
				firsts = append(firsts, one)
			} else {
				found.add(one)
			}
			all[of] = append(all[of], one)
		}
		want := 0
		for _, runs := range all {
			overlap := false
			for i, l := range runs {
				for _, r := range runs[:i] {
					overlap = overlap || l.from < r.until && r.from < l.until
				}
			}
			if overlap {
				want++
			}
		}
		got, pair := found.found(func(of int) run { return firsts[of] })
		require.Equal(t, want, got)
		if want > 0 {
			require.Equal(t, pair[0].of, pair[1].of)
			require.Less(t, pair[0].line, pair[1].line)
			require.True(t, pair[0].from < pair[1].until && pair[1].from < pair[0].until)
		}
	})
}

func TestTheRunsThatAreComparedAreBounded(t *testing.T) {
	var o overlaps
	for range mostRepeated + 10 {
		o.add(run{0, 1, 5, 6})
	}
	require.Len(t, o.repeated, mostRepeated)
	n, _ := o.found(func(int) run { return run{0, 0, 0, 1} })
	require.Equal(t, 1, n)
}
