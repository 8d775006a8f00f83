// Package submission reads a job that is not in the cluster yet from the manifest that its owner would submit.
package submission

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/cmd/apportion/internal/scenario"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/spelling"
	"github.com/apportion/apportion/internal/text"
	"github.com/apportion/apportion/internal/tree"
)

// Submission contains the jobs of a file and their cluster, with the same dimensions.
type Submission struct {
	Cluster  *volcano.Cluster
	Snapshot *lookup.Snapshot
	// Jobs contains the jobs of the file, in the order in which they are submitted: one, or several of a JobSet.
	Jobs []*apportionv1.Job
	// Warnings are about the file, not about the cluster.
	Warnings []*apportionv1.Warning
}

// Read reads the jobs of a file. The file holds one workload: a Volcano Job, a PodGroup with its Pods, a workload of another kind (see
// Kinds), or a job as in a scenario file; and other objects, such as its queue. The queue and the priority class are those of the cluster.
func Read(file string, data []byte, cluster []objects.Source, options ...volcano.Option) (*Submission, error) {
	documents, err := split(file, data)
	if err != nil {
		return nil, err
	}
	if _, named := documents[0].Field("kind"); len(documents) == 1 && !named {
		return plain(documents[0], cluster, options)
	}
	workload, others, err := only(documents)
	if err != nil {
		return nil, err
	}
	var groups []*group
	var warnings []*apportionv1.Warning
	sources := []objects.Source{{Name: file, Data: data}}
	if workload != nil {
		if groups, err = kindOf(workload.root)(workload); err != nil {
			return nil, err
		}
		if warnings, err = workload.checkScheduler(groups, options); err != nil {
			return nil, err
		}
		if sources, err = expand(file, groups); err != nil {
			return nil, err
		}
		if len(others) > 0 {
			data, err := written(others)
			if err != nil {
				return nil, err
			}
			sources = append(sources, objects.Source{Name: file, Data: data})
		}
	}
	submission, err := among(file, sources, cluster, options)
	if err != nil {
		return nil, err
	}
	submission.Warnings = warnings
	for i, job := range submission.Jobs {
		if i < len(groups) {
			groups[i].complete(submission.Snapshot, job)
		}
	}
	return submission, nil
}

// only returns the workload of a file and the other objects, such as the queue that it enters; nil: there is none.
func only(documents []tree.Node) (of *workload, others []tree.Node, err error) {
	for _, root := range documents {
		switch {
		case kindOf(root) == nil:
			if err := unreadable(root); err != nil {
				return nil, nil, err
			}
			others = append(others, root)
		case of != nil:
			return nil, nil, root.Fault("a %s must be the only workload in its file", textOf(root, "kind"))
		default:
			of = &workload{root: root}
		}
	}
	for _, root := range others {
		if kind := textOf(root, "kind"); of != nil && (kind == "Pod" || kind == "PodGroup") {
			return nil, nil, root.Fault("a %s must be the only workload in its file", textOf(of.root, "kind"))
		}
	}
	return of, others, nil
}

// written writes a stream of documents.
func written(documents []tree.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	for _, root := range documents {
		if err := encoder.Encode(root.Node); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), encoder.Close()
}

// unreadable returns an error for kinds that create pods and are not supported. Other objects are left to the reader of manifests.
func unreadable(root tree.Node) error {
	kind, named := root.Field("kind")
	spec, _ := root.Field("spec")
	if _, makesPods := spec.Field("template"); !named || !makesPods && !strings.HasSuffix(kind.Value, "Job") {
		return nil
	}
	version := textOf(root, "apiVersion")
	if version != "" {
		version += " "
	}
	return root.FaultAt("kind", "%s%s is not read; there are %s, or a PodGroup with its Pods",
		version, kind.Value, strings.Join(Kinds(), ", "))
}

// split parses a stream of documents, the items of lists one by one.
func split(file string, data []byte) ([]tree.Node, error) {
	roots, err := tree.ParseAll(file, data)
	if err != nil {
		return nil, err
	}
	var list []tree.Node
	for _, root := range roots {
		items, _ := root.Field("items")
		if items.Node == nil || items.Kind != yaml.SequenceNode {
			list = append(list, root)
			continue
		}
		for _, item := range items.Content {
			list = append(list, tree.Node{Node: item, Source: file})
		}
	}
	if len(list) == 0 {
		return nil, &tree.Fault{Source: file, Text: "nothing is in it"}
	}
	return list, nil
}

// textOf returns the text of a field, "" if there is none.
func textOf(n tree.Node, key string) string {
	if value, ok := n.Field(key); ok {
		return value.Value
	}
	return ""
}

// plain reads a job as in a scenario file.
func plain(root tree.Node, sources []objects.Source, options []volcano.Option) (*Submission, error) {
	cluster, err := volcano.ReadManifests(sources, options...)
	if err != nil {
		return nil, err
	}
	snapshot := lookup.Of(cluster.Snapshot)
	job, err := scenario.Job(snapshot, root)
	if err != nil {
		return nil, err
	}
	if _, err := snapshot.Queue(job.GetQueue()); err != nil {
		queue := root.At("queue")
		queue.Path = "queue"
		return nil, queue.Fault("%v", err)
	}
	return &Submission{Cluster: cluster, Snapshot: snapshot, Jobs: []*apportionv1.Job{job}}, nil
}

// among reads the job's objects together with those of the cluster, and removes the jobs from the result.
func among(file string, job, cluster []objects.Source, options []volcano.Option) (*Submission, error) {
	before, err := volcano.ReadManifests(cluster, options...)
	if err != nil {
		return nil, err
	}
	together, err := volcano.ReadManifests(append(append([]objects.Source{}, cluster...), job...), options...)
	if err != nil {
		return nil, err
	}
	for _, source := range job {
		if err := together.Fault(source.Name); err != nil {
			return nil, err
		}
	}
	known := make(map[string]bool, len(before.Snapshot.GetJobs()))
	for _, j := range before.Snapshot.GetJobs() {
		known[lookup.JobName(j)] = true
	}
	snapshot := together.Snapshot
	var added, kept []*apportionv1.Job
	for _, j := range snapshot.GetJobs() {
		if known[lookup.JobName(j)] {
			kept = append(kept, j)
		} else {
			added = append(added, j)
		}
	}
	kinds, _ := lookup.Unread(before.Snapshot)
	if len(added) == 0 {
		why := whyNone(before, together)
		if len(kinds) > 0 {
			why = text.Unread(kinds) + "; " + why
		}
		return nil, &tree.Fault{Source: file, Text: why}
	}
	snapshot.Jobs = kept
	// What of the cluster was not read is not read with the job either.
	_, rest := lookup.Unread(snapshot)
	snapshot.LeftOuts = slices.Concat(kinds, rest)
	return &Submission{Cluster: together, Snapshot: lookup.Of(snapshot), Jobs: added}, nil
}

// whyNone returns why a file contains no job: its objects were left out, or none of them is a job.
func whyNone(before, together *volcano.Cluster) string {
	known := make(map[string]bool, len(before.Snapshot.GetLeftOuts()))
	for _, l := range before.Snapshot.GetLeftOuts() {
		known[l.GetNamespace()+"/"+l.GetName()] = true
	}
	queues := make([]string, 0, len(together.Snapshot.GetQueues()))
	for _, q := range together.Snapshot.GetQueues() {
		queues = append(queues, q.GetName())
	}
	for _, l := range together.Snapshot.GetLeftOuts() {
		if known[l.GetNamespace()+"/"+l.GetName()] || l.GetCause() != apportionv1.LeftOutCause_LEFT_OUT_CAUSE_UNKNOWN_QUEUE {
			continue
		}
		like := spelling.Suggestion(l.GetQueue(), slices.Values(queues))
		if like == "" {
			like = "; there are " + strings.Join(queues, ", ")
		}
		return fmt.Sprintf("%s/%s is to enter queue %q, which does not exist%s", l.GetNamespace(), l.GetName(), l.GetQueue(), like)
	}
	return "no job is in it; there are " + strings.Join(Kinds(), ", ") + ", or a PodGroup with its Pods"
}
