package reference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Tally is the sum of results.
type Tally struct {
	Cases, Answers, Equal, Unsupported int
	// Failed counts cases for which some way of asking gave no answer.
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

// Different is the number of answers that differ from the recorded ones.
func (t *Tally) Different() int { return t.Answers - t.Equal }

// AllUnheld is the number of answers that are not compared.
func (t *Tally) AllUnheld() int {
	sum := 0
	for _, n := range t.Unheld {
		sum += n
	}
	return sum
}

// Good reports whether something was compared, and every answer was the recorded one along every way.
func (t *Tally) Good() bool {
	return t.Answers > 0 && t.Different() == 0 && t.Unsupported == 0 && t.Failed == 0
}

// String is the line that sums up a run.
func (t *Tally) String() string {
	return fmt.Sprintf("reference: cases=%d answers=%d equal=%d different=%d unheld=%d unsupported=%d",
		t.Cases, t.Answers, t.Equal, t.Different(), t.AllUnheld(), t.Unsupported)
}

// Report writes a summary of results: a table of the profiles, the first differences of each profile up to a maximum number, and a line
// with the totals.
func Report(results []*Result, ways []Way, most int) (string, Tally) {
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
	var text strings.Builder
	fmt.Fprintf(&text, "%-22s %6s %8s %8s %9s %11s  %s\n", "profile", "cases", "answers", "equal", "different", "unsupported", "unheld")
	names := slices.Sorted(maps.Keys(groups))
	for _, name := range names {
		t := groups[name]
		fmt.Fprintf(&text, "%-22s %6d %8d %8d %9d %11d  %s\n",
			name, t.Cases, t.Answers, t.Equal, t.Different(), t.Unsupported, unheldText(t.Unheld))
	}
	for _, name := range names {
		writeDifferences(&text, name, results, ways, most)
	}
	fmt.Fprintln(&text, all.String())
	return text.String(), all
}

// unheldText returns the number of answers that fall under each rule, the largest number first.
func unheldText(unheld map[Rule]int) string {
	if len(unheld) == 0 {
		return "0"
	}
	rules := slices.SortedFunc(maps.Keys(unheld), func(a, b Rule) int {
		return cmp.Or(cmp.Compare(unheld[b], unheld[a]), cmp.Compare(a, b))
	})
	texts := make([]string, len(rules))
	for i, rule := range rules {
		texts[i] = fmt.Sprintf("%s %d", rule, unheld[rule])
	}
	return strings.Join(texts, ", ")
}

// writeDifferences writes the first differences of a profile. A case without an answer has only the reason.
func writeDifferences(text *strings.Builder, group string, results []*Result, ways []Way, most int) {
	var lines []string
	for _, r := range results {
		if r.Case.Group() != group {
			continue
		}
		label := group + " " + r.Case.Label()
		for _, failure := range r.Failures {
			lines = append(lines, label+": "+failure)
		}
		if len(r.Failures) > 0 {
			continue
		}
		for _, d := range r.Differences {
			lines = append(lines, fmt.Sprintf("%s %s: want %s, got %s", label, d.Pointer, textOf(d.Want), gotText(d, ways)))
		}
	}
	for _, line := range lines[:max(0, min(most, len(lines)))] {
		fmt.Fprintln(text, line)
	}
	if most > 0 && len(lines) > most {
		fmt.Fprintf(text, "%s: and %d more\n", group, len(lines)-most)
	}
}

// gotText returns the answer of each way of asking, once if all are equal.
func gotText(d Difference, ways []Way) string {
	texts := make([]string, len(d.Got))
	for i, got := range d.Got {
		texts[i] = textOf(got)
	}
	if len(slices.Compact(slices.Clone(texts))) == 1 {
		return texts[0]
	}
	for i, way := range ways {
		texts[i] += " by " + way.Name
	}
	return strings.Join(texts, ", ")
}

// longText is the largest number of bytes that is shown of a value.
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
		text = fmt.Append(nil, v)
	}
	if len(text) > longText {
		return string(text[:longText]) + "…"
	}
	return string(text)
}
