package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// report writes a comparison: the whole day queue by queue, then the shares over time.
func report(w io.Writer, c *Cluster, trace []Submission, results []*Result) {
	fmt.Fprintf(w, "%d jobs in %s on %d GPUs, %d queues\n\n", len(trace), clock(trace[len(trace)-1].Arrival), c.gpus(), len(c.Queues))
	reportDay(w, c, trace, results)
	reportQueues(w, c, results)
	for _, result := range results {
		reportCourse(w, c, result)
	}
}

// reportDay is the cluster as its owner sees it.
func reportDay(w io.Writer, c *Cluster, trace []Submission, results []*Result) {
	from, to := trace[0].Arrival, trace[len(trace)-1].Arrival
	fmt.Fprintf(w, "THE DAY (GPUs in use from the first arrival to the last, and until all is done)\n")
	table := newTable(w)
	table.row("policy", "in use", "until done", "all done", "evictions",
		"GPU h lost", "GPU h short", "GPU h wasted", "mean wait", "cycles", "repeats")
	for _, result := range results {
		lost, short := 0.0, 0.0
		var waits []int64
		for _, f := range result.figures(c) {
			lost, short, waits = lost+f.LostHours, short+f.ShortHours, append(waits, f.Waits...)
		}
		table.row(result.Policy,
			percent(result.utilisation(c, from, max(to, from+1))), percent(result.utilisation(c, from, result.end())), clock(result.end()),
			len(result.Evictions), tenth(lost), tenth(short), tenth(result.wasted()), span(mean(waits)), result.Cycles, result.Repeats)
	}
	table.end()
}

// reportQueues is the day as the owners of the queues see it.
func reportQueues(w io.Writer, c *Cluster, results []*Result) {
	fmt.Fprintf(w, "THE QUEUES (wait until the job's minimum runs)\n")
	table := newTable(w)
	table.row("queue", "policy", "jobs", "mean wait", "median", "95 %", "longest",
		"GPU h", "GPU h short", "reclaimed", "preempted", "GPU h lost")
	for q := range c.Queues {
		for _, result := range results {
			f := result.figures(c)[q]
			table.row(c.Queues[q].Name, result.Policy, len(f.Waits),
				span(mean(f.Waits)), span(quantile(f.Waits, 50)), span(quantile(f.Waits, 95)), span(quantile(f.Waits, 100)),
				tenth(f.GPUHours), tenth(f.ShortHours), f.Reclaimed, f.Preempted, tenth(f.LostHours))
		}
	}
	table.end()
}

// reportCourse writes the shares over time: the part of the GPUs that a queue is entitled to which it uses.
func reportCourse(w io.Writer, c *Cluster, result *Result) {
	fmt.Fprintf(w, "SHARES UNDER %s (GPUs in use / entitled to)\n", result.Policy)
	table := newTable(w)
	header := []any{"time"}
	for q := range c.Queues {
		header = append(header, c.Queues[q].Name)
	}
	table.row(append(header, "idle")...)
	for moment := int64(0); moment <= result.end(); moment += 2 * hour {
		row, idle := []any{clock(moment)}, c.gpus()
		for q := range c.Queues {
			holding := Holding{}
			if sample := result.at(moment); sample != nil {
				holding = sample.Queues[q]
			}
			row = append(row, fmt.Sprintf("%d / %s", holding.Used, tenth(holding.Entitled)))
			idle -= holding.Used
		}
		table.row(append(row, idle)...)
	}
	table.end()
}

// table aligns columns to the right.
type table struct{ writer *tabwriter.Writer }

func newTable(w io.Writer) table {
	return table{tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)}
}

func (t table) row(cells ...any) {
	for _, cell := range cells {
		fmt.Fprintf(t.writer, "%v\t", cell)
	}
	fmt.Fprintln(t.writer)
}

func (t table) end() {
	fmt.Fprintln(t.writer)
	_ = t.writer.Flush()
}

func clock(second int64) string   { return fmt.Sprintf("%d:%02d", second/hour, second%hour/minute) }
func span(seconds int64) string   { return fmt.Sprintf("%d min", (seconds+minute/2)/minute) }
func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }
func tenth(value float64) string  { return fmt.Sprintf("%.1f", value) }
