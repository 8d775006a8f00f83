package objects

import (
	"fmt"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	wording "github.com/apportion/apportion/internal/text"
)

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
