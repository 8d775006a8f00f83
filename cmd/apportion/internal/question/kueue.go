package question

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/manifest"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/cmd/apportion/internal/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode/kueue/asfair"
	"github.com/apportion/apportion/internal/lookup"
)

// kueuePolicy is the preset for manifests of Kueue.
const kueuePolicy = "kueue"

// kindsOfOwners are the kinds whose objects Kueue makes workloads for, as people write them.
var kindsOfOwners = []string{
	"job", "jobset", "rayjob", "raycluster", "rayservice", "pytorchjob", "tfjob", "xgboostjob", "paddlejob", "jaxjob", "mpijob", "trainjob",
	"appwrapper", "pod", "deployment", "statefulset", "leaderworkerset", "sparkapplication",
}

// kindAndName parts KIND/NAME and KIND/NAMESPACE/NAME of a workload or of an object that may own one. kind is "" for other names.
func kindAndName(name string) (kind, rest string) {
	first, rest, parted := strings.Cut(name, "/")
	first = strings.ToLower(first)
	if parted && (first == "workload" || slices.Contains(kindsOfOwners, first)) {
		return first, rest
	}
	return "", name
}

// WorkloadOf returns the name of the workload that an object owns: of a name KIND/NAME in a namespace, or in any if that is "".
func WorkloadOf(s *lookup.Snapshot, namespace, name string) (string, error) {
	kind, rest := kindAndName(name)
	if kind == "" || s.Has("job", name) {
		return name, nil
	}
	if in, of, parted := strings.Cut(rest, "/"); parted {
		namespace, rest = in, of
	}
	if kind == "workload" {
		if namespace != "" {
			rest = namespace + "/" + rest
		}
		return rest, nil
	}
	var found []string
	ofKueue := false
	for _, job := range s.GetJobs() {
		ofKueue = ofKueue || job.GetKueue() != nil
		if namespace != "" && job.GetNamespace() != namespace {
			continue
		}
		for _, origin := range job.GetKueue().GetOrigins() {
			if strings.EqualFold(origin.GetKind(), kind) && origin.GetName() == rest {
				found = append(found, lookup.JobName(job))
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fmt.Errorf("%s owns %d workloads: name one of %s", name, len(found), strings.Join(found, ", "))
	case !ofKueue && namespace != "":
		return namespace + "/" + rest, nil
	case !ofKueue:
		return rest, nil
	case namespace != "":
		return "", fmt.Errorf("no workload is owned by %s %s in namespace %s", kind, rest, namespace)
	}
	return "", fmt.Errorf("no workload is owned by a %s named %s", kind, rest)
}

// AboutJob returns the question about a job, and its name: that of the workload that an object KIND/NAME owns. If the input has objects of
// Kueue and Volcano, and Kueue has such a workload, it is the question about Kueue's workloads, otherwise the question itself.
func (q *Question) AboutJob(namespace, name string) (*Question, string, error) {
	about, err := q.turnToKueue(namespace, name)
	if err != nil {
		return nil, "", err
	}
	name, err = WorkloadOf(about.Lookup, namespace, name)
	return about, name, err
}

// turnToKueue returns the question about Kueue's workloads, or the question itself.
func (q *Question) turnToKueue(namespace, name string) (*Question, error) {
	if kind, _ := kindAndName(name); kind == "" || q.both == nil {
		return q, nil
	}
	preset, _ := client.Preset(kueuePolicy)
	loaded, err := q.From.ReadKueue(q.both, preset)
	if err != nil {
		return nil, err
	}
	id, err := WorkloadOf(loaded.Lookup, namespace, name)
	if kind, _ := kindAndName(name); err != nil && kind != "workload" {
		return q, nil
	}
	if _, err := loaded.Lookup.Job(id); err != nil && !loaded.Lookup.LeftOut(id) {
		return q, nil
	}
	return &Question{Asking: q.Asking, Loaded: loaded, Decider: q.Decider}, nil
}

// ReadKueue returns the input from manifests of Kueue.
func (f *InputFlags) ReadKueue(sources []objects.Source, rules *apportionv1.Policy) (*Loaded, error) {
	moment, given, err := f.Moment(rules)
	if err != nil {
		return nil, err
	}
	if !given {
		moment = time.Now()
	}
	options := []kueue.Option{kueue.WithUnread(f.missing)}
	if !f.Strict {
		options = append(options, kueue.LeaveOutFaulty())
	}
	cluster, err := kueue.Read(sources, moment, options...)
	if err != nil {
		return nil, err
	}
	loaded := &Loaded{Input: client.Input{Policy: rules, Snapshot: cluster.Snapshot}, Warnings: slices.Clone(f.unread)}
	if f.Joined || !policy.ByKueue(rules) {
		translation := asfair.Of(cluster.Snapshot)
		if loaded.Snapshot = translation.Snapshot; f.Joined {
			loaded.Snapshot = asfair.Both(cluster.Snapshot, translation)
		}
		if !policy.ByKueue(rules) {
			loaded.Warnings = append(loaded.Warnings, Noted(translation.Notes)...)
		}
	}
	loaded.Lookup = lookup.Of(loaded.Snapshot)
	loaded.Warnings = append(loaded.Warnings, manifest.LeftOutOfKueue(cluster)...)
	return loaded, nil
}
