package volcano

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// referenceDirectory holds recorded answers of Volcano; its README.md describes the form.
const referenceDirectory = "../../testdata/reference"

// referenceCase is the part of a recorded case that says how Volcano read its input.
type referenceCase struct {
	Name      string            `json:"name"`
	Seed      int               `json:"seed"`
	Conf      string            `json:"conf"`
	Manifests []json.RawMessage `json:"manifests"`
	Unstable  []string          `json:"unstable"`
	Expect    struct {
		Total    *vector                              `json:"total"`
		Tasks    map[string]referenceTask             `json:"tasks"`
		JobInfo  map[string]referenceJob              `json:"jobInfo"`
		NodeInfo map[string]referenceNode             `json:"nodeInfo"`
		Queues   map[string]map[string]referenceQueue `json:"queues"`
		// HierarchyReady is absent where there is no tree.
		HierarchyReady *bool `json:"hierarchyReady"`
	} `json:"expect"`
}

// vector is a recorded Resource.
type vector struct {
	V map[string]float64 `json:"v"`
}

type referenceTask struct {
	BestEffort  bool   `json:"bestEffort"`
	Gated       bool   `json:"gated"`
	Preemptable bool   `json:"preemptable"`
	Job         string `json:"job"`
	Node        string `json:"node"`
	Role        string `json:"role"`
	Status      string `json:"status"`
	Priority    int32  `json:"priority"`
	Resreq      vector `json:"resreq"`
	InitResreq  vector `json:"initResreq"`
}

type referenceJob struct {
	MinAvailable int32   `json:"minAvailable"`
	Priority     int32   `json:"priority"`
	MinResources *vector `json:"minResources"`
	Queue        string  `json:"queue"`
	TotalRequest vector  `json:"totalRequest"`
}

type referenceNode struct {
	Allocatable vector `json:"allocatable"`
	Used        vector `json:"used"`
}

type referenceQueue struct {
	Weight    *uint32 `json:"weight"`
	Guarantee *vector `json:"guarantee"`
}

// eachReferenceCase calls check with every recorded case.
func eachReferenceCase(t *testing.T, check func(t *testing.T, c *referenceCase)) {
	t.Helper()
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
					t.Run(fmt.Sprintf("line %d %s", number, c.Name), func(t *testing.T) { check(t, &c) })
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
		t.Helper()
		require.False(t, readingIsUnstable(c), "a reading that varied proves nothing")
		cluster, err := FromObjects(c.Manifests, AsScheduler())
		require.NoError(t, err)
		s := cluster.Snapshot
		if c.Expect.Tasks == nil {
			require.NotNil(t, s) // Volcano crashed before it told what it had read
			return
		}
		require.Equal(t, *c.Expect.Total, total(s))
		require.Equal(t, c.Expect.Tasks, tasksOf(s, c.Expect.Tasks))
		require.Equal(t, c.Expect.JobInfo, jobsOf(s, c.Expect.JobInfo))
		requireNodes(t, c.Expect.NodeInfo, s)
		requireQueues(t, c, s)
	})
}

// yamlStride picks the cases that are also written as YAML; parsing them all takes long and shows no more.
const yamlStride = 25

func TestYAMLAndJSONOfTheSameObjectsAreReadAlike(t *testing.T) {
	eachReferenceCase(t, func(t *testing.T, c *referenceCase) {
		t.Helper()
		if c.Seed%yamlStride != 0 {
			return
		}
		want, err := FromObjects(c.Manifests)
		require.NoError(t, err)
		list := map[string]any{"apiVersion": "v1", "kind": "List", "items": c.Manifests, "metadata": map[string]any{}}
		printed, err := json.MarshalIndent(list, "", "    ")
		require.NoError(t, err)
		for name, data := range map[string][]byte{
			"json": printed, "kubectl": asYAML(t, printed, true), "indented": asYAML(t, printed, false), "stream": asStream(t, c.Manifests),
		} {
			read, err := ReadManifests([]objects.Source{{Name: "cluster." + name, Data: data}})
			require.NoError(t, err, name)
			require.True(t, proto.Equal(want.Snapshot, read.Snapshot), name)
			require.Len(t, read.Warnings, len(want.Warnings), name)
		}
	})
}

// asYAML prints JSON as kubectl prints YAML, or with lists indented, as others do.
func asYAML(t *testing.T, printed []byte, compact bool) []byte {
	t.Helper()
	var plain any
	require.NoError(t, yaml.Unmarshal(printed, &plain))
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if compact {
		encoder.CompactSeqIndent()
	}
	require.NoError(t, encoder.Encode(plain))
	require.NoError(t, encoder.Close())
	return out.Bytes()
}

// asStream prints objects as a stream of documents, of YAML and of JSON by turns.
func asStream(t *testing.T, objects []json.RawMessage) []byte {
	t.Helper()
	var out bytes.Buffer
	for i, raw := range objects {
		out.WriteString("---\n")
		if i%2 == 0 {
			out.Write(asYAML(t, raw, false))
		} else {
			out.Write(raw)
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

func TestConfigurationsOfVolcanoAreRead(t *testing.T) {
	eachReferenceCase(t, func(t *testing.T, c *referenceCase) {
		t.Helper()
		policy, warned, err := schedulerconf.Read(objects.Source{Name: "volcano-scheduler.conf", Data: []byte(c.Conf)})
		require.NoError(t, err)
		require.NotEmpty(t, policy.Tiers)
		require.Equal(t, apportionv1.TierWalk_TIER_WALK_VOLCANO, policy.TierWalk)
		for _, warning := range warned {
			require.NotEqual(t, apportionv1.WarningCode_WARNING_CODE_PLUGIN_UNDECIDED, warning.Code, c.Conf)
		}
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
	for i, index := range r.GetDimensions() {
		v.V[s.Dimensions[index]] += r.Amounts[i]
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

// requestOf returns the request of a task: its own, or else its group's.
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

// bestEffort reports whether only the pod itself is requested.
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

// requireQueues compares weights and guarantees with those that Volcano read. It skips trees, because Volcano overwrites the root.
func requireQueues(t *testing.T, c *referenceCase, s *apportionv1.Snapshot) {
	t.Helper()
	if c.Expect.HierarchyReady != nil {
		return
	}
	byName := make(map[string]*apportionv1.Queue)
	for _, queue := range s.Queues {
		byName[queue.Name] = queue
	}
	for plugin, queues := range c.Expect.Queues {
		for name, want := range queues {
			if want.Weight != nil {
				require.Equal(t, *want.Weight, *byName[name].Weight, "%s %s", plugin, name)
			}
			if want.Guarantee != nil {
				require.Equal(t, *want.Guarantee, vectorOf(s, byName[name].Guarantee), "%s %s", plugin, name)
			}
		}
	}
}
