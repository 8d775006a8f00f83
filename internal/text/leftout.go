package text

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/visible"
)

// Named is the text about the jobs that were named, a line for each.
func Named(a *apportionv1.ExplainAnswer) string {
	var lines []string
	for _, e := range a.GetJobs() {
		lines = append(lines, e.GetText())
	}
	for _, l := range a.GetLeftOuts() {
		lines = append(lines, l.GetText())
	}
	return strings.Join(lines, "\n")
}

// LeftOut says why the scheduler does not consider a job or a pod.
func LeftOut(e *apportionv1.LeftOutExplanation) string { return visible.Text(leftOut(e)) }

func leftOut(e *apportionv1.LeftOutExplanation) string {
	l := e.GetLeftOut()
	name := l.GetName()
	if l.GetNamespace() != "" {
		name = l.GetNamespace() + "/" + name
	}
	switch l.GetCause() {
	case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNKNOWN_QUEUE:
		like := ""
		if e.GetSimilarQueue() != "" {
			like = fmt.Sprintf(" Did you mean %q?", e.GetSimilarQueue())
		}
		if l.GetDetail() != "" {
			return fmt.Sprintf("%s waits: %s.%s", name, strings.TrimSuffix(l.GetDetail(), "."), like)
		}
		return fmt.Sprintf("%s waits because its queue %q does not exist.%s", name, l.GetQueue(), like)
	case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_NO_JOB:
		return fmt.Sprintf("The pod %s waits because it belongs to no job: it has no PodGroup.", name)
	case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_MISSING_JOB:
		return fmt.Sprintf("The pod %s waits because its PodGroup %s does not exist.", name, l.GetJob())
	case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_OTHER_SCHEDULER:
		return fmt.Sprintf("The pod %s is left to another scheduler: its schedulerName is %s.", name, l.GetScheduler())
	case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID:
		return fmt.Sprintf("The %s %s is left out and is not judged: %s.", l.GetKind(), name, strings.TrimSuffix(l.GetDetail(), "."))
	case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNREAD:
		return capital(unread(l)) + "."
	default:
		return name + " is not considered."
	}
}

// unread says which kind was not read, and why.
func unread(l *apportionv1.LeftOut) string {
	words := "no " + l.GetKind() + " was read"
	if l.GetDetail() != "" {
		words += ": " + strings.TrimSuffix(l.GetDetail(), ".")
	}
	return words
}

// Unread says that an answer is not known without kinds that were not read; "" if there are none.
func Unread(kinds []*apportionv1.LeftOut) string {
	if len(kinds) == 0 {
		return ""
	}
	words := make([]string, len(kinds))
	for i, l := range kinds {
		words[i] = unread(l)
	}
	return visible.Text("the answer is not known, because " + strings.Join(words, "; "))
}

// notConsidered counts what the scheduler does not consider: pods by the schedulers that they are left to, and the rest.
func notConsidered(list []*apportionv1.LeftOutExplanation) string {
	pods, rest, invalid := map[string]int{}, 0, 0
	for _, l := range list {
		switch l.GetLeftOut().GetCause() {
		case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_OTHER_SCHEDULER:
			pods[l.GetLeftOut().GetScheduler()]++
		case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID:
			invalid++
		default:
			rest++
		}
	}
	var parts []string
	for _, scheduler := range slices.Sorted(maps.Keys(pods)) {
		parts = append(parts, Count(pods[scheduler], "waiting pod")+" of scheduler "+visible.Text(scheduler))
	}
	if rest > 0 {
		parts = append(parts, Count(rest, Verb(rest, "job or pod", "jobs and pod")))
	}
	if invalid > 0 {
		parts = append(parts, Count(invalid, "invalid object"))
	}
	if len(parts) == 0 {
		return ""
	}
	return and(parts) + " " + plural2(len(list), "is", "are") + " not considered"
}
