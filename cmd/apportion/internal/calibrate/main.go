// Command calibrate measures how often forecasts hold. It rehearses traces under policies, asks when jobs start that wait in the later
// weeks, with the jobs that had ended by then as the history, and compares with when they started.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// policies are the presets that are rehearsed. Volcano evicts only where its configuration says so; fair always does.
var policies = []string{"proportion", "capacity", "drf-hierarchical", "fair"}

// settings are what a measurement is asked for.
type settings struct {
	runs, seeds int
	first       uint64
	step        int64
	only, plot  string
	alone       bool
	log         logged
}

func main() {
	var s settings
	flag.IntVar(&s.runs, "runs", 100, "runs of each forecast")
	flag.IntVar(&s.seeds, "seeds", 16, "traces of each shape")
	flag.Uint64Var(&s.first, "first", reported, "seed of the first trace; those below are for changes of the model to be tried on")
	flag.Int64Var(&s.step, "step", 8*hour, "seconds between two forecasts")
	flag.StringVar(&s.only, "only", "", "traces, policies or TRACE/POLICY, separated by commas; only these rows are measured")
	flag.StringVar(&s.plot, "plot", "", "file of a plot of the chances that were stated against those that held")
	flag.BoolVar(&s.alone, "alone", false, "measure the model alone, without the correction by forecasts of the past")
	s.log.register(flag.CommandLine)
	flag.Parse()
	// Runs leave much garbage and keep little: a sixth less processor time.
	debug.SetGCPercent(400)
	if err := calibrate(context.Background(), &s); err != nil {
		fmt.Fprintln(os.Stderr, "calibrate:", err)
		os.Exit(1)
	}
}

// reported is the first seed of the traces that docs/forecast.md reports.
const reported = 101

// row is a line of the table.
type row struct {
	trace, policy string
	score

	parts [][]asked
}

// measured says whether the words of a setting name a row.
func (s *settings) measured(names ...string) bool {
	names = append(names, strings.Join(names, "/"))
	return s.only == "" || slices.ContainsFunc(strings.Split(s.only, ","), func(word string) bool { return slices.Contains(names, word) })
}

func calibrate(ctx context.Context, s *settings) error {
	rows, horizon, err := s.rows(ctx)
	if err != nil {
		return err
	}
	for _, r := range rows {
		r.score = scoreOf(slices.Concat(r.parts...), horizon)
	}
	fmt.Println("| trace | policy | forecasts | P50 held | P90 held | P90 open | loss | place × drain | mean wait | changes |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, r := range rows {
		fmt.Printf("| %s | %s | %d | %s | %s | %.0f %% | %.2f | %.2f | %.2f | %.0f %% |\n",
			r.trace, r.policy, r.n, r.held[p50], r.held[p90], 100*r.open, r.loss, r.drained, r.mean, 100*r.drifts)
	}
	if s.plot == "" {
		return nil
	}
	return draw(s.plot, rows)
}

// String is a share in percent with its standard error.
func (s share) String() string {
	switch {
	case s.n == 0:
		return "–"
	case math.IsNaN(s.err):
		return fmt.Sprintf("%.0f %%", 100*s.part)
	}
	return fmt.Sprintf("%.0f ± %.0f %%", 100*s.part, 100*s.err)
}

// rows asks for all forecasts. The horizon is that of all.
func (s *settings) rows(ctx context.Context) ([]*row, int64, error) {
	if s.log.file != "" {
		return s.logged(ctx)
	}
	snapshot, err := cluster()
	if err != nil {
		return nil, 0, err
	}
	var rows []*row
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, of := range slices.Concat(shapes, drifting) {
		for _, policy := range policies {
			if !s.measured(of.name, policy) || i >= len(shapes) && !strings.Contains(s.only, of.name) {
				continue
			}
			out := &row{trace: of.name, policy: policy, parts: make([][]asked, s.seeds)}
			rows = append(rows, out)
			for part := range out.parts {
				group.Go(func() error {
					t := trial{
						snapshot: snapshot, trace: of.draw(s.first + uint64(part)), part: part, policy: policy, runs: s.runs,
						alone: s.alone, train: trains * 7 * day, until: asks * 7 * day, horizon: (weeks - asks) * 7 * day,
						step: s.step, resource: gpu,
					}
					var err error
					if out.parts[part], err = t.run(ctx); err != nil {
						return fmt.Errorf("%s under %s: %w", out.trace, policy, err)
					}
					return nil
				})
			}
		}
	}
	return rows, (weeks - asks) * 7 * day, group.Wait()
}
