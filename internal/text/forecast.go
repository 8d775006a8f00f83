package text

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
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
	if len(e.GetUnjudgedConstraints()) > 0 && f.GetOutcome() != apportionv1.ForecastOutcome_FORECAST_OUTCOME_NOT_FORESEEN {
		sentences = append(sentences, capital(alsoDepends(e.GetUnjudgedConstraints()))+".")
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
		return f.named(f.GetAheadJobs(), n) + " waits ahead of it and may take the room first."
	default:
		return f.named(f.GetAheadJobs(), n) + " wait ahead of it and may take the room first."
	}
}

func (f foreseen) unknown() string {
	switch n := int(f.GetUnknownCount()); n {
	case 0:
		return ""
	case 1:
		return "It is not known when " + f.named(f.GetUnknownJobs(), n) + " ends; it is assumed to run on."
	default:
		return "It is not known when " + f.named(f.GetUnknownJobs(), n) + " end; they are assumed to run on."
	}
}

func (f foreseen) overdue() string {
	switch n := int(f.GetOverdueCount()); n {
	case 0:
		return ""
	case 1:
		return f.named(f.GetOverdueJobs(), n) + " was expected to end before now; it is assumed to run on."
	default:
		return f.named(f.GetOverdueJobs(), n) + " were expected to end before now; they are assumed to run on."
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

// Odds says when a job starts, by chance, in a few sentences.
func Odds(names Names, a *apportionv1.ForecastAnswer) string {
	job := names.job(a.GetJob())
	var list []string
	switch cut := a.GetCutShort(); a.GetKind() {
	case apportionv1.ForecastKind_FORECAST_KIND_ODDS:
		if cut > 0 && cut == a.GetRuns() {
			fewer := ""
			if cut > 1 {
				fewer = "for fewer runs, or "
			}
			return visible.Text(fmt.Sprintf("When %s starts is not known, because %s ended at a bound on work before it did. "+
				"Ask %swith a shorter history.", job, Count(int(cut), "run"), fewer))
		}
		list = []string{odds(job, a), within(a), depends(names, a), drawn(a), moved(a), drifts(a.GetDrift())}
	case apportionv1.ForecastKind_FORECAST_KIND_BOUNDS:
		list = []string{"No history: bounds, not odds.", oddsBounds(job, a)}
	default:
		list = []string{job + " waits for no place, or cannot start as it is."}
	}
	if a.GetCutShort() > 0 {
		n := int(a.GetCutShort())
		list = append(list, Count(n, "run")+" ended at a bound on work and "+Verb(n, "counts", "count")+" as not started.")
	}
	return visible.Text(strings.Join(strings.Fields(strings.Join(list, " ")), " "))
}

// OddsUnjudged says why nothing is known of when a job starts.
func OddsUnjudged(names Names, job uint32, reasons []*apportionv1.Cause) string {
	return visible.Text(fmt.Sprintf("%s is not judged: %s.", names.job(job), Reasons(names, reasons)))
}

// odds says when the job starts.
func odds(job string, a *apportionv1.ForecastAnswer) string {
	switch {
	case a.P50 == nil && len(a.GetStarts()) == 0:
		runs := Count(int(a.GetRuns()), "run")
		return fmt.Sprintf("%s does not start within %s in any of %s.", job, duration.Seconds(a.GetHorizon()), runs)
	case a.P50 == nil:
		return fmt.Sprintf("%s starts within %s in only %d of %s.", job, duration.Seconds(a.GetHorizon()), len(a.GetStarts()),
			Count(int(a.GetRuns()), "run"))
	case a.P90 == nil:
		return fmt.Sprintf("%s starts %s with a chance of 50 %%, but in more than 10 %% of the runs not within %s.", job,
			when("within", a.GetP50()), duration.Seconds(a.GetHorizon()))
	case a.GetP90() == 0:
		return job + " starts at once."
	}
	return fmt.Sprintf("%s starts %s with a chance of 50 %%, within %s with a chance of 90 %%.", job, when("within", a.GetP50()),
		duration.Seconds(a.GetP90()))
}

func within(a *apportionv1.ForecastAnswer) string {
	const hour = 3600
	// Runs that look ahead for less say nothing about the hour.
	if a.P90 != nil && a.GetP90() <= hour || a.GetRuns() == 0 || a.GetHorizon() < hour {
		return ""
	}
	return fmt.Sprintf("The chance to start within an hour is %d %%.", share(a.GetWithinHour(), a.GetRuns()))
}

// share is a part in whole percent.
func share(part, whole uint32) int {
	const percent = 100
	return int((uint64(part)*percent + uint64(whole)/2) / uint64(whole))
}

// depends says on which end the start depends most.
func depends(names Names, a *apportionv1.ForecastAnswer) string {
	if len(a.GetCauses()) == 0 || a.GetRuns() == 0 {
		return ""
	}
	first := a.GetCauses()[0]
	return fmt.Sprintf("It depends most on the end of %s (%d %% of the runs).",
		names.job(first.GetJob()), share(first.GetRuns(), a.GetRuns()))
}

// drawn says which runtimes no history stands behind.
func drawn(a *apportionv1.ForecastAnswer) string {
	if n := int(a.GetSources().GetPrior()); n > 0 {
		return fmt.Sprintf("For %s the history has no runtime as long.", Count(n, "job"))
	}
	return ""
}

// moved says what forecasts of the past made of the model's starts.
func moved(a *apportionv1.ForecastAnswer) string {
	if a.GetHindcasts() == 0 || a.RawP90 == nil {
		return ""
	}
	return fmt.Sprintf("The model alone says %s and %s; what came of its forecasts at %s of the past corrects it.",
		duration.Seconds(a.GetRawP50()), duration.Seconds(a.GetRawP90()), Count(int(a.GetHindcasts()), "moment"))
}

// drifts says that the load changes, and what that means for the chances.
func drifts(d *apportionv1.ForecastDrift) string {
	var changes []string
	grows, shrinks := false, false
	for _, of := range []struct {
		what  string
		times float64
	}{{"as many jobs arrive a day", d.GetArrivals()}, {"as long do jobs run", d.GetRuntimes()}} {
		if of.times > 0 {
			changes = append(changes, fmt.Sprintf("%.1f times %s", of.times, of.what))
			grows, shrinks = grows || of.times > 1, shrinks || of.times < 1
		}
	}
	if len(changes) == 0 {
		return ""
	}
	means := "as it was, not as it will be"
	switch {
	case !shrinks:
		means = "as it was, so that the start may well be later"
	case !grows:
		means = "as it was, so that the start may well be earlier"
	}
	return fmt.Sprintf("The load changes: at the end of the history %s as at its begin. The chances are those of the load %s.",
		strings.Join(changes, " and "), means)
}

func oddsBounds(job string, a *apportionv1.ForecastAnswer) string {
	switch {
	case a.Earliest == nil:
		return fmt.Sprintf("%s does not start within %s even if all other jobs end at once.", job, duration.Seconds(a.GetHorizon()))
	case a.Latest == nil:
		return fmt.Sprintf("%s starts %s if all other jobs end at once, and not within %s if they run as long as they may.", job,
			when("in", a.GetEarliest()), duration.Seconds(a.GetHorizon()))
	case a.GetLatest() == 0:
		return job + " starts at once."
	}
	return fmt.Sprintf("%s starts %s if all other jobs end at once, and %s if they run to their limits.",
		job, when("in", a.GetEarliest()), when("in", a.GetLatest()))
}

// when says when something starts, in seconds: at once, or within or in a time.
func when(preposition string, seconds int64) string {
	if seconds == 0 {
		return "at once"
	}
	return preposition + " " + duration.Seconds(seconds)
}
