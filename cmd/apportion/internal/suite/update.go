package suite

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Update replaces expectations in the text of a file by the answers. It changes scalars and lists in one line, and leaves comparisons (`>=
// 8`), values of variables, and parts of the answer that do not exist. It returns the new text and the numbers of expectations that it
// replaced and left.
func Update(data []byte, results []*Result) (updated []byte, replaced, left int) {
	lines := strings.SplitAfter(string(data), "\n")
	var all []Difference
	for _, r := range results {
		for _, step := range r.Failed {
			all = append(all, step.Differences...)
		}
	}
	// From the end of each line to its begin, so that columns stay true.
	slices.SortStableFunc(all, func(a, b Difference) int { return column(b) - column(a) })
	done := map[*yaml.Node]bool{}
	for _, d := range all {
		if d.place == nil || done[d.place] || !replace(lines, d) {
			left++
			continue
		}
		done[d.place] = true
		replaced++
	}
	return []byte(strings.Join(lines, "")), replaced, left
}

func column(d Difference) int {
	if d.place == nil {
		return 0
	}
	return d.place.Column
}

// list is a list in one line without lists within.
var list = regexp.MustCompile(`^\[[^\[\]]*\]`)

// replace writes the answer into the line of an expectation.
func replace(lines []string, d Difference) bool {
	n := d.place
	if d.fact == nil || n.Column == 0 || n.Line > len(lines) || operator.MatchString(n.Value) {
		return false
	}
	line := lines[n.Line-1]
	// The library counts columns in runes, from 1.
	runes := []rune(line)
	if n.Column > len(runes) {
		return false
	}
	before, after := string(runes[:n.Column-1]), string(runes[n.Column-1:])
	var length int
	value := plain(got(d.fact))
	switch {
	case n.Kind == yaml.SequenceNode:
		length = len(list.FindString(after))
		names := slices.Clone(listed(d.fact))
		for i := range names {
			names[i] = plain(names[i])
		}
		value = "[" + strings.Join(names, ", ") + "]"
	case n.Style == 0 && strings.HasPrefix(after, n.Value):
		length = len(n.Value)
	case n.Style == yaml.DoubleQuotedStyle || n.Style == yaml.SingleQuotedStyle:
		if end := strings.IndexByte(after[1:], after[0]); end >= 0 && !strings.ContainsAny(after[1:1+end], `\`) {
			length = end + 2
		}
	}
	if length == 0 {
		return false
	}
	lines[n.Line-1] = before + value + after[length:]
	return true
}

// plain writes a text as a scalar of YAML in a flow.
func plain(text string) string {
	encoded, err := yaml.Marshal(text)
	if err != nil || strings.ContainsAny(text, ",[]{}#") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
	}
	return number(strings.TrimSuffix(string(encoded), "\n"), text)
}

// number removes the quotes from a number or a boolean.
func number(encoded, text string) string {
	if strings.HasPrefix(encoded, `"`) && (scalar.MatchString(text) || text == "true" || text == "false") {
		return text
	}
	return encoded
}

var scalar = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)
