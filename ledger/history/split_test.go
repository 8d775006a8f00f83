package history_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/ledger"
	"github.com/apportion/apportion/ledger/history"
)

// ran is a task of a history as a plain sum reads it: hours are whole.
type ran struct {
	task, queue, owner string
	start, end, amount int64
}

// drawn draws tasks, few of which have the same name, of which none runs twice at once. Some have no end.
func drawn(t *rapid.T) []ran {
	var out []ran
	next := map[string]int64{}
	for range rapid.IntRange(1, 40).Draw(t, "tasks") {
		task := fmt.Sprint(rapid.IntRange(1, 15).Draw(t, "task"))
		if next[task] < 0 {
			continue
		}
		one := ran{
			task: task, queue: rapid.SampledFrom([]string{"a", "b", "root"}).Draw(t, "queue"),
			owner: rapid.SampledFrom([]string{"", "ann"}).Draw(t, "owner"), amount: rapid.Int64Range(1, 40).Draw(t, "amount"),
			start: next[task] + rapid.Int64Range(0, 900).Draw(t, "start"),
		}
		one.end = one.start + rapid.Int64Range(0, 400).Draw(t, "length")
		if next[task] = one.end + 1; rapid.IntRange(0, 9).Draw(t, "runs") == 0 {
			one.end, next[task] = -1, -1
		}
		out = append(out, one)
	}
	return out
}

var first = time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)

func at(hour int64) string {
	if hour < 0 {
		return "Unknown"
	}
	return first.Add(time.Duration(hour) * time.Hour).Format("2006-01-02T15:04:05")
}

// asOf is the hour at which all histories were written.
const asOf = 5000

func written(format history.Format, rows []ran) string {
	var b strings.Builder
	b.WriteString(map[history.Format]string{
		history.Slurm: "JobID|Cluster|Account|User|Start|End|AllocTRES\n", history.CSV: "task,queue,owner,start,end,nvidia.com/gpu\n",
	}[format])
	for _, r := range rows {
		if format == history.Slurm {
			fmt.Fprintf(&b, "%s|north|%s|%s|%s|%s|gres/gpu=%d\n", r.task, r.queue, r.owner, at(r.start), at(r.end), r.amount)
			continue
		}
		fmt.Fprintf(&b, "%s,%s,%s,%s,%s,%d\n", r.task, r.queue, r.owner, at(r.start), at(r.end), r.amount)
	}
	return b.String()
}

// imported imports the parts of a history, each by itself, into one ledger, and returns what queues and owners used, in hours.
func imported(t *rapid.T, format history.Format, o history.Options, parts []string) map[ledger.Line]int64 {
	to, err := ledger.New(ledger.Options{Retain: 2000})
	require.NoError(t, err)
	for _, part := range parts {
		from, err := ledger.New(ledger.Options{Retain: 2000})
		require.NoError(t, err)
		report, err := history.Read(format, strings.NewReader(part), o, from)
		require.NoError(t, err)
		require.Empty(t, report.Bad)
		notes, err := history.Import(to, from)
		require.NoError(t, err)
		for _, note := range notes {
			// A history that was written before the end says that the task ran until then, also beside its next run.
			require.Contains(t, note, "ran twice")
		}
	}
	out := map[ledger.Line]int64{}
	if begin, end, some := to.Span(); some {
		for line, used := range to.Spent(begin, end+1) {
			out[line] = used[0] / 3600
		}
	}
	return out
}

func TestAnySplitOfAHistoryInAnyOrderGivesTheSameSums(t *testing.T) {
	o := history.Options{Now: first.Add(9000 * time.Hour).Unix(), AsOf: first.Add(asOf * time.Hour).Unix()}
	rapid.Check(t, func(t *rapid.T) {
		rows := drawn(t)
		want := map[ledger.Line]int64{}
		for _, r := range rows {
			if r.end < 0 {
				r.end = max(r.start, asOf)
			}
			hours := r.amount * (r.end - r.start)
			if hours == 0 {
				continue
			}
			want[ledger.Line{Queue: r.queue, Owner: r.owner, Owned: true}] += hours
			want[ledger.Line{Queue: "root"}] += hours
			if r.queue != "root" {
				want[ledger.Line{Queue: r.queue}] += hours
			}
		}
		format := rapid.SampledFrom([]history.Format{history.Slurm, history.CSV}).Draw(t, "format")
		var parts [5][]ran
		for _, r := range rapid.Permutation(rows).Draw(t, "order") {
			// A row is in one part or in several.
			for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 4), 1, 3, rapid.ID[int]).Draw(t, "parts") {
				// An earlier history does not have the end of some rows.
				if rapid.IntRange(0, 3).Draw(t, "early") == 0 && r.end >= 0 {
					early := r
					early.end = -1
					parts[(n+1)%5] = append(parts[(n+1)%5], early)
				}
				parts[n] = append(parts[n], r)
			}
		}
		var texts []string
		for _, part := range parts {
			texts = append(texts, written(format, part))
		}
		require.Equal(t, want, imported(t, format, o, texts))
	})
}

func TestAnySplitOfTheSeriesOfPrometheusGivesTheSameSums(t *testing.T) {
	o := history.Options{Now: first.Add(9000 * time.Hour).Unix(), Metric: "nvidia.com/gpu", QueueLabel: "queue", OwnerLabel: "user", Step: 3600}
	rapid.Check(t, func(t *rapid.T) {
		pods := []string{`"queue":"a"`, `"queue":"a","pod":"x"`, `"queue":"a","pod":"y","zone":"1"`, `"queue":"b","user":"ann","pod":"x"`}
		want := map[ledger.Line]int64{}
		var parts [4][]string
		for n, labels := range pods {
			var samples [4][]string
			for hour := range rapid.Int64Range(0, 30).Draw(t, "samples") {
				value := rapid.Int64Range(0, 9).Draw(t, "value")
				line := ledger.Line{Queue: "a", Owned: true}
				if n == 3 {
					line = ledger.Line{Queue: "b", Owner: "ann", Owned: true}
				}
				for _, to := range []ledger.Line{line, {Queue: line.Queue}, {Queue: "root"}} {
					if value > 0 {
						want[to] += value
					}
				}
				for _, in := range rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 1, 4, rapid.ID[int]).Draw(t, "parts") {
					samples[in] = append(samples[in], fmt.Sprintf(`[%d,"%d"]`, first.Unix()+3600*hour, value))
				}
			}
			for in, values := range samples {
				parts[in] = append(parts[in], fmt.Sprintf(`{"metric":{%s},"values":[%s]}`, labels, strings.Join(values, ",")))
			}
		}
		var texts []string
		for _, part := range rapid.Permutation(parts[:]).Draw(t, "order") {
			texts = append(texts, `{"status":"success","data":{"resultType":"matrix","result":[`+strings.Join(part, ",")+`]}}`)
		}
		require.Equal(t, want, imported(t, history.Prometheus, o, texts))
	})
}

func TestSamplesOfAnotherGridCountOnce(t *testing.T) {
	for _, steps := range [][2]int64{{300, 60}, {60, 300}, {300, 420}, {300, 300}} {
		to, err := ledger.New(ledger.Options{})
		require.NoError(t, err)
		for i, step := range steps {
			var values []string
			for at := int64(i) * 30; at+step <= 4200; at += step {
				values = append(values, fmt.Sprintf(`[%d,"2"]`, first.Unix()+at))
			}
			from, err := ledger.New(ledger.Options{})
			require.NoError(t, err)
			text := `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"queue_name":"a"},"values":[` + strings.Join(values, ",") + `]}]}}`
			o := labels
			o.Step = step
			_, err = history.Read(history.Prometheus, strings.NewReader(text), o, from)
			require.NoError(t, err)
			_, err = history.Import(to, from)
			require.NoError(t, err)
		}
		begin, end, _ := to.Span()
		// The last sample of the longer step ends where one of the other grid begins, and that one ends sooner.
		require.InDelta(t, 2*4200, to.Spent(begin, end+1)[ledger.Line{Queue: "a"}][0], 2*300, steps)
	}
}

// TestTheStepIsFoundOnlyWhereAllSamplesAgree: two hours of samples every 5 minutes and one of two samples are 3 hours, or one with a gap.
func TestTheStepIsFoundOnlyWhereAllSamplesAgree(t *testing.T) {
	series := func(label string, times ...int64) string {
		values := make([]string, len(times))
		for i, at := range times {
			values[i] = fmt.Sprintf(`[%d.781,"1"]`, first.Unix()+60*at)
		}
		return `{"metric":{"queue_name":"` + label + `"},"values":[` + strings.Join(values, ",") + `]}`
	}
	var fine []int64
	for at := int64(0); at < 120; at += 5 {
		fine = append(fine, at)
	}
	const apart = "samples are 5m apart and 30m"
	for name, c := range map[string]struct {
		result string
		step   int64
		want   int64
		fault  string
	}{
		"one step":              {series("a", fine...), 0, 120, ""},
		"a series of two steps": {series("a", append(slices.Clone(fine), 120, 150)...), 0, 0, apart},
		"a series of two steps, the longer first": {series("a", append([]int64{-60, -30}, fine...)...), 0, 0, apart},
		"the step is stated":                      {series("a", append(slices.Clone(fine), 120, 150)...), 300, 130, ""},
		"a series for each step":                  {series("a", fine...) + "," + series("a", 120, 150), 0, 0, apart},
		"not in order":                            {series("a", 10, 0, 5), 0, 15, ""},
		"one sample":                              {series("a", 0), 0, 0, "state the step"},
		"none":                                    {series("a"), 0, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			to, err := ledger.New(ledger.Options{})
			require.NoError(t, err)
			o := labels
			o.Step = c.step
			text := `{"status":"success","data":{"resultType":"matrix","result":[` + c.result + `]}}`
			_, err = history.Read(history.Prometheus, strings.NewReader(text), o, to)
			if c.fault != "" {
				require.ErrorContains(t, err, c.fault)
				return
			}
			require.NoError(t, err)
			begin, end, _ := to.Span()
			used := append(to.Spent(begin, end+1)[ledger.Line{Queue: "a"}], 0)[0]
			require.Equal(t, 60*c.want, used)
		})
	}
}

func TestWhatLiesInClosedEpochsIsSaid(t *testing.T) {
	o := history.Options{Now: first.Add(9000 * time.Hour).Unix()}
	read := func(rows ...ran) *ledger.Ledger {
		l, err := ledger.New(ledger.Options{})
		require.NoError(t, err)
		_, err = history.Read(history.CSV, strings.NewReader(written(history.CSV, rows)), o, l)
		require.NoError(t, err)
		return l
	}
	to := read(ran{"x", "a", "", 1000, 1010, 1}, ran{"y", "a", "", 1000, 1010, 1}, ran{"z", "a", "", 0, 12, 1})
	to.Seal()
	notes, err := history.Import(to, read(ran{"z", "a", "", 0, 12, 1}, ran{"early", "a", "", 100, 110, 2}, ran{"long", "a", "", 900, 1000, 1}))
	require.NoError(t, err)
	require.Equal(t, []string{"3 tasks, 1 of them only in part, lie in epochs before 2026-04-11T06:00:00Z, which are closed: what the ledger has of " +
		"them stays, and this is left out: 122.0 hours of nvidia.com/gpu"}, notes)
	notes, err = history.Import(to, read(ran{"x", "b", "", 1000, 1010, 1}, ran{"y", "a", "", 1000, 1012, 1}, ran{"y", "a", "", 1005, 1006, 1}))
	require.NoError(t, err)
	require.Equal(t, []string{
		"of 2 tasks the ledger knew another queue, owner, amount or end: one of both counts",
		"1 task ran twice at the same time, and both count: y (jobs of several clusters need the column Cluster)",
	}, notes)
}

func TestAJobWithAndWithoutItsClusterIsRefused(t *testing.T) {
	o := history.Options{Now: first.Add(9000 * time.Hour).Unix()}
	read := func(text string) *ledger.Ledger {
		l, err := ledger.New(ledger.Options{})
		require.NoError(t, err)
		_, err = history.Read(history.Slurm, strings.NewReader(text), o, l)
		require.NoError(t, err)
		return l
	}
	with := read(written(history.Slurm, []ran{{"1", "a", "", 0, 1, 1}}))
	without := read("JobID|Account|User|Start|End|AllocTRES\n1|a||2026-03-01T00:00:00|2026-03-01T01:00:00|gres/gpu=1\n")
	_, err := history.Import(with, without)
	require.ErrorContains(t, err, "import all with the column Cluster")
}
