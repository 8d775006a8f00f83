// Package manifest says of manifests, before and after their reader has read them, whose objects they hold, and what they lack. The command
// line and the page in a browser read the same manifests by it, and give the same warnings.
package manifest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/text"
)

// volcanoGroup is in each object of Volcano that a scheduler reads.
const volcanoGroup = "scheduling.volcano.sh/"

// OfKueue reports whether manifests have objects of Kueue and none of Volcano.
func OfKueue(sources []objects.Source) bool {
	found := false
	for _, s := range sources {
		if bytes.Contains(s.Data, []byte(volcanoGroup)) {
			return false
		}
		found = found || kueue.Recognizes(s.Data)
	}
	return found
}

// OfBoth reports whether manifests have objects of Kueue and of Volcano.
func OfBoth(sources []objects.Source) bool {
	kueues, volcanos := false, false
	for _, s := range sources {
		kueues = kueues || kueue.Recognizes(s.Data)
		volcanos = volcanos || bytes.Contains(s.Data, []byte(volcanoGroup))
	}
	return kueues && volcanos
}

// ShareOfKueue says which of the workloads of Kueue wait for Kueue, in an input that is judged by another policy.
func ShareOfKueue(sources []objects.Source, now time.Time) []*apportionv1.Warning {
	cluster, err := kueue.Read(sources, now, kueue.LeaveOutFaulty())
	if err != nil || len(cluster.Snapshot.GetJobs()) == 0 {
		return nil
	}
	waiting := 0
	for _, job := range cluster.Snapshot.GetJobs() {
		if !job.GetKueue().GetAdmitted() {
			waiting++
		}
	}
	return []*apportionv1.Warning{{Message: fmt.Sprintf(
		"Kueue has %s in this cluster, of which %d wait: --policy kueue judges them, and this answer is about Volcano's jobs",
		text.Count(len(cluster.Snapshot.GetJobs()), "workload"), waiting)}}
}

// named is the number of objects that are left out and named in warnings; the others are counted.
const named = 10

// LeftOutOfKueue returns warnings that name the first objects of Kueue that are left out, and count the others, and
// those that name flavors without nodes.
func LeftOutOfKueue(c *kueue.Cluster) []*apportionv1.Warning {
	warnings := append(LeftOut(c.Faulty), c.Warnings...)
	if !c.HasWorkloads && len(c.Snapshot.GetQueues()) > 0 {
		none := &apportionv1.Warning{Message: "no Workload is in the input: if the cluster has workloads, answers lack them " +
			"(kind: WorkloadList without items says that it has none)"}
		warnings = append([]*apportionv1.Warning{none}, warnings...)
	}
	var messages []string
	for _, name := range c.WithoutNodes {
		warnings = append(warnings, &apportionv1.Warning{
			Message: "ResourceFlavor " + name + ": no node has its labels now, and pods that are admitted in it wait for one",
		})
	}
	for _, l := range c.Snapshot.GetLeftOuts() {
		switch l.GetCause() {
		case apportionv1.LeftOutCause_LEFT_OUT_CAUSE_INVALID, apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNREAD:
		default:
			messages = append(messages, text.LeftOut(&apportionv1.LeftOutExplanation{LeftOut: l}))
		}
	}
	return append(warnings, firstOf(messages, "workload")...)
}

// firstOf returns the first warnings of a list, and one that counts the others.
func firstOf(messages []string, noun string) []*apportionv1.Warning {
	var warnings []*apportionv1.Warning
	for _, message := range messages[:min(named, len(messages))] {
		warnings = append(warnings, &apportionv1.Warning{Code: apportionv1.WarningCode_WARNING_CODE_DROPPED, Message: message})
	}
	if more := len(messages) - named; more > 0 {
		warnings = append(warnings, &apportionv1.Warning{
			Code: apportionv1.WarningCode_WARNING_CODE_TRUNCATED, Message: text.Are(more, "more "+noun) + " left out",
		})
	}
	return warnings
}

// LeftOut returns warnings that name the first objects that are left out, and count the others.
func LeftOut(list []*objects.Faulty) []*apportionv1.Warning {
	var warnings []*apportionv1.Warning
	for _, faulty := range list[:min(named, len(list))] {
		warnings = append(warnings, &apportionv1.Warning{
			Code: apportionv1.WarningCode_WARNING_CODE_DROPPED, Path: faulty.At.String(), Message: "left out: " + faulty.String(),
		})
	}
	if more := len(list) - named; more > 0 {
		warnings = append(warnings, &apportionv1.Warning{
			Code: apportionv1.WarningCode_WARNING_CODE_TRUNCATED, Message: text.Are(more, "more object") + " left out",
		})
	}
	return warnings
}

// NoNode is the warning about manifests without nodes.
const NoNode = "no Node is in the input: nothing is judged that depends on nodes"

// Missing returns an error if the manifests contain no object, and otherwise warnings about missing kinds, except about those of which it
// was said why they may not be read. hint ends the error: what a person does about it.
func Missing(sources []objects.Source, cluster *volcano.Cluster, said map[string]string, hint string) ([]*apportionv1.Warning, error) {
	var lines []string
	var warnings []*apportionv1.Warning
	for _, source := range sources {
		if !slices.Contains(cluster.Empty, source.Name) {
			continue
		}
		what := "holds no object of Kubernetes, such as a list without items"
		if len(bytes.TrimSpace(source.Data)) == 0 {
			what = "is empty"
		}
		lines = append(lines, source.Name+" "+what)
		warnings = append(warnings, &apportionv1.Warning{Path: source.Name, Message: "the file " + what})
	}
	if len(sources) > 0 && len(cluster.Empty) == len(sources) {
		return nil, fmt.Errorf("no input: %s; %s", strings.Join(lines, ", "), hint)
	}
	return append(warnings, missing(cluster, said)...), nil
}

// missing returns warnings about kinds of which no object was read. What proves that the cluster has some is in the snapshot, and makes
// answers unknown.
func missing(cluster *volcano.Cluster, said map[string]string) []*apportionv1.Warning {
	snapshot := cluster.Snapshot
	unread := map[string]*apportionv1.LeftOut{}
	kinds, _ := lookup.Unread(snapshot)
	for _, l := range kinds {
		unread[l.GetKind()] = l
	}
	var warnings []*apportionv1.Warning
	for _, kind := range []struct {
		name   string
		absent bool
		words  string
	}{
		{"Queue", len(snapshot.GetQueues()) == 0, "no Queue is in the input: no job has a queue to be in"},
		{"PodGroup", false, ""},
		{"Pod", len(snapshot.GetJobs()) > 0 && !cluster.HasPods, "no Pod is in the input: if the cluster has pods, answers lack them " +
			"(kind: PodList without items says that it has none)"},
		{"Node", len(snapshot.GetNodes()) == 0, NoNode},
		{"PriorityClass", false, ""},
	} {
		if l := unread[kind.name]; said[kind.name] != "" {
			continue
		} else if l != nil {
			warnings = append(warnings, &apportionv1.Warning{Message: text.LeftOut(&apportionv1.LeftOutExplanation{LeftOut: l})})
		} else if kind.absent {
			warnings = append(warnings, &apportionv1.Warning{Message: kind.words})
		}
	}
	return warnings
}
