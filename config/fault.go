package config

import (
	"cmp"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a configuration. It never quotes a secret.
//
//nolint:errname // An error is a value of this, not named after what it is in Go.
type Fault struct {
	// Origin is where the value came from: file:line, a variable or a flag; "" if it came from nowhere.
	Origin string
	// Path of the setting, such as identities[2].tokens[0]; "" for the source as a whole.
	Path string
	Text string
}

// Error gives the fault as origin: path: text.
func (f Fault) Error() string {
	var parts []string
	for _, part := range []string{f.Origin, f.Path, f.Text} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Faults is everything that is wrong with a configuration.
//
//nolint:errname // As above.
type Faults []Fault

// Error gives one fault a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

func (f *Faults) add(origin, path, text string) {
	*f = append(*f, Fault{Origin: origin, Path: path, Text: text})
}

func (f Faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// closest returns the known name that is most like a given one, and whether one is like it.
func closest(given string, names []string) (string, bool) {
	best, distance := "", 3
	for _, name := range names {
		if d := edits(given, name); d < distance {
			best, distance = name, d
		}
	}
	return best, best != ""
}

func meant(given string, names []string) string {
	if name, ok := closest(given, names); ok {
		return "; did you mean " + name + "?"
	}
	return ""
}

// edits is Levenshtein's distance. Texts much longer than a name are far from every name.
func edits(a, b string) int {
	const longest = 64
	if len(a) > longest || len(b) > longest {
		return longest
	}
	row := make([]int, len(b)+1)
	for k := range row {
		row[k] = k
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for k := range len(b) {
			replaced := diagonal
			if a[i] != b[k] {
				replaced++
			}
			diagonal = row[k+1]
			row[k+1] = min(replaced, row[k]+1, row[k+1]+1)
		}
	}
	return row[len(b)]
}

// sortedByPath orders faults whose sources have no order of their own.
func (f Faults) sortedByPath() Faults {
	slices.SortStableFunc(f, func(a, b Fault) int { return cmp.Compare(a.Path, b.Path) })
	return f
}
