package text

import (
	"fmt"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/duration"
	"github.com/apportion/apportion/internal/visible"
)

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
func OddsUnjudged(names Names, job uint32, reasons []*apportionv1.Reason) string {
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
