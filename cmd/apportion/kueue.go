package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apportion/apportion/adapter/kueue"
	"github.com/apportion/apportion/adapter/manifest"
	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode/kueue/asfair"
	"github.com/apportion/apportion/internal/lookup"
)

// kueuePolicy is the preset for manifests of Kueue.
const kueuePolicy = "kueue"

// byKueue reports whether a policy is that of Kueue.
func byKueue(policy *apportionv1.Policy) bool {
	return slices.ContainsFunc(policy.GetTiers(), func(tier *apportionv1.Tier) bool {
		return slices.ContainsFunc(tier.GetPlugins(), func(p *apportionv1.Plugin) bool { return p.GetKueue() != nil })
	})
}

// byFair reports whether a policy divides by fair.
func byFair(policy *apportionv1.Policy) bool {
	return slices.ContainsFunc(policy.GetTiers(), func(tier *apportionv1.Tier) bool {
		return slices.ContainsFunc(tier.GetPlugins(), func(p *apportionv1.Plugin) bool { return p.GetFair() != nil })
	})
}

// noted returns warnings that say what of a cluster of Kueue has no counterpart.
func noted(notes []string) []*apportionv1.Warning {
	var warnings []*apportionv1.Warning
	for _, note := range notes {
		warnings = append(warnings, &apportionv1.Warning{Message: note})
	}
	return warnings
}

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

// workloadOf returns the name of the workload that an object owns: of a name KIND/NAME in a namespace, or in any if that is "".
func workloadOf(s *lookup.Snapshot, namespace, name string) (string, error) {
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

// turnToKueue returns the question about Kueue's workloads, if the input has objects of Kueue and Volcano and Kueue has a workload of a
// name of the form KIND/NAME; otherwise the question itself.
func (q *question) turnToKueue(namespace, name string) (*question, error) {
	if kind, _ := kindAndName(name); kind == "" || q.both == nil {
		return q, nil
	}
	preset, _ := client.Preset(kueuePolicy)
	loaded, err := q.asking.input.readKueue(q.both, preset)
	if err != nil {
		return nil, err
	}
	id, err := workloadOf(loaded.snapshot, namespace, name)
	if kind, _ := kindAndName(name); err != nil && kind != "workload" {
		return q, nil
	}
	if _, err := loaded.snapshot.Job(id); err != nil && !loaded.snapshot.LeftOut(id) {
		return q, nil
	}
	return &question{asking: q.asking, input: loaded, decider: q.decider}, nil
}

// readKueue returns the input from manifests of Kueue.
func (f *inputFlags) readKueue(sources []objects.Source, policy *apportionv1.Policy) (*input, error) {
	moment, given, err := f.moment(policy)
	if err != nil {
		return nil, err
	}
	if !given {
		moment = time.Now()
	}
	options := []kueue.Option{kueue.WithUnread(f.missing)}
	if !f.strict {
		options = append(options, kueue.LeaveOutFaulty())
	}
	cluster, err := kueue.Read(sources, moment, options...)
	if err != nil {
		return nil, err
	}
	loaded := &input{Input: client.Input{Policy: policy, Snapshot: cluster.Snapshot}, warnings: slices.Clone(f.unread)}
	if f.joined || !byKueue(policy) {
		translation, err := asfair.Of(cluster.Snapshot)
		if err != nil {
			return nil, err
		}
		if loaded.Snapshot = translation.Snapshot; f.joined {
			loaded.Snapshot = asfair.Both(cluster.Snapshot, translation)
		}
		if !byKueue(policy) {
			loaded.warnings = append(loaded.warnings, noted(translation.Notes)...)
		}
	}
	loaded.snapshot = lookup.Of(loaded.Snapshot)
	loaded.warnings = append(loaded.warnings, manifest.LeftOutOfKueue(cluster)...)
	return loaded, nil
}
