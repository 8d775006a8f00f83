package text

import (
	"slices"
	"strings"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/visible"
)

// Forecast returns when a job could start, what this depends on, and what is unknown, in a few sentences.
func Forecast(names Names, e *apportionv1.Explanation) string {
	f := foreseen{names, e, e.GetForecast()}
	sentences := []string{f.start()}
	if f.GetOutcome() == apportionv1.ForecastOutcome_FORECAST_OUTCOME_AT {
		sentences = append(sentences, f.ends())
	}
	for _, sentence := range []string{f.unkept(), f.ahead(), f.unknown(), f.overdue()} {
		if sentence != "" {
			sentences = append(sentences, sentence)
		}
	}
	if f.GetCutShort() {
		sentences = append(sentences, "The search ended at a bound on its work.")
	}
	if len(e.GetUnjudged()) > 0 && f.GetOutcome() != apportionv1.ForecastOutcome_FORECAST_OUTCOME_NOT_FORESEEN {
		sentences = append(sentences, capital(alsoDepends(e.GetUnjudged()))+".")
	}
	return visible.Text(strings.Join(sentences, " "))
}

// foreseen is a forecast that is put into words.
type foreseen struct {
	names Names
	job   *apportionv1.Explanation
	*apportionv1.Forecast
}

func (f foreseen) start() string {
	could := f.job.GetName() + " could start"
	if f.job.GetWaitingTasks() == 0 {
		could = f.job.GetName() + " could enter its queue"
	}
	switch f.GetOutcome() {
	case apportionv1.ForecastOutcome_FORECAST_OUTCOME_NOW:
		return could + " now if no other job took the room."
	case apportionv1.ForecastOutcome_FORECAST_OUTCOME_AT:
		return could + " " + f.when() + " if nothing else changes."
	default:
		return strings.Replace(could, "could", "could not", 1) + " even once every job has ended whose end is known."
	}
}

// when returns the time of the start. If it depends only on deadlines, the jobs may end earlier but not later, unless others may take the
// room.
func (f foreseen) when() string {
	estimated := slices.ContainsFunc(f.GetEnds(), func(end *apportionv1.ExpectedEnd) bool { return !end.GetDeadline() })
	if !estimated && !f.GetUnkept() && (f.GetEndCount() > 0 || f.GetReleasedNodes() == 0) {
		return "by " + moment(f.GetTime())
	}
	return "at " + moment(f.GetTime()) + " at the earliest"
}

// ends returns the ends on which the time depends.
func (f foreseen) ends() string {
	released := ""
	if n := int(f.GetReleasedNodes()); n > 0 {
		released = "A reservation of " + Count(n, "node") + " ends then."
	}
	if f.GetEndCount() == 0 {
		return released
	}
	const few = 5
	list := f.GetEnds()
	var parts []string
	for _, end := range list[:min(few, len(list))] {
		at := " ends at "
		if end.GetDeadline() {
			at = " ends by "
		}
		parts = append(parts, f.names.job(end.GetJob())+at+moment(end.GetTime()))
	}
	if more := int(f.GetEndCount()) - len(parts); more > 0 {
		parts = append(parts, Count(more, "more job")+" by then")
	}
	sentence := "This depends on " + Count(int(f.GetEndCount()), "end") + ": " + and(parts)
	switch {
	case !f.GetMinimal() && f.GetCutShort():
		sentence += "; perhaps not all of them are needed"
	case !f.GetMinimal():
		sentence += "; the end of another job by then would do in place of one of them"
	}
	if !f.GetEarliest() {
		sentence += "; an earlier time is not ruled out"
	}
	return strings.TrimSpace(sentence + ". " + released)
}

func (f foreseen) unkept() string {
	if !f.GetUnkept() {
		return ""
	}
	return "The time is that of a plan of all jobs before it. No room is kept for it until then: jobs that come later may start first."
}

func (f foreseen) ahead() string {
	switch n := int(f.GetAheadCount()); n {
	case 0:
		return ""
	case 1:
		return f.named(f.GetAhead(), n) + " waits ahead of it and may take the room first."
	default:
		return f.named(f.GetAhead(), n) + " wait ahead of it and may take the room first."
	}
}

func (f foreseen) unknown() string {
	switch n := int(f.GetUnknownCount()); n {
	case 0:
		return ""
	case 1:
		return "It is not known when " + f.named(f.GetUnknown(), n) + " ends; it is assumed to run on."
	default:
		return "It is not known when " + f.named(f.GetUnknown(), n) + " end; they are assumed to run on."
	}
}

func (f foreseen) overdue() string {
	switch n := int(f.GetOverdueCount()); n {
	case 0:
		return ""
	case 1:
		return f.named(f.GetOverdue(), n) + " was expected to end before now; it is assumed to run on."
	default:
		return f.named(f.GetOverdue(), n) + " were expected to end before now; they are assumed to run on."
	}
}

// named names the first of several jobs.
func (f foreseen) named(jobs []uint32, all int) string {
	const few = 3
	var parts []string
	for _, job := range jobs[:min(few, len(jobs))] {
		parts = append(parts, f.names.job(job))
	}
	if more := all - len(parts); more > 0 {
		parts = append(parts, Count(more, "more job"))
	}
	return and(parts)
}

// moment is a time to the second: `2026-07-01 14:30:00 UTC`.
func moment(nanoseconds int64) string {
	return time.Unix(0, nanoseconds).UTC().Format("2006-01-02 15:04:05 UTC")
}
