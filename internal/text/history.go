package text

import (
	"fmt"
	"strings"

	apportionv1alpha1 "github.com/apportion/apportion/gen/apportion/v1alpha1"
	"github.com/apportion/apportion/internal/visible"
)

// Waited says since when a job waits, and for which causes in turn. begins is when its history begins, and clock writes times.
func Waited(j *apportionv1alpha1.JobHistory, begins int64, clock func(int64) string) string {
	since := clock(j.GetSince())
	if j.GetSince() == begins {
		since += Say("orLonger")
	}
	var wait []*apportionv1alpha1.CauseInterval
	merged := 0
	for _, one := range j.GetIntervals() {
		if one.GetEndTime() > j.GetSince() || one.GetLasts() {
			wait, merged = append(wait, one), merged+int(one.GetMerged())
		}
	}
	start := Say("waitsSince", "since", since)
	switch j.GetState() {
	case apportionv1alpha1.WaitState_WAIT_STATE_ENDED:
		start = Say("waitedUntil", "since", since, "end", clock(j.GetEnded()))
	case apportionv1alpha1.WaitState_WAIT_STATE_GONE:
		start = Say("goneSince", "since", since, "end", clock(j.GetEnded()))
	default:
	}
	const named = 3
	if more := len(wait) - named; more > 0 || merged > 0 {
		start += fmt.Sprintf(", for %d causes in turn", len(wait)+merged)
		wait = wait[max(more, 0):]
	}
	return visible.Text(start + inTurn(wait, clock) + ".")
}

// inTurn says what was waited for.
func inTurn(wait []*apportionv1alpha1.CauseInterval, clock func(int64) string) string {
	if len(wait) == 1 {
		return " " + OfOne(wait[0].GetText())
	}
	parts := make([]string, len(wait))
	for i, one := range wait {
		switch {
		case i < len(wait)-1 || !one.GetLasts():
			parts[i] = "until " + clock(one.GetEndTime()) + " " + OfOne(one.GetText())
		default:
			parts[i] = "since then " + OfOne(one.GetText())
		}
	}
	return ": " + strings.Join(parts, ", ")
}

// Reaches says how far back a history reaches, and of which time it knows nothing.
func Reaches(h *apportionv1alpha1.GetHistoryResponse, clock func(int64) string) string {
	known := Say("known", "begins", clock(h.GetBegins()))
	switch {
	case h.GetStarted() == h.GetBegins():
		known += Say("knownStart")
	case h.GetStarted() != 0:
		known += Say("knownFile", "started", clock(h.GetStarted()))
	}
	if n := len(h.GetGaps()); n > 0 {
		last := h.GetGaps()[n-1]
		known += Say("knownGap", "from", clock(last.GetStartTime()), "until", clock(last.GetEndTime()))
		if n > 1 {
			known += Say("knownGaps", "times", Count(n-1, "time"))
		}
	}
	return known + "."
}
