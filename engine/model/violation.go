package model

import (
	"errors"
	"fmt"
	"strings"
)

// maxListed is the number of violations that an Error lists; the others are only counted.
const maxListed = 50

// ErrStopped is returned by work that was stopped.
var ErrStopped = errors.New("stopped")

// Violation is one error in an input.
type Violation struct {
	// Path of the field, such as `jobs[17].queue`.
	Path string
	// Detail describes the error, such as `no queue "x"`.
	Detail string
}

// Error contains all violations of an input. The input had no effect.
type Error struct {
	// Violations are the first 50, in the order found.
	Violations []Violation
	// Total counts all.
	Total int
}

// Add records a violation.
func (e *Error) Add(path, format string, args ...any) {
	e.Total++
	if len(e.Violations) < maxListed {
		e.Violations = append(e.Violations, Violation{Path: path, Detail: fmt.Sprintf(format, args...)})
	}
}

// full reports whether further violations are only counted, so that callers need not format their paths.
func (e *Error) full() bool { return len(e.Violations) >= maxListed }

// OrNil returns e as an error, or nil if no violation was recorded.
func (e *Error) OrNil() error {
	if e == nil || e.Total == 0 {
		return nil
	}
	return e
}

// Error lists the violations, one per line.
func (e *Error) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d violation", e.Total)
	if e.Total != 1 {
		text.WriteByte('s')
	}
	for _, v := range e.Violations {
		fmt.Fprintf(&text, "\n%s: %s", v.Path, v.Detail)
	}
	if more := e.Total - len(e.Violations); more > 0 {
		fmt.Fprintf(&text, "\nand %d more", more)
	}
	return text.String()
}
