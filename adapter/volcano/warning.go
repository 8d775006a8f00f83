package volcano

import (
	"fmt"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	wording "github.com/apportion/apportion/internal/text"
)

// maxWarnings bounds how many warnings are listed.
const maxWarnings = 100

// warnings collects warnings about input without effect.
type warnings struct {
	listed []*apportionv1.Warning
	total  int
}

// add adds a warning. It calls place only for those that are listed.
func (w *warnings) add(code apportionv1.WarningCode, place func() string, format string, args ...any) {
	w.total++
	if len(w.listed) < maxWarnings {
		w.listed = append(w.listed, &apportionv1.Warning{Code: code, Path: place(), Message: fmt.Sprintf(format, args...)})
	}
}

// all are the warnings; the last one says how many are not listed.
func (w *warnings) all() []*apportionv1.Warning {
	if w.total <= len(w.listed) {
		return w.listed
	}
	return append(w.listed, &apportionv1.Warning{
		Code:    apportionv1.WarningCode_WARNING_CODE_TRUNCATED,
		Message: wording.Count(w.total-len(w.listed), "more warning"),
	})
}

// warn adds a warning about a value of the object being read.
func (r *reader) warn(code apportionv1.WarningCode, v *value, format string, args ...any) {
	doc := r.doc
	r.warnings.add(code, func() string { return place(doc, v) }, format, args...)
}

// warnDropped adds a warning that something was left out.
func (r *reader) warnDropped(v *value, format string, args ...any) {
	r.warn(apportionv1.WarningCode_WARNING_CODE_DROPPED, v, format, args...)
}

// place is the position of a value, as `file:line: path`.
func place(doc *document, v *value) string {
	if path := v.path(); path != "" {
		return fmt.Sprintf("%s:%d: %s", doc.name, doc.line(v.at), path)
	}
	return fmt.Sprintf("%s:%d", doc.name, doc.line(v.at))
}
