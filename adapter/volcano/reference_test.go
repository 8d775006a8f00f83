package volcano

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// referenceDirectory holds what Volcano itself answered; its README.md tells the form.
const referenceDirectory = "../../testdata/reference"

// referenceCase is the part of a recorded case that says how Volcano read its input.
type referenceCase struct {
	Profile, Name string
	Seed          int
	Conf          string
	Manifests     []json.RawMessage
	Unstable      []string
	Expect        struct {
		Total    *vector
		Tasks    map[string]referenceTask
		JobInfo  map[string]referenceJob
		NodeInfo map[string]referenceNode
		Queues   map[string]map[string]json.RawMessage
	}
}

// vector is a recorded Resource.
type vector struct {
	V         map[string]float64
	Unlimited []string
}

type referenceTask struct {
	BestEffort, Gated, Preemptable bool
	Job, Node, Role, Status        string
	Priority                       int32
	Resreq, InitResreq             vector
}

type referenceJob struct {
	MinAvailable, Priority int32
	MinResources           *vector
	Queue                  string
	TotalRequest           vector
}

type referenceNode struct{ Allocatable, Used vector }

// eachReferenceCase calls f with every recorded case.
func eachReferenceCase(t *testing.T, f func(t *testing.T, c *referenceCase)) {
	files, err := filepath.Glob(filepath.Join(referenceDirectory, "*.jsonl.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl.gz"), func(t *testing.T) {
			t.Parallel()
			packed, err := os.Open(file)
			require.NoError(t, err)
			defer packed.Close()
			plain, err := gzip.NewReader(packed)
			require.NoError(t, err)
			lines := bufio.NewReader(plain)
			for number := 1; ; number++ {
				line, err := lines.ReadBytes('\n')
				if len(line) > 0 {
					var c referenceCase
					require.NoError(t, json.Unmarshal(line, &c))
					t.Run(fmt.Sprintf("line %d %s", number, c.Name), func(t *testing.T) { f(t, &c) })
				}
				if err == io.EOF {
					return
				}
				require.NoError(t, err)
			}
		})
	}
}

func TestManifestsAreReadAsVolcanoReadsThem(t *testing.T) {
	eachReferenceCase(t, func(t *testing.T, c *referenceCase) {
		require.False(t, readingIsUnstable(c), "a case whose reading varied holds nobody to anything")
		cluster, err := FromObjects(c.Manifests, WithAsOf(time.Date(2026, 1, 2, 3, 10, 0, 0, time.UTC)))
		require.NoError(t, err)
		if c.Expect.Tasks == nil {
			t.Skip("Volcano did not get as far as telling what it read")
		}
		s := cluster.Snapshot
		require.Equal(t, *c.Expect.Total, total(s))
		require.Equal(t, c.Expect.Tasks, tasksOf(s, c.Expect.Tasks))
		require.Equal(t, c.Expect.JobInfo, jobsOf(s, c.Expect.JobInfo))
		requireNodes(t, c.Expect.NodeInfo, s)
	})
}

// readingIsUnstable says whether what was recorded of the reading varied from run to run.
func readingIsUnstable(c *referenceCase) bool {
	for _, pointer := range c.Unstable {
		for _, part := range []string{"/total", "/tasks", "/jobInfo", "/nodeInfo"} {
			if pointer == part || strings.HasPrefix(pointer, part+"/") {
				return true
			}
		}
	}
	return false
}

// vectorOf is a message in the recorded form, in which cpu and memory are always there.
func vectorOf(s *apportionv1.Snapshot, r *apportionv1.Resource) vector {
	v := vector{V: map[string]float64{"cpu": 0, "memory": 0}}
	for i, index := range r.GetDimension() {
		v.V[s.Dimensions[index]] += r.Amount[i]
	}
	return v
}

// plus adds w to v.
func (v vector) plus(w vector) {
	for name, amount := range w.V {
		v.V[name] += amount
	}
}

func total(s *apportionv1.Snapshot) vector {
	sum := vectorOf(s, nil)
	for _, node := range s.Nodes {
		sum.plus(vectorOf(s, node.Allocatable))
	}
	return sum
}

// requestOf is what a task asks for, its group's request or its own.
func requestOf(group *apportionv1.TaskGroup, task *apportionv1.Task) *apportionv1.Resource {
	if own := task.GetDetail().GetRequest(); own != nil {
		return own
	}
	return group.Request
}

var statusNames = map[apportionv1.TaskStatus]string{
	apportionv1.TaskStatus_TASK_STATUS_PENDING:   "Pending",
	apportionv1.TaskStatus_TASK_STATUS_BOUND:     "Bound",
	apportionv1.TaskStatus_TASK_STATUS_RUNNING:   "Running",
	apportionv1.TaskStatus_TASK_STATUS_RELEASING: "Releasing",
	apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED: "Succeeded",
	apportionv1.TaskStatus_TASK_STATUS_FAILED:    "Failed",
	apportionv1.TaskStatus_TASK_STATUS_UNKNOWN:   "Unknown",
}

// tasksOf is the snapshot's tasks in the recorded form. A task on a node that does not exist has no node here, but keeps the name there.
func tasksOf(s *apportionv1.Snapshot, recorded map[string]referenceTask) map[string]referenceTask {
	tasks := make(map[string]referenceTask)
	for _, job := range s.Jobs {
		for _, group := range job.Groups {
			for _, task := range group.Tasks {
				name := job.Namespace + "/" + task.Name
				request := vectorOf(s, requestOf(group, task))
				read := referenceTask{
					Gated:       task.GetDetail().GetGate() != apportionv1.TaskGate_TASK_GATE_UNSPECIFIED,
					Preemptable: task.GetDetail() == nil || task.Detail.Preemptable == nil || *task.Detail.Preemptable,
					Job:         job.Namespace + "/" + job.Name, Role: group.Role, Status: statusNames[task.Status],
					Priority: 1, Resreq: request, InitResreq: request, BestEffort: bestEffort(request),
				}
				if task.Priority != nil {
					read.Priority = *task.Priority
				}
				if task.Node != nil {
					read.Node = s.Nodes[*task.Node].Name
				} else if recorded[name].Node == "ghost" {
					read.Node = "ghost"
				}
				tasks[name] = read
			}
		}
	}
	return tasks
}

// bestEffort says whether nothing but the pod itself is asked for.
func bestEffort(request vector) bool {
	for name, amount := range request.V {
		if name != "pods" && amount >= 0.1 {
			return false
		}
	}
	return true
}

// jobsOf is the snapshot's jobs in the recorded form, in which no minimum and an empty one look alike.
func jobsOf(s *apportionv1.Snapshot, recorded map[string]referenceJob) map[string]referenceJob {
	jobs := make(map[string]referenceJob)
	for _, job := range s.Jobs {
		name := job.Namespace + "/" + job.Name
		minimum := vectorOf(s, job.MinResources)
		read := referenceJob{
			MinAvailable: int32(job.MinAvailable), Priority: job.Priority, Queue: job.Queue, MinResources: &minimum,
			TotalRequest: vectorOf(s, nil),
		}
		if job.MinResources == nil && recorded[name].MinResources == nil {
			read.MinResources = nil
		}
		for _, group := range job.Groups {
			for _, task := range group.Tasks {
				read.TotalRequest.plus(vectorOf(s, requestOf(group, task)))
			}
		}
		jobs[name] = read
	}
	return jobs
}

// requireNodes compares what nodes offer, and what is used on them by tasks and by others.
func requireNodes(t *testing.T, want map[string]referenceNode, s *apportionv1.Snapshot) {
	t.Helper()
	used := make([]vector, len(s.Nodes))
	for i, node := range s.Nodes {
		used[i] = vectorOf(s, node.UsedByOthers)
	}
	for _, job := range s.Jobs {
		for _, group := range job.Groups {
			for _, task := range group.Tasks {
				done := task.Status == apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED || task.Status == apportionv1.TaskStatus_TASK_STATUS_FAILED
				if task.Node != nil && !done {
					used[*task.Node].plus(vectorOf(s, requestOf(group, task)))
				}
			}
		}
	}
	read := make(map[string]referenceNode)
	for i, node := range s.Nodes {
		read[node.Name] = referenceNode{Allocatable: vectorOf(s, node.Allocatable), Used: used[i]}
	}
	require.Equal(t, want, read)
}
