package check

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Report is what a check found.
type Report struct {
	// Faults has a sentence for each number that is wrong.
	Faults []string
	// Checked lists the answers that were checked; of all others nothing is said.
	Checked []Checked
	// Unchecked lists the fields of the response that were not, by field.
	Unchecked []Unchecked
	// Errors counts the answers that are errors: these say nothing that could be checked.
	Errors int
}

// Checked is an answer of which something was checked.
type Checked struct {
	// Answer is its path in the response.
	Answer string `json:"answer"`
	// Numbers counts the fields that were compared.
	Numbers int `json:"numbers"`
	// What says what was checked.
	What string `json:"what"`
}

// Unchecked is a field of a response that was not checked.
type Unchecked struct {
	// Field is its path in the response, in which [*] stands for each entry of a list; answers and plugins have positions. The fields below
	// it were not checked either.
	Field string `json:"field"`
	// Why it was not checked.
	Why string `json:"why"`
}

// findings collects what is wrong, what was checked and what was not.
type findings struct {
	// width is the number of dimensions.
	width  int
	faults []string
	// numbers counts what was compared.
	numbers, errors int
	checked         []Checked
	unchecked       map[string]string
}

func newFindings() *findings { return &findings{unchecked: map[string]string{}} }

func (f *findings) report() *Report {
	r := &Report{Faults: f.faults, Errors: f.errors, Checked: f.checked}
	for _, field := range slices.Sorted(maps.Keys(f.unchecked)) {
		r.Unchecked = append(r.Unchecked, Unchecked{field, f.unchecked[field]})
	}
	return r
}

func (f *findings) wrong(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// did notes what of an answer was checked, since so many numbers had been compared.
func (f *findings) did(answer, what string, before int) {
	f.checked = append(f.checked, Checked{answer, f.numbers - before, what})
}

// expect notes a number that is not what it must be.
func expect[T comparable](f *findings, path string, got, want T) {
	f.numbers++
	if got != want {
		f.wrong("%s is %v, not %v", path, got, want)
	}
}

var positions = regexp.MustCompile(`(answers|plugins)?\[\d+\]`)

// everyEntry puts [*] in place of positions but for those of answers and plugins.
func everyEntry(path string) string {
	return positions.ReplaceAllStringFunc(path, func(position string) string {
		if position[0] == '[' {
			return "[*]"
		}
		return position
	})
}

// omit notes that a field is not checked. The first reason stands.
func (f *findings) omit(path, why string) {
	if path = everyEntry(path); f.unchecked[path] == "" {
		f.unchecked[path] = why
	}
}

// omitAll notes that some fields of a message are not checked.
func (f *findings) omitAll(path, why string, fields ...string) {
	for _, field := range fields {
		f.omit(path+"."+field, why)
	}
}

// resource notes the dimensions in which a resource is not what it must be. A dimension that is not named is 0.
func (f *findings) resource(path string, got, want *apportionv1.Resource) {
	f.numbers++
	if len(got.GetDimensions()) != len(got.GetAmounts()) {
		f.wrong("%s has %d dimensions and %d amounts", path, len(got.GetDimensions()), len(got.GetAmounts()))
		return
	}
	f.known(path, got)
	left := map[uint32]float64{}
	for i, d := range want.GetDimensions() {
		left[d] = want.GetAmounts()[i]
	}
	for i, d := range got.GetDimensions() {
		if slices.Contains(got.GetDimensions()[:i], d) || int(d) >= f.width {
			f.wrong("%s names dimension %d twice, or there is none", path, d)
		}
		if !same(got.GetAmounts()[i], left[d]) {
			f.wrong("%s: dimension %d is %v, not %v", path, d, got.GetAmounts()[i], left[d])
		}
		delete(left, d)
	}
	for _, d := range slices.Sorted(maps.Keys(left)) {
		if left[d] != 0 {
			f.wrong("%s: dimension %d is absent, not %v", path, d, left[d])
		}
	}
}

// same reports whether two amounts are equal, also if neither is a number.
func same(l, r float64) bool { return l == r || math.IsNaN(l) && math.IsNaN(r) }
