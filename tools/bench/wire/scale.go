package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/apportion/apportion/tools/bench/internal/sample"
)

// scale shows how the cost of a shares call grows with the snapshot, from a thousand tasks to a million: stage by stage in one process, and
// as a whole over gRPC. It prints a table, draws a plot, and ends with one line of its main figures.
type scale struct {
	largest, rounds, depth int
	policy, plot           string
}

// sizes are numbers of tasks; three a decade show where a line bends.
var sizes = []int{1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000}

func runScale(ctx context.Context, args []string) error {
	var s scale
	flags := flag.NewFlagSet("wire scale", flag.ExitOnError)
	flags.IntVar(&s.largest, "max", sizes[len(sizes)-1], "the largest number of tasks")
	flags.IntVar(&s.rounds, "rounds", 5, "how often every size is measured")
	flags.IntVar(&s.depth, "depth", 0, "levels of the tree of queues")
	flags.StringVar(&s.policy, "policy", "proportion", "proportion, capacity, capacity-hierarchical or default")
	flags.StringVar(&s.plot, "plot", "tools/bench/wire/report/scale.svg", "`FILE` of the plot")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return s.run(ctx)
}

func (s *scale) run(ctx context.Context) error {
	fmt.Printf("%d CPUs, %s %s/%s, policy %s, median of %d rounds\n\n",
		runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, s.policy, s.rounds)
	var points []point
	for _, tasks := range sizes {
		if tasks > s.largest {
			break
		}
		p, err := s.measure(ctx, tasks)
		if err != nil {
			return fmt.Errorf("%d tasks: %w", tasks, err)
		}
		points = append(points, p)
	}
	if err := report(points); err != nil {
		return err
	}
	if err := plot(s.plot, points); err != nil {
		return err
	}
	fmt.Printf("\nPlot: %s\n\n", s.plot)
	line := sample.NewLine("bench-scale")
	for _, p := range points {
		if name, ok := decades[p.tasks]; ok {
			line.Add("call_"+name+"_ms", p.ms[wholeCall])
			line.Add("call_"+name+"_ns_per_task", p.ms[wholeCall]*1e6/float64(p.tasks))
		}
	}
	if n := len(points); n > 2 {
		line.Add("last_decade_growth", points[n-1].ms[wholeCall]/points[n-3].ms[wholeCall])
		line.Add("peak_to_request", float64(points[n-1].peak)/float64(points[n-1].bytes))
	}
	fmt.Println(line)
	return nil
}

var decades = map[int]string{1000: "1k", 10_000: "10k", 100_000: "100k", 1_000_000: "1m"}

// report prints the table.
func report(points []point) error {
	table := sample.NewTable("tasks", "jobs", "queues", "request MB", "decode ms", "open ms", "ask ms", "encode ms", "call over gRPC ms",
		"us a task", "server peak MB", "peak / request")
	for _, p := range points {
		table.Add(p.tasks, p.tasks/10, max(p.tasks/100, 1), float64(p.bytes)/1e6, p.ms[compile], p.ms[open], p.ms[ask], p.ms[encode],
			p.ms[wholeCall], p.ms[wholeCall]*1000/float64(p.tasks), float64(p.peak)/1e6, float64(p.peak)/float64(p.bytes))
	}
	_, err := table.WriteTo(os.Stdout)
	return err
}

// plot draws the points into a file.
func plot(path string, points []point) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(draw(file, points), file.Close())
}
