package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/ledger"
)

// Report says what was read.
type Report struct {
	// Rows read, Tasks that used something, and Skipped rows that used nothing, such as jobs that never started. The others are in Bad.
	Rows, Tasks, Skipped int
	// Running counts the tasks that still ran at AsOf, in Unix seconds, until when they count.
	Running int
	AsOf    int64
	// Bad counts the rows that could not be read by reason, with an example of each, and Noted those that count, by what is to say of them.
	Bad, Noted map[string]*Example
	// Found is the distance of two samples in seconds that was found; 0: it was stated, or the history has no samples.
	Found int64
	// Outside counts the rows of queues that the tree lacks.
	Outside map[string]int
}

// Example is a row of its kind, of which there are Count.
type Example struct {
	Count int
	Line  int
	Row   string
}

func (r *Report) bad(line int, row, reason string) { r.Bad = count(r.Bad, line, row, reason) }

func (r *Report) note(line int, row, text string) { r.Noted = count(r.Noted, line, row, text) }

func count(of map[string]*Example, line int, row, reason string) map[string]*Example {
	if of == nil {
		of = map[string]*Example{}
	}
	if of[reason] == nil {
		const longest = 120
		if len(row) > longest {
			row = strings.ToValidUTF8(row[:longest], "") + "…"
		}
		of[reason] = &Example{Line: line, Row: row}
	}
	of[reason].Count++
	return of
}

func (r *Report) outside(queue string) {
	if r.Outside == nil {
		r.Outside = map[string]int{}
	}
	r.Outside[queue]++
}

// Warnings tells of each reason how many rows were left out, with an example, and what is to say of those that count.
func (r *Report) Warnings() []string {
	var out []string
	for _, reason := range slices.Sorted(maps.Keys(r.Bad)) {
		e := r.Bad[reason]
		out = append(out, fmt.Sprintf("%s left out: %s, such as line %d: %q", rows(e.Count, "was", "were"), reason, e.Line, e.Row))
	}
	for _, text := range slices.Sorted(maps.Keys(r.Noted)) {
		e := r.Noted[text]
		out = append(out, fmt.Sprintf("of %s %s, such as line %d: %q", rows(e.Count, "", ""), text, e.Line, e.Row))
	}
	if len(r.Outside) > 0 {
		n := 0
		for _, of := range r.Outside {
			n += of
		}
		out = append(out, fmt.Sprintf("%s charged directly below the root, because the tree lacks the queue: %s", rows(n, "is", "are"),
			list(slices.Sorted(maps.Keys(r.Outside)))))
	}
	if r.Found > 0 {
		out = append(out, fmt.Sprintf("each sample counts for %s, the shortest distance of two: state the step if that is another",
			duration.Format(time.Duration(r.Found)*time.Second)))
	}
	if r.Running > 0 {
		out = append(out, fmt.Sprintf("%s no end: what still ran counts until %s, the time of the history; an end corrects it "+
			"in a later import", rows(r.Running, "has", "have"), time.Unix(r.AsOf, 0).UTC().Format(time.RFC3339)))
	}
	return out
}

// rows is a number of rows with the verb for one or several.
func rows(n int, one, several string) string {
	if n == 1 {
		return strings.TrimSpace("1 row " + one)
	}
	return strings.TrimSpace(fmt.Sprintf("%d rows %s", n, several))
}

// list names the first of some names.
func list(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Check returns an error if ledgers that are to become one have jobs of Slurm both with their clusters and without: then a job could count
// twice.
func Check(ledgers ...*ledger.Ledger) error {
	var named, bare string
	for _, l := range ledgers {
		for task := range l.Tasks {
			if rest, is := strings.CutPrefix(task, slurmTask); is && strings.Contains(rest, "/") {
				named = rest
			} else if is {
				bare = rest
			}
		}
	}
	if named != "" && bare != "" {
		return fmt.Errorf("there would be jobs of Slurm with their cluster (%s) and without (%s), so that one could count twice: "+
			"import all with the column Cluster, or all without it", named, bare)
	}
	return nil
}

// Import takes what histories said into the ledger of which they are a part, and returns what is to say of it.
func Import(to, from *ledger.Ledger) ([]string, error) {
	if err := Check(to, from); err != nil {
		return nil, err
	}
	done, err := to.Import(from, func(task string) bool { return strings.HasPrefix(task, sampled) })
	if err != nil {
		return nil, err
	}
	var out []string
	if n := done.Closed + done.Cut; n > 0 {
		out = append(out, fmt.Sprintf("%s, %d of them only in part, %s in epochs before %s, which are closed: what the ledger has of them "+
			"stays, and this is left out%s", tasks(n), done.Cut, map[bool]string{true: "lies", false: "lie"}[n == 1],
			time.Unix(done.Opens, 0).UTC().Format(time.RFC3339), hours(to.Options(), done.Lost)))
	}
	if n := done.Contradicting; n > 0 {
		out = append(out, fmt.Sprintf("of %s the ledger knew another queue, owner, amount or end: one of both counts", tasks(n)))
	}
	if n := len(done.Twice); n > 0 {
		out = append(out, fmt.Sprintf("%s ran twice at the same time, and both count: %s (jobs of several clusters need the "+
			"column Cluster)", tasks(n), list(done.Twice)))
	}
	return out, nil
}

func tasks(n int) string {
	if n == 1 {
		return "1 task"
	}
	return fmt.Sprintf("%d tasks", n)
}

// hours lists amounts in quantum-seconds after a colon.
func hours(o ledger.Options, of map[string]int64) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		n := float64(of[name]) * float64(o.Quantum(name)) / ledger.Unit(name) / 3600
		list = append(list, fmt.Sprintf("%.1f hours of %s", n, name))
	}
	if len(list) == 0 {
		return ""
	}
	return ": " + strings.Join(list, ", ")
}
