package objects

import (
	"fmt"
	"strings"

	wording "github.com/apportion/apportion/internal/text"
)

// maxProblems bounds how many problems an Error lists; it counts all of them.
const maxProblems = 50

// Problem is one fault of the input.
type Problem struct {
	// File is the name of the source.
	File string
	// Line counts from 1.
	Line int
	// Path is the key path within the object, as in `spec.capability.cpu`. Empty: the object, or the file, as a whole.
	Path string
	// Message says what is wrong.
	Message string
}

// String gives the problem as `file:line: path: message`.
func (p Problem) String() string {
	if p.Path == "" {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Path, p.Message)
}

// Error holds the problems of an input in the order of their discovery.
type Error struct {
	// Problems are the first 50.
	Problems []Problem
	// Total counts all of them.
	Total int
}

// Error lists the problems, one a line, and their number where some are not listed.
func (e *Error) Error() string {
	var text strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(p.String())
	}
	if e.Total > len(e.Problems) {
		text.WriteString("\n" + wording.Count(e.Total, "problem") + " in all")
	}
	return text.String()
}

// Problems collects faults. It formats only those that will be listed, so that an input with many faults costs no more than a valid one.
type Problems struct {
	Listed []Problem
	Total  int
}

// Add adds a fault of the value v in doc.
func (p *Problems) Add(doc *Document, v *Value, format string, args ...any) {
	if p.counted() {
		p.list(doc, v.At, v.Path(), format, args...)
	}
}

// AddText adds a fault of the text itself, at a position of doc.
func (p *Problems) AddText(doc *Document, at int, format string, args ...any) {
	if p.counted() {
		p.list(doc, at, "", format, args...)
	}
}

// counted counts a fault and reports whether it will be listed.
func (p *Problems) counted() bool {
	p.Total++
	return len(p.Listed) < maxProblems
}

func (p *Problems) list(doc *Document, at int, path, format string, args ...any) {
	p.Listed = append(p.Listed, Problem{File: doc.Name, Line: doc.Line(at), Path: path, Message: fmt.Sprintf(format, args...)})
}

// Err is nil, untyped, if nothing was found.
func (p *Problems) Err() error {
	if p.Total == 0 {
		return nil
	}
	return p.All()
}

// All returns the problems that were found.
func (p *Problems) All() *Error { return &Error{Problems: p.Listed, Total: p.Total} }

// AppendError adds the problems of an error.
func (p *Problems) AppendError(e *Error) { p.Append(&Problems{e.Problems, e.Total}) }

// Append adds the problems of other.
func (p *Problems) Append(other *Problems) {
	p.Total += other.Total
	p.Listed = append(p.Listed, other.Listed[:min(len(other.Listed), maxProblems-len(p.Listed))]...)
}
