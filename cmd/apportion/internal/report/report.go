// Package report formats the results of rehearsals: as tables for a terminal, and as one self-contained page of HTML.
package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/cmd/apportion/internal/rehearsal"
	"github.com/apportion/apportion/cmd/apportion/internal/render"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/text"
)

// Report is the result of a rehearsal. Its JSON form is the output of `apportion rehearse -o json`.
type Report struct {
	Trace Trace `json:"trace"`
	// Resource is the resource by which entitlement, fairness, losses and classes are measured.
	Resource string `json:"resource"`
	// Every and Checkpoint are in seconds. With a checkpoint of 0, an evicted task loses all its work.
	Every      int64 `json:"every"`
	Checkpoint int64 `json:"checkpoint"`
	// EntitledBy names the policy whose deserved shares are the entitlements of queues.
	EntitledBy string              `json:"entitledBy"`
	Runs       []*rehearsal.Result `json:"runs"`
}

// Trace describes the rehearsed trace.
type Trace struct {
	Jobs int `json:"jobs"`
	// Start is the moment of second 0, absent if it is unknown.
	Start *time.Time `json:"start,omitempty"`
	// First and Last are the first and the last arrival, in seconds.
	First int64    `json:"firstArrival"`
	Last  int64    `json:"lastArrival"`
	Notes []string `json:"notes"`
}

// Unit is the displayed unit of the measured resource.
func (r *Report) Unit() string {
	switch {
	case strings.HasSuffix(r.Resource, "gpu"):
		return "GPU"
	case r.Resource == "cpu":
		return "core"
	case r.Resource == "memory":
		return "GiB"
	}
	return r.Resource
}

const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour
)

// Span is a time as people read it: 12s, 25m, 3h20m, 2d4h.
func Span(seconds float64) string { return duration.Seconds(int64(math.Round(seconds))) }

func percent(part float64) string { return strconv.FormatFloat(100*part, 'f', 1, 64) + " %" }
func tenth(x float64) string      { return strconv.FormatFloat(x, 'f', 1, 64) }
func third(x float64) string      { return strconv.FormatFloat(x, 'f', 3, 64) }

// Print writes the tables.
func (r *Report) Print(p *render.Printer) {
	prose := *p
	if prose.Width == 0 {
		prose.Width = 100
	}
	prose.Wrapped("%s that %s within %s, decisions at most every %s; %s", text.Count(r.Trace.Jobs, "job"),
		text.Verb(r.Trace.Jobs, "arrives", "arrive"), Span(float64(r.Trace.Last-r.Trace.First)),
		Span(float64(r.Every)), r.loss())
	for _, s := range r.sections() {
		p.Heading("%s", s.Title)
		headings := make([]string, len(s.Head))
		for i, head := range s.Head {
			if headings[i] = strings.ToUpper(head); i >= s.Names {
				headings[i] = ">" + headings[i]
			}
		}
		table := p.NewTable(headings...).Optional("H LOST", "EVICTED", "LONGEST")
		for _, row := range s.Rows {
			table.Row(row...)
		}
		table.Write(p.Out)
	}
	p.Line("")
	prose.Wrapped("Waits are from arrival to end, without the time in which a job worked. %s", r.entitlement())
}

func (r *Report) loss() string {
	if r.Checkpoint == 0 {
		return "an evicted task loses all its work"
	}
	return "an evicted task loses its work since the last checkpoint, one every " + Span(float64(r.Checkpoint))
}

func (r *Report) entitlement() string {
	return fmt.Sprintf("Queues are entitled to what %s says that they deserve of %s, at most to what they want; “kept” is the part of "+
		"the time in which they had it, in whole %ss. Fairness is Jain's index of the parts that queues have of it: 1 is equal.",
		r.EntitledBy, r.Resource, r.Unit())
}

// section is a table of the report. The first Names columns are names, the others numbers.
type section struct {
	ID, Title string
	Head      []string
	Names     int
	Rows      [][]string
}

// sections are the tables that both forms of the report show.
func (r *Report) sections() []section {
	return []section{r.summary(), r.effects(), r.use(), r.queues(), r.parts(), r.classes()}
}

func (r *Report) summary() section {
	s := section{ID: "waits", Title: "Waits", Names: 1, Head: []string{"run", "done", "never", "mean wait", "median", "95 %", "longest"}}
	for _, run := range r.Runs {
		s.Rows = append(s.Rows, append([]string{run.Name, strconv.Itoa(run.Finished), strconv.Itoa(run.Unfinished)}, waits(run.Waits)...))
	}
	return s
}

func waits(w rehearsal.Waits) []string {
	return []string{Span(w.Mean), Span(float64(w.Median)), Span(float64(w.P95)), Span(float64(w.Longest))}
}

func (r *Report) effects() section {
	s := section{ID: "fairness", Title: "Evictions and fairness", Names: 1, Head: []string{
		"run", "evicted", r.Unit() + " h lost", "kept", r.Unit() + " h short", "fairness",
	}}
	for _, run := range r.Runs {
		s.Rows = append(s.Rows, []string{
			run.Name, strconv.Itoa(run.Evictions.Total), tenth(run.Use[0].Lost), percent(run.Kept), tenth(run.Short), third(run.Fairness),
		})
	}
	return s
}

func (r *Report) use() section {
	s := section{ID: "use", Title: "Use (while jobs arrive, and until all are done)", Names: 2, Head: []string{
		"resource", "run", "arriving", "all", "hours", "all done after",
	}}
	for i := range r.Runs[0].Use {
		for _, run := range r.Runs {
			for k := range run.Use {
				use := &run.Use[k]
				if use.Resource != r.Runs[0].Use[i].Resource {
					continue
				}
				s.Rows = append(s.Rows, []string{
					use.Resource, run.Name, percent(use.Arriving), percent(use.All), tenth(use.Hours),
					Span(float64(max(run.End-r.Trace.First, 0))),
				})
			}
		}
	}
	return s
}

func (r *Report) queues() section {
	s := section{ID: "queues", Title: "Queues", Names: 2, Head: []string{
		"queue", "run", "jobs", "mean wait", "95 %", "evicted", "h lost", "kept",
	}}
	for _, name := range r.queueNames() {
		for _, run := range r.Runs {
			for i := range run.Queues {
				q := &run.Queues[i]
				if q.Name == name {
					s.Rows = append(s.Rows, []string{
						name, run.Name, strconv.Itoa(q.Jobs), Span(q.Waits.Mean), Span(float64(q.Waits.P95)),
						strconv.Itoa(q.Evictions.Total), tenth(q.Lost), percent(q.Kept),
					})
				}
			}
		}
	}
	return s
}

// parts compares what queues used with their weights.
func (r *Report) parts() section {
	s := section{ID: "shares", Title: "Shares of the " + r.Unit() + "s used while jobs arrive", Names: 2, Head: []string{
		"queue", "run", "by weight", "share", "longest wait",
	}}
	for _, name := range r.queueNames() {
		for _, run := range r.Runs {
			for i := range run.Queues {
				if q := &run.Queues[i]; q.Name == name {
					s.Rows = append(s.Rows, []string{name, run.Name, percent(q.ByWeight), percent(q.Share), Span(float64(q.Waits.Longest))})
				}
			}
		}
	}
	return s
}

// queueNames lists the queues of all runs, in their order.
func (r *Report) queueNames() []string {
	var names []string
	seen := map[string]bool{}
	for _, run := range r.Runs {
		for i := range run.Queues {
			if name := run.Queues[i].Name; !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

func (r *Report) classes() section {
	s := section{ID: "classes", Title: "Jobs by size", Names: 2, Head: []string{
		r.Unit() + "s", "run", "jobs", "mean wait", "median", "95 %", "evicted",
	}}
	for i := range r.Runs[0].Classes {
		for _, run := range r.Runs {
			// All runs have the same jobs, and so the same classes.
			c := &run.Classes[i]
			s.Rows = append(s.Rows, []string{
				c.Name, run.Name, strconv.Itoa(c.Jobs), Span(c.Waits.Mean), Span(float64(c.Waits.Median)), Span(float64(c.Waits.P95)),
				strconv.Itoa(c.Evictions),
			})
		}
	}
	return s
}

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
