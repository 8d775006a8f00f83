package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
)

//go:embed page.html
var pageText string

//go:embed page.css
var style string

var page = template.Must(template.New("report").Funcs(template.FuncMap{"span": Span, "at": at}).Parse(pageText))

// WriteHTML writes the report as one page without scripts that loads nothing. Its content security policy says so to the browser.
func (r *Report) WriteHTML(w io.Writer) error {
	hash := sha256.Sum256([]byte(style))
	return page.Execute(w, map[string]any{
		"Style":       template.CSS(style), //nolint:gosec // A file of this package.
		"StyleHash":   base64.StdEncoding.EncodeToString(hash[:]),
		"Report":      r,
		"Loss":        r.loss(),
		"Entitlement": r.entitlement(),
		"Length":      float64(r.Trace.Last - r.Trace.First),
		"Every":       float64(r.Every),
		"First":       r.sections()[:2],
		"Rest":        r.sections()[2:],
		"Plots":       r.plots(),
	})
}
