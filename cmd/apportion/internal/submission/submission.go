// Package submission reads a job that is not in the cluster yet, as its owner would submit it.
package submission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/client/lookup"
	"github.com/apportion/apportion/cmd/apportion/internal/document"
	"github.com/apportion/apportion/cmd/apportion/internal/scenario"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Submission is a job and the cluster that it is to enter, over the same dimensions.
type Submission struct {
	Cluster  *volcano.Cluster
	Snapshot *lookup.Snapshot
	Job      *apportionv1.Job
}

// Read reads the job of a file, which is one of these: a Volcano Job (batch.volcano.sh), a PodGroup with its Pods, or a job as in a
// scenario file. Its queue and priority class are those of the cluster.
func Read(file string, data []byte, cluster []volcano.Source, options ...volcano.Option) (*Submission, error) {
	documents, err := split(file, data)
	if err != nil {
		return nil, err
	}
	if len(documents) == 1 && field(documents[0], "kind") == nil {
		return plain(file, documents[0], cluster, options)
	}
	sources := []volcano.Source{{Name: file, Data: data}}
	var jobs []*volcanoJob
	for _, document := range documents {
		if kind := field(document, "kind"); kind != nil && kind.Value == "Job" {
			job, err := readVolcanoJob(file, document)
			if err != nil {
				return nil, err
			}
			jobs = append(jobs, job)
		}
	}
	switch {
	case len(jobs) > 0 && len(documents) > 1:
		return nil, &document.FaultError{File: file, Message: "a Job stands alone in its file"}
	case len(jobs) == 1:
		if sources, err = jobs[0].expand(file); err != nil {
			return nil, err
		}
	}
	submission, err := among(file, sources, cluster, options)
	if err == nil && len(jobs) == 1 {
		jobs[0].setMinimum(submission)
	}
	return submission, err
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
	return &Submission{Cluster: cluster, Snapshot: snapshot, Job: job}, nil
}

// among reads the job's objects together with the cluster's, and takes the job out again.
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
		var messages []string
		for _, warning := range together.Warnings[len(before.Warnings):] {
			messages = append(messages, warning.GetMessage())
		}
		if len(messages) == 0 {
			messages = []string{"neither a Job nor a PodGroup is in it"}
		}
		return nil, &document.FaultError{File: file, Message: strings.Join(messages, "; ")}
	}
	if len(added) > 1 {
		return nil, &document.FaultError{File: file, Message: fmt.Sprintf("%d jobs are in it; one is expected", len(added))}
	}
	snapshot.Jobs = kept
	return &Submission{Cluster: together, Snapshot: lookup.Of(snapshot), Job: added[0]}, nil
}

// volcanoJob is what is read of a Job of Volcano.
type volcanoJob struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		Queue             string        `json:"queue"`
		MinAvailable      *int32        `json:"minAvailable"`
		PriorityClassName string        `json:"priorityClassName"`
		Tasks             []volcanoTask `json:"tasks"`
	} `json:"spec"`
}

type volcanoTask struct {
	Name         string `json:"name"`
	Replicas     *int32 `json:"replicas"`
	MinAvailable *int32 `json:"minAvailable"`
	Template     struct {
		Metadata map[string]any `json:"metadata"`
		Spec     map[string]any `json:"spec"`
	} `json:"template"`
}

const volcanoJobs = "batch.volcano.sh/"

func readVolcanoJob(file string, root *yaml.Node) (*volcanoJob, error) {
	if version := field(root, "apiVersion"); version == nil || !strings.HasPrefix(version.Value, volcanoJobs) {
		return nil, &document.FaultError{File: file, Line: root.Line, Message: "a Job of " + volcanoJobs + "v1alpha1 is expected"}
	}
	var content map[string]any
	if err := root.Decode(&content); err != nil {
		return nil, &document.FaultError{File: file, Line: root.Line, Message: "not a Job: " + err.Error()}
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, &document.FaultError{File: file, Line: root.Line, Message: "not a Job: " + err.Error()}
	}
	job := &volcanoJob{}
	if err := json.Unmarshal(raw, job); err != nil {
		if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			message := "a " + mismatch.Value + " is not expected"
			return nil, &document.FaultError{File: file, Line: root.Line, Key: mismatch.Field, Message: message}
		}
		return nil, &document.FaultError{File: file, Line: root.Line, Message: "not a Job: " + err.Error()}
	}
	if job.Metadata.Namespace == "" {
		job.Metadata.Namespace = "default"
	}
	err = job.complete(file, root)
	return job, err
}

// complete writes out the defaults that Volcano's webhook sets, and refuses what nobody could run.
func (j *volcanoJob) complete(file string, root *yaml.Node) error {
	tasks := field(field(root, "spec"), "tasks")
	total := int32(0)
	for i := range j.Spec.Tasks {
		t := &j.Spec.Tasks[i]
		if t.Name == "" {
			t.Name = fmt.Sprintf("default%d", i)
		}
		if t.Replicas == nil {
			t.Replicas = new(int32(1))
		}
		if *t.Replicas < 0 || *t.Replicas > maxReplicas {
			return &document.FaultError{
				File: file, Line: tasks.Content[i].Line, Key: fmt.Sprintf("spec.tasks[%d].replicas", i),
				Message: fmt.Sprintf("not between 0 and %d", maxReplicas),
			}
		}
		if t.MinAvailable == nil {
			t.MinAvailable = t.Replicas
		}
		total += *t.Replicas
	}
	if j.Spec.MinAvailable == nil {
		j.Spec.MinAvailable = &total
	}
	return nil
}

// maxReplicas bounds how many pods a job has.
const maxReplicas = 100_000

// expand writes the PodGroup and the Pods that Volcano makes of the job.
func (j *volcanoJob) expand(file string) ([]volcano.Source, error) {
	minimum := make(map[string]int32, len(j.Spec.Tasks))
	for i := range j.Spec.Tasks {
		minimum[j.Spec.Tasks[i].Name] = *j.Spec.Tasks[i].MinAvailable
	}
	spec := map[string]any{"minMember": *j.Spec.MinAvailable, "minTaskMember": minimum}
	if j.Spec.Queue != "" {
		spec["queue"] = j.Spec.Queue
	}
	if j.Spec.PriorityClassName != "" {
		spec["priorityClassName"] = j.Spec.PriorityClassName
	}
	group, err := json.Marshal(map[string]any{
		"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
		"metadata": map[string]any{"name": j.Metadata.Name, "namespace": j.Metadata.Namespace},
		"spec":     spec, "status": map[string]any{"phase": "Pending"},
	})
	if err != nil {
		return nil, err
	}
	sources := []volcano.Source{{Name: file + " (its PodGroup)", Data: group}}
	for i := range j.Spec.Tasks {
		t := &j.Spec.Tasks[i]
		var pods bytes.Buffer
		for k := range *t.Replicas {
			pod, err := json.Marshal(j.pod(t, k))
			if err != nil {
				return nil, err
			}
			pods.Write(pod)
			pods.WriteByte('\n')
		}
		sources = append(sources, volcano.Source{Name: fmt.Sprintf("%s (pods of task %s)", file, t.Name), Data: pods.Bytes()})
	}
	return sources, nil
}

// pod is a pod of a task, named and labelled as Volcano does it.
func (j *volcanoJob) pod(t *volcanoTask, index int32) map[string]any {
	annotations := map[string]any{"scheduling.k8s.io/group-name": j.Metadata.Name, "volcano.sh/task-spec": t.Name}
	if given, ok := t.Template.Metadata["annotations"].(map[string]any); ok {
		for key, value := range given {
			if _, taken := annotations[key]; !taken {
				annotations[key] = value
			}
		}
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": fmt.Sprintf("%s-%s-%d", j.Metadata.Name, t.Name, index), "namespace": j.Metadata.Namespace,
			"annotations": annotations, "labels": t.Template.Metadata["labels"],
		},
		"spec": t.Template.Spec, "status": map[string]any{"phase": "Pending"},
	}
}

// setMinimum gives the job the minimum resources that Volcano's controller writes: those of each task's minimum, then of further pods in
// the order of the tasks until the job's minimum is reached; or just of the job's first pods if the tasks' minima are more than the
// job's.
func (j *volcanoJob) setMinimum(s *Submission) {
	asked, total := make(map[string]int32, len(j.Spec.Tasks)), int32(0)
	for i := range j.Spec.Tasks {
		asked[j.Spec.Tasks[i].Name] = *j.Spec.Tasks[i].MinAvailable
		total += *j.Spec.Tasks[i].MinAvailable
	}
	left := *j.Spec.MinAvailable
	amounts := make([]float64, len(s.Snapshot.GetDimensions()))
	count := func(group *apportionv1.TaskGroup, tasks int32) {
		left -= tasks
		for i, index := range group.GetRequest().GetDimension() {
			amounts[index] += float64(tasks) * group.GetRequest().GetAmount()[i]
		}
	}
	if left >= total {
		for _, group := range s.Job.GetGroups() {
			count(group, asked[group.GetRole()])
		}
	} else {
		clear(asked)
	}
	for _, group := range s.Job.GetGroups() {
		count(group, max(0, min(left, int32(len(group.GetTasks()))-asked[group.GetRole()])))
	}
	minimum := &apportionv1.Resource{}
	for index, amount := range amounts {
		if name := s.Snapshot.GetDimensions()[index]; name != "pods" && amount > 0 {
			minimum.Dimension, minimum.Amount = append(minimum.Dimension, uint32(index)), append(minimum.Amount, amount)
		}
	}
	s.Job.MinResources = minimum
}
