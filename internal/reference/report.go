package reference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Tally is the sum of results.
type Tally struct {
	Cases, Answers, Equal, Unsupported int
	// Failed counts cases that were not answered at all along some way.
	Failed int
	Unheld map[Rule]int
}

// Add adds a result.
func (t *Tally) Add(r *Result) {
	t.Cases++
	t.Answers += r.Answers
	t.Equal += r.Equal
	if r.Unsupported {
		t.Unsupported++
	} else if len(r.Failures) > 0 {
		t.Failed++
	}
	if t.Unheld == nil {
		t.Unheld = map[Rule]int{}
	}
	for rule, n := range r.Unheld {
		t.Unheld[rule] += n
	}
}

// Different is how many answers are not the recorded ones.
func (t *Tally) Different() int { return t.Answers - t.Equal }

// AllUnheld is how many answers nobody is held to.
func (t *Tally) AllUnheld() int {
	sum := 0
	for _, n := range t.Unheld {
		sum += n
	}
	return sum
}

// String is the line that sums up a run.
func (t *Tally) String() string {
	return fmt.Sprintf("reference: cases=%d answers=%d equal=%d different=%d unheld=%d unsupported=%d",
		t.Cases, t.Answers, t.Equal, t.Different(), t.AllUnheld(), t.Unsupported)
}

// Report writes a table of the profiles, and of each profile the first differences, at most that many; then a line that sums up. It
// returns the sum of all.
func Report(w io.Writer, results []*Result, ways []Way, most int) (Tally, error) {
	var all Tally
	groups := map[string]*Tally{}
	for _, r := range results {
		all.Add(r)
		group := r.Case.Group()
		if groups[group] == nil {
			groups[group] = &Tally{}
		}
		groups[group].Add(r)
	}
	names := slices.Sorted(maps.Keys(groups))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "profile\tcases\tanswers\tequal\tdifferent\tunsupported\tunheld")
	for _, name := range names {
		t := groups[name]
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%s\n", name, t.Cases, t.Answers, t.Equal, t.Different(), t.Unsupported, unheldText(t.Unheld))
	}
	if err := table.Flush(); err != nil {
		return all, err
	}
	for _, name := range names {
		writeDifferences(w, name, results, ways, most)
	}
	_, err := fmt.Fprintln(w, all.String())
	return all, err
}

// unheldText tells how many answers fall under each rule, the largest number first.
func unheldText(unheld map[Rule]int) string {
	rules := slices.SortedFunc(maps.Keys(unheld), func(a, b Rule) int {
		return cmp.Or(cmp.Compare(unheld[b], unheld[a]), cmp.Compare(a, b))
	})
	texts := make([]string, len(rules))
	for i, rule := range rules {
		texts[i] = fmt.Sprintf("%s %d", rule, unheld[rule])
	}
	if len(texts) == 0 {
		return "0"
	}
	return strings.Join(texts, ", ")
}

// writeDifferences writes the first differences of a profile.
func writeDifferences(w io.Writer, group string, results []*Result, ways []Way, most int) {
	written := 0
	for _, r := range results {
		if r.Case.Group() != group {
			continue
		}
		label := group + " " + r.Case.Label()
		for _, failure := range r.Failures {
			if written++; written <= most {
				fmt.Fprintf(w, "%s: %s\n", label, failure)
			}
		}
		if len(r.Failures) > 0 {
			continue
		}
		for _, d := range r.Differences {
			if written++; written <= most {
				fmt.Fprintf(w, "%s %s: want %s%s\n", label, d.Pointer, textOf(d.Want), gotText(d, ways))
			}
		}
	}
	if written > most && most > 0 {
		fmt.Fprintf(w, "%s: and %d more\n", group, written-most)
	}
}

// gotText tells what came along each way, once if it is the same.
func gotText(d Difference, ways []Way) string {
	texts := make([]string, len(d.Got))
	for i, got := range d.Got {
		texts[i] = textOf(got)
	}
	if len(slices.Compact(slices.Clone(texts))) == 1 {
		return ", got " + texts[0]
	}
	text := ""
	for i, way := range ways {
		text += fmt.Sprintf(", %s got %s", way.Name, texts[i])
	}
	return text
}

// longText is how much of a value is shown.
const longText = 300

// textOf shows a value of the recorded form.
func textOf(v any) string {
	switch v := v.(type) {
	case absent:
		return "nothing"
	case float64:
		if math.IsInf(v, 1) {
			return "unlimited"
		}
		return fmt.Sprint(v)
	case amounts:
		return fmt.Sprint(map[string]float64(v))
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(text) > longText {
		return string(text[:longText]) + "…"
	}
	return string(text)
}
