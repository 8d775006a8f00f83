// Package submission reads a job that is not in the cluster yet, as its owner would submit it.
package submission

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	"github.com/apportion/apportion/cmd/apportion/internal/scenario"
	"github.com/apportion/apportion/contract/lookup"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/spelling"
)

// Submission is the jobs of a file and the cluster that they are to enter, over the same dimensions.
type Submission struct {
	Cluster  *volcano.Cluster
	Snapshot *lookup.Snapshot
	// Jobs are those that the file makes, in the order in which they are submitted: one, or several of a JobSet.
	Jobs []*apportionv1.Job
	// Warnings are about the file, not about the cluster.
	Warnings []*apportionv1.Warning
}

// Read reads the jobs of a file. The file holds one workload: a Volcano Job, a PodGroup with its Pods, a workload of another kind (see
// Kinds), or a job as in a scenario file. The queue and the priority class are those of the cluster.
func Read(file string, data []byte, cluster []volcano.Source, options ...volcano.Option) (*Submission, error) {
	documents, err := split(file, data)
	if err != nil {
		return nil, err
	}
	if len(documents) == 1 && field(documents[0], "kind") == nil {
		return plain(file, documents[0], cluster, options)
	}
	var groups []*group
	var warnings []*apportionv1.Warning
	for _, root := range documents {
		read := kindOf(root)
		if read == nil {
			if err := unreadable(file, root); err != nil {
				return nil, err
			}
			continue
		}
		if len(documents) > 1 {
			message := "a " + field(root, "kind").Value + " stands alone in its file"
			return nil, &document.FaultError{File: file, Line: root.Line, Message: message}
		}
		w := &workload{file: file, root: root}
		if groups, err = read(w); err != nil {
			return nil, err
		}
		if warnings, err = w.checkScheduler(groups, options); err != nil {
			return nil, err
		}
	}
	var sources []volcano.Source
	if groups != nil {
		sources, err = expand(file, groups)
	} else {
		data, err = completed(data, documents)
		sources = []volcano.Source{{Name: file, Data: data}}
	}
	if err != nil {
		return nil, err
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

// unreadable refuses kinds that make pods in a way that is not known here. Objects that make none are left to the reader of manifests.
func unreadable(file string, root *yaml.Node) error {
	kind := field(root, "kind")
	if kind == nil || field(field(root, "spec"), "template") == nil && !strings.HasSuffix(kind.Value, "Job") {
		return nil
	}
	version := ""
	if v := field(root, "apiVersion"); v != nil {
		version = v.Value + " "
	}
	return &document.FaultError{
		File: file, Line: root.Line, Key: "kind",
		Message: fmt.Sprintf("%s%s is not read; there are %s, or a PodGroup with its Pods",
			version, kind.Value, strings.Join(Kinds(), ", ")),
	}
}

// split parses a stream of documents, the items of lists one by one.
func split(file string, data []byte) ([]*yaml.Node, error) {
	var list []*yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			_, fault := document.Parse(file, data)
			return nil, errors.Join(fault)
		}
		for _, content := range root.Content {
			if items := field(content, "items"); items != nil && items.Kind == yaml.SequenceNode {
				list = append(list, items.Content...)
				continue
			}
			list = append(list, content)
		}
	}
	if len(list) == 0 {
		return nil, &document.FaultError{File: file, Message: "nothing is in it"}
	}
	return list, nil
}

// field is the value of a key of a mapping; nil: there is none.
func field(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// plain reads a job as in a scenario file.
func plain(file string, root *yaml.Node, sources []volcano.Source, options []volcano.Option) (*Submission, error) {
	cluster, err := volcano.ReadManifests(sources, options...)
	if err != nil {
		return nil, err
	}
	snapshot := lookup.Of(cluster.Snapshot)
	job, err := scenario.Job(file, snapshot, root, "")
	if err != nil {
		return nil, err
	}
	if _, err := snapshot.Queue(job.GetQueue()); err != nil {
		line := root.Line
		if queue := field(root, "queue"); queue != nil {
			line = queue.Line
		}
		return nil, &document.FaultError{File: file, Line: line, Key: "queue", Message: err.Error()}
	}
	return &Submission{Cluster: cluster, Snapshot: snapshot, Jobs: []*apportionv1.Job{job}}, nil
}

// among reads the job's objects together with the cluster's, and takes the jobs out again.
func among(file string, job, cluster []volcano.Source, options []volcano.Option) (*Submission, error) {
	before, err := volcano.ReadManifests(cluster, options...)
	if err != nil {
		return nil, err
	}
	together, err := volcano.ReadManifests(append(append([]volcano.Source{}, cluster...), job...), options...)
	if err != nil {
		return nil, err
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
	if len(added) == 0 {
		return nil, &document.FaultError{File: file, Message: whyNone(before, together)}
	}
	snapshot.Jobs = kept
	return &Submission{Cluster: together, Snapshot: lookup.Of(snapshot), Jobs: added}, nil
}

// whyNone says why a file makes no job: what it names is left out, or nothing in it is a job.
func whyNone(before, together *volcano.Cluster) string {
	known := make(map[string]bool, len(before.Snapshot.GetLeftOut()))
	for _, l := range before.Snapshot.GetLeftOut() {
		known[l.GetNamespace()+"/"+l.GetName()] = true
	}
	queues := make([]string, 0, len(together.Snapshot.GetQueues()))
	for _, q := range together.Snapshot.GetQueues() {
		queues = append(queues, q.GetName())
	}
	for _, l := range together.Snapshot.GetLeftOut() {
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
