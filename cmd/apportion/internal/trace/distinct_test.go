package trace

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunsOfOneJobHaveNamesOfTheirOwn(t *testing.T) {
	run := func(name string, arrival, wait, seconds int64) Job {
		return Job{Name: name, Arrival: arrival, Wait: wait, Seconds: seconds, Waited: true}
	}
	for story, c := range map[string]struct{ jobs, want []Job }{
		"names differ": {[]Job{run("a", 0, 0, 5), run("b", 0, 0, 5)}, []Job{run("a", 0, 0, 5), run("b", 0, 0, 5)}},
		"a run after the other": {
			[]Job{run("a", 0, 10, 50), run("a", 0, 80, 5), run("b", 30, 0, 5), run("a", 0, 100, 5)},
			[]Job{run("a", 0, 10, 50), run("b", 30, 0, 5), run("a#2", 60, 20, 5), run("a#3", 85, 15, 5)},
		},
		"two runs at the same time":   {[]Job{run("a", 0, 10, 50), run("a", 0, 20, 5)}, []Job{run("a", 0, 10, 50), run("a#2", 0, 20, 5)}},
		"the name is there already":   {[]Job{run("a", 0, 0, 5), run("a#2", 0, 0, 5), run("a", 9, 0, 5)}, []Job{run("a", 0, 0, 5), run("a#2", 0, 0, 5), run("a#3", 9, 0, 5)}},
		"it is not known when it ran": {[]Job{{Name: "a", Seconds: 5}, {Name: "a", Seconds: 5}}, []Job{{Name: "a", Seconds: 5}, {Name: "a#2", Seconds: 5}}},
	} {
		trace := &Trace{Jobs: c.jobs}
		trace.Distinct()
		require.Equal(t, c.want, trace.Jobs, story)
		require.Equal(t, len(trace.Notes) > 0, story != "names differ", story)
	}
	trace := &Trace{Jobs: []Job{run("a", 0, 10, 50), run("a", 0, 80, 5)}}
	trace.Distinct()
	require.Equal(t, []string{`1 run of jobs that ran before has a number behind the name; the first is of "a"`}, trace.Notes)
}
