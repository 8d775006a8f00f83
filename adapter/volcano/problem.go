package volcano

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

// problems collects faults. It formats only those that will be listed, so that an input with many faults costs no more than a valid one.
type problems struct {
	listed []Problem
	total  int
}

// add adds a fault of the value v in doc.
func (p *problems) add(doc *document, v *value, format string, args ...any) {
	if p.counted() {
		p.list(doc, v.at, v.path(), format, args...)
	}
}

// addText adds a fault of the text itself, at a position of doc.
func (p *problems) addText(doc *document, at int, format string, args ...any) {
	if p.counted() {
		p.list(doc, at, "", format, args...)
	}
}

// counted counts a fault and reports whether it will be listed.
func (p *problems) counted() bool {
	p.total++
	return len(p.listed) < maxProblems
}

func (p *problems) list(doc *document, at int, path, format string, args ...any) {
	p.listed = append(p.listed, Problem{File: doc.name, Line: doc.line(at), Path: path, Message: fmt.Sprintf(format, args...)})
}

// err is nil, untyped, if nothing was found.
func (p *problems) err() error {
	if p.total == 0 {
		return nil
	}
	return &Error{Problems: p.listed, Total: p.total}
}

// append adds the problems of other.
func (p *problems) append(other *problems) {
	p.total += other.total
	p.listed = append(p.listed, other.listed[:min(len(other.listed), maxProblems-len(p.listed))]...)
}
