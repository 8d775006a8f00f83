// Package spelling suggests the known name that is most like a misspelt one.
package spelling

import (
	"fmt"
	"iter"
	"strings"
)

// Similar returns the known name with the smallest edit distance, "" if none is similar.
func Similar(name string, known iter.Seq[string]) string {
	best, least := "", len(name)/3+1
	for candidate := range known {
		d := distance(candidate, name, least)
		if d < least || d == least && best != "" && candidate < best {
			best, least = candidate, d
		}
	}
	return best
}

// Suggestion asks whether the similar name was meant, as the end of an error: `; did you mean "name"?`. It is empty if there is none.
func Suggestion(name string, known iter.Seq[string]) string {
	if similar := Similar(name, known); similar != "" {
		return fmt.Sprintf("; did you mean %q?", similar)
	}
	return ""
}

// Then continues an error after a suggestion, which may be empty, with a clause such as "there are a, b": as a sentence after the question,
// otherwise behind a semicolon.
func Then(suggestion, clause string) string {
	if suggestion == "" {
		return "; " + clause
	}
	return suggestion + " " + strings.ToUpper(clause[:1]) + clause[1:]
}

// distance returns the number of letters to insert, remove, replace or swap with their neighbour to turn a into b, or bound+1 if their
// lengths alone differ by more than bound.
func distance(a, b string, bound int) int {
	if len(a)-len(b) > bound || len(b)-len(a) > bound {
		return bound + 1
	}
	// Row i holds the distances of the first i letters of a to the beginnings of b.
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j+1]+1, next[j]+1, row[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
