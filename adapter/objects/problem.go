package objects

import (
	"cmp"
	"fmt"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
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

// Faulty is an object that is left out of a cluster, because it is invalid or because the snapshot has no room for it.
type Faulty struct {
	// Kind, Namespace and Name are empty where they cannot be read.
	Kind, Namespace, Name string
	Problems              *Error
	// At is where the object was written.
	At Origin
	// Queue is that of a job, as far as it is known. Entity is what the adapter could read of the object; nil: nothing.
	Queue  string
	Entity any
}

// String names the object and its first problem.
func (f *Faulty) String() string {
	name := f.Name
	if name == "" {
		name = "at " + f.At.String()
	}
	return fmt.Sprintf("%s %s: %s", cmp.Or(f.Kind, "object"), fullName(f.Namespace, name), f.Detail())
}

// Detail returns the first problem, and the number of the others.
func (f *Faulty) Detail() string {
	first := f.Problems.Problems[0]
	text := first.Message
	if first.Path != "" {
		text = first.Path + ": " + text
	}
	if more := f.Problems.Total - 1; more > 0 {
		text = fmt.Sprintf("%s, and %d more", text, more)
	}
	return text
}

// Leave leaves out an object that was read without a problem.
func (r *Reader) Leave(of Identity, at Origin, format string, args ...any) *Faulty {
	why := &Error{Problems: []Problem{at.problem(format, args...)}, Total: 1}
	f := &Faulty{Kind: of.Kind, Namespace: of.Namespace, Name: of.Name, Problems: why, At: at}
	r.Faulty = append(r.Faulty, f)
	r.Read--
	return f
}

// LeftOut returns a faulty object as a snapshot lists it.
func (r *Reader) LeftOut(f *Faulty) *apportionv1.LeftOut {
	return &apportionv1.LeftOut{
		Cause: apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID, Kind: r.Shortened(f.Kind), Namespace: r.Shortened(f.Namespace),
		Name: r.Shortened(f.Name), Queue: r.Shortened(f.Queue), Detail: r.Shortened(f.Detail()),
	}
}

// maxWarnings bounds how many warnings are listed.
const maxWarnings = 100

// Warnings collects warnings about input without effect.
type Warnings struct {
	Listed []*apportionv1.Warning
	total  int
}

// Add adds a warning. It calls place only for those that are listed.
func (w *Warnings) Add(code apportionv1.WarningCode, place func() string, format string, args ...any) {
	w.total++
	if len(w.Listed) < maxWarnings {
		w.Listed = append(w.Listed, &apportionv1.Warning{Code: code, Path: place(), Message: fmt.Sprintf(format, args...)})
	}
}

// Take adds warnings that were found before.
func (w *Warnings) Take(listed []*apportionv1.Warning) {
	w.total += len(listed)
	w.Listed = append(w.Listed, listed[:min(len(listed), maxWarnings-len(w.Listed))]...)
}

// All are the warnings; the last one says how many are not listed.
func (w *Warnings) All() []*apportionv1.Warning {
	if w.total <= len(w.Listed) {
		return w.Listed
	}
	return append(w.Listed, &apportionv1.Warning{
		Code:    apportionv1.WarningCode_WARNING_CODE_TRUNCATED,
		Message: wording.Count(w.total-len(w.Listed), "more warning"),
	})
}

// Place is the position of a value, as `file:line: path`.
func Place(doc *Document, v *Value) string {
	if path := v.Path(); path != "" {
		return fmt.Sprintf("%s:%d: %s", doc.Name, doc.Line(v.At), path)
	}
	return fmt.Sprintf("%s:%d", doc.Name, doc.Line(v.At))
}
