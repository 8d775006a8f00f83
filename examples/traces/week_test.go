// Package traces holds a sample trace of jobs, and draws it.
package traces

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write week.csv again")

// line is a job of the trace.
type line struct {
	arrival, seconds       int
	queue                  string
	priority               int
	tasks, least           int
	cpu, gibibytes, gpu, n int
}

// week draws a week of three teams, and of a queue for leftovers, who share the cluster of examples/clusters/research:
//
//   - vision trains in gangs of one or two nodes, mostly by day;
//   - language trains a few large gangs for long, and evaluates in small jobs;
//   - robotics sweeps parameters with elastic jobs, and has a deadline on Friday;
//   - scavenge takes whatever is left, in many small jobs.
func week() []line {
	const hour, day = 3600, 24 * 3600
	draw := rand.New(rand.NewPCG(21, 0))
	pick := func(choices ...int) int { return choices[draw.IntN(len(choices))] }
	between := func(low, high int) int { return low + draw.IntN(high-low+1) }
	byDay := func(days int) int { return draw.IntN(days)*day + between(8*hour, 19*hour) }
	var lines []line
	add := func(l line) {
		l.n = len(lines)
		l.cpu, l.gibibytes = 8*l.gpu, 90*l.gpu
		lines = append(lines, l)
	}
	for range 90 {
		tasks := pick(1, 1, 2)
		add(line{
			arrival: byDay(5), queue: "vision", priority: 1000, tasks: tasks, least: tasks, gpu: pick(4, 8, 8), seconds: between(1*hour, 7*hour),
		})
	}
	for range 12 {
		add(line{
			arrival: between(0, 5*day), queue: "language", priority: 1000, tasks: 4, least: 4, gpu: 8, seconds: between(8*hour, 18*hour),
		})
	}
	for range 80 {
		add(line{arrival: byDay(7), queue: "language", priority: 10000, tasks: 1, least: 1, gpu: pick(1, 2), seconds: between(hour/3, 2*hour)})
	}
	for i := range 60 {
		arrival := byDay(5)
		if i%3 == 0 {
			arrival = 4*day + between(6*hour, 16*hour)
		}
		add(line{arrival: arrival, queue: "robotics", priority: 1000, tasks: between(4, 16), least: 2, gpu: 1, seconds: between(hour, 5*hour)})
	}
	for range 160 {
		add(line{arrival: between(0, 7*day), queue: "scavenge", priority: 100, tasks: pick(1, 2, 4), least: 1, gpu: 1, seconds: between(hour, 6*hour)})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Or(cmp.Compare(a.arrival, b.arrival), cmp.Compare(a.n, b.n)) })
	return lines
}

func TestTheSampleWeekIsTheOneThatIsDrawn(t *testing.T) {
	var file bytes.Buffer
	file.WriteString("# A week of jobs for examples/clusters/research, drawn by week_test.go. docs/rehearse.md describes the columns.\n")
	w := csv.NewWriter(&file)
	require.NoError(t, w.Write([]string{"arrival", "job", "queue", "priority", "tasks", "min", "cpu", "memory", "gpu", "seconds"}))
	count := map[string]int{}
	for _, l := range week() {
		count[l.queue]++
		require.NoError(t, w.Write([]string{
			strconv.Itoa(l.arrival), fmt.Sprintf("%s-%03d", l.queue, count[l.queue]), l.queue, strconv.Itoa(l.priority), strconv.Itoa(l.tasks),
			strconv.Itoa(l.least), strconv.Itoa(l.cpu), strconv.Itoa(l.gibibytes) + "Gi", strconv.Itoa(l.gpu), strconv.Itoa(l.seconds),
		}))
	}
	w.Flush()
	require.NoError(t, w.Error())
	if *update {
		require.NoError(t, os.WriteFile("week.csv", file.Bytes(), 0o600))
	}
	kept, err := os.ReadFile("week.csv")
	require.NoError(t, err)
	require.Equal(t, string(kept), file.String(), "run the test with -update if this is meant")
}
