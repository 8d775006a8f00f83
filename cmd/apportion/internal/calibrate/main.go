// Command calibrate measures how often forecasts hold. It rehearses traces under policies, asks when jobs start that wait in the later
// weeks, with the jobs that had ended by then as the history, and compares with when they started.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// policies are the presets that are rehearsed. Volcano evicts only where its configuration says so; fair always does.
var policies = []string{"proportion", "capacity", "drf-hierarchical", "fair"}

func main() {
	runs := flag.Int("runs", 100, "runs of each forecast")
	step := flag.Int64("step", 3*hour, "seconds between two forecasts")
	flag.Parse()
	if err := calibrate(context.Background(), *runs, *step); err != nil {
		fmt.Fprintln(os.Stderr, "calibrate:", err)
		os.Exit(1)
	}
}

// row is a line of the table.
type row struct {
	trace, policy string
	score
}

func calibrate(ctx context.Context, runs int, step int64) error {
	snapshot, err := cluster()
	if err != nil {
		return err
	}
	var rows []*row
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range shapes {
		drawn := shapes[i].draw(uint64(i + 1))
		for _, policy := range policies {
			out := &row{trace: shapes[i].name, policy: policy}
			rows = append(rows, out)
			group.Go(func() error {
				t := trial{snapshot: snapshot, trace: drawn, policy: policy, train: trains * 7 * day, step: step, runs: runs}
				list, err := t.run(ctx)
				if err != nil {
					return fmt.Errorf("%s under %s: %w", out.trace, policy, err)
				}
				out.score = scoreOf(list)
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Println("| trace | policy | forecasts | P50 held | P90 held | loss | place × drain | mean wait |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, r := range rows {
		fmt.Printf("| %s | %s | %d | %.0f %% | %.0f %% | %.2f | %.2f | %.2f |\n",
			r.trace, r.policy, r.n, 100*r.p50, 100*r.p90, r.loss, r.drained, r.mean)
	}
	return nil
}
