// Package tree reads YAML and JSON whose errors name the source, the line and the path of what is wrong.
package tree

import (
	"errors"
	"strconv"
	"strings"
)

// Fault is an error in a source.
//
//nolint:errname // The field's word for what is wrong with an input.
type Fault struct {
	// Source is a file, a variable or a flag; "" if there is none.
	Source string
	// Line counts from 1; 0: the source as a whole.
	Line int
	// Path within the document, such as identities[2].tokens[0]; "" for the document as a whole.
	Path string
	Text string
}

// Error returns source:line: path: text.
func (f *Fault) Error() string {
	source := f.Source
	if f.Line > 0 {
		source += ":" + strconv.Itoa(f.Line)
	}
	var parts []string
	for _, part := range []string{source, f.Path, f.Text} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// maxFaults is the number of faults of a mapping or list that are reported.
const maxFaults = 100

// Faults are all errors of a source, in its order.
//
//nolint:errname // As above.
type Faults []*Fault

// Error returns one fault per line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Add adds an error: the faults that it contains, or a fault without a place. It ignores nil.
func (f *Faults) Add(err error) {
	if err == nil {
		return
	}
	more := Faults{{Text: err.Error()}}
	if list, ok := errors.AsType[Faults](err); ok {
		more = list
	} else if one, ok := errors.AsType[*Fault](err); ok {
		more = Faults{one}
	}
	*f = append(*f, more[:max(0, min(len(more), maxFaults-len(*f)))]...)
}

// Err returns the faults as an error: nil if there are none, and a single fault itself.
func (f Faults) Err() error {
	switch len(f) {
	case 0:
		return nil
	case 1:
		return f[0]
	}
	return f
}
