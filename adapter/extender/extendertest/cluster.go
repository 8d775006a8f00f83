package extendertest

import (
	_ "embed" // of pod.json
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apportion/apportion/adapter/volcano"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Object is a JSON object of Volcano's.
type Object = map[string]any

// Cluster writes what Volcano's extender plugin sends about a cluster: the manifests, and the numbers that Volcano computes from them. The
// recordings check these numbers in adapter/volcano.
type Cluster struct {
	// Snapshot is the snapshot that adapter/volcano reads from the same manifests.
	Snapshot *apportionv1.Snapshot

	Jobs, Nodes, Queues map[string]Object
	// Tasks are the tasks of jobs by namespace/name.
	Tasks map[string]Object

	raw map[string]Object
}

// Read reads manifests as the API server gives them, and queues as Volcano's scheduler has them.
func Read(manifests []json.RawMessage, asOf time.Time) (*Cluster, error) {
	read, err := volcano.FromObjects(manifests, volcano.WithAsOf(asOf), volcano.AsScheduler())
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		Snapshot: read.Snapshot,
		Jobs:     map[string]Object{}, Nodes: map[string]Object{}, Queues: map[string]Object{}, Tasks: map[string]Object{},
		raw: map[string]Object{},
	}
	var pods []string
	for _, data := range manifests {
		var o Object
		if err := json.Unmarshal(data, &o); err != nil {
			return nil, err
		}
		key := fmt.Sprint(o["kind"], " ", in(o, "metadata", "namespace"), "/", in(o, "metadata", "name"))
		c.raw[key] = o
		if o["kind"] == "Pod" {
			pods = append(pods, key)
		}
	}
	c.readQueues()
	c.readJobs()
	c.readNodes()
	for _, key := range pods {
		if err := c.place(key, c.raw[key]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// in returns the value at a path of an object; nil if there is none.
func in(o Object, path ...string) any {
	var v any = o
	for _, name := range path {
		below, ok := v.(Object)
		if !ok {
			return nil
		}
		v = below[name]
	}
	return v
}

// word returns the text at a path of an object, or "".
func word(o Object, path ...string) string {
	s, _ := in(o, path...).(string)
	return s
}

// Push is the body of an onSessionOpen.
func (c *Cluster) Push() ([]byte, error) {
	return json.Marshal(Object{
		"Jobs": c.Jobs, "Nodes": c.Nodes, "Queues": c.Queues, "NamespaceInfo": Object{}, "RevocableNodes": Object{}, "NodeList": nil,
	})
}

// resource is a Resource of Volcano's.
func (c *Cluster) resource(dimensions []string, r *apportionv1.Resource) Object {
	scalars := Object{}
	o := Object{"MilliCPU": 0.0, "Memory": 0.0, "MaxTaskNum": 0, "ScalarResources": scalars}
	for i, d := range r.GetDimensions() {
		switch name := dimensions[d]; name {
		case "cpu":
			o["MilliCPU"] = r.Amounts[i]
		case "memory":
			o["Memory"] = r.Amounts[i]
		default:
			scalars[name] = r.Amounts[i]
		}
	}
	if len(scalars) == 0 {
		o["ScalarResources"] = nil
	}
	return o
}

// printQuantities writes the quantities of resource lists as the API's types do: never as numbers.
func printQuantities(o Object, paths ...[]string) {
	for _, path := range paths {
		list, _ := in(o, path...).(Object)
		for name, quantity := range list {
			if n, ok := quantity.(float64); ok {
				list[name] = strconv.FormatFloat(n, 'f', -1, 64)
			}
		}
	}
}

func (c *Cluster) readQueues() {
	for _, q := range c.Snapshot.Queues {
		raw := c.raw[fmt.Sprint("Queue ", nil, "/", q.Name)]
		printQuantities(raw, []string{"spec", "capability"}, []string{"spec", "deserved"}, []string{"spec", "guarantee", "resource"})
		spec, status := raw["spec"], raw["status"]
		if spec == nil {
			spec = Object{}
		}
		if status == nil {
			status = Object{}
		}
		c.Queues[q.Name] = Object{
			"UID": q.Name, "Name": q.Name, "Weight": q.GetWeight(),
			"Hierarchy": q.GetFairShareHierarchy().GetPath(), "Weights": q.GetFairShareHierarchy().GetWeights(),
			"Queue": Object{"metadata": raw["metadata"], "spec": spec, "status": status},
		}
	}
}

func (c *Cluster) readJobs() {
	for _, j := range c.Snapshot.Jobs {
		id := j.Namespace + "/" + j.Name
		raw := c.raw["PodGroup "+id]
		printQuantities(raw, []string{"spec", "minResources"})
		tasks, minimums := map[string]Object{}, Object{}
		index := map[string]map[string]Object{}
		for _, g := range j.Groups {
			if g.MinAvailable != nil {
				minimums[g.Role] = *g.MinAvailable
			}
			for _, t := range g.Tasks {
				request := g.Request
				if own := t.GetDetail().GetRequest(); own != nil {
					request = own
				}
				task := c.task(id, j.Namespace, g.Role, t, c.resource(c.Snapshot.Dimensions, request))
				tasks[t.Uid] = task
				c.Tasks[j.Namespace+"/"+t.Name] = task
				status := fmt.Sprint(task["Status"])
				if index[status] == nil {
					index[status] = map[string]Object{}
				}
				index[status][t.Uid] = task
			}
		}
		c.Jobs[id] = Object{
			"UID": id, "PgUID": word(raw, "metadata", "uid"), "Name": j.Name, "Namespace": j.Namespace, "Queue": j.Queue,
			"Priority": j.Priority, "MinAvailable": j.MinAvailable, "WaitingTime": nil,
			"NodesFitErrors": Object{}, "TaskMinAvailable": minimums,
			"SubJobs":         Object{id: Object{"UID": id, "Tasks": tasks, "TaskStatusIndex": index}},
			"TaskStatusIndex": index, "Tasks": tasks, "CreationTimestamp": in(raw, "metadata", "creationTimestamp"),
			"PodGroup": Object{"metadata": raw["metadata"], "spec": raw["spec"], "status": raw["status"], "Version": "v1beta1"},
		}
	}
}

// Status is Volcano's number of a status.
func Status(s apportionv1.TaskStatus) int {
	numbers := map[apportionv1.TaskStatus]int{
		apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED: 1, apportionv1.TaskStatus_TASK_STATUS_PENDING: 1,
		apportionv1.TaskStatus_TASK_STATUS_ALLOCATED: 2, apportionv1.TaskStatus_TASK_STATUS_PIPELINED: 4,
		apportionv1.TaskStatus_TASK_STATUS_BINDING: 8, apportionv1.TaskStatus_TASK_STATUS_BOUND: 16,
		apportionv1.TaskStatus_TASK_STATUS_RUNNING: 32, apportionv1.TaskStatus_TASK_STATUS_RELEASING: 64,
		apportionv1.TaskStatus_TASK_STATUS_SUCCEEDED: 128, apportionv1.TaskStatus_TASK_STATUS_FAILED: 256,
		apportionv1.TaskStatus_TASK_STATUS_UNKNOWN: 512,
	}
	return numbers[s]
}

// task is the TaskInfo of a task.
func (c *Cluster) task(job, namespace, role string, t *apportionv1.Task, request Object) Object {
	priority, detail := int32(1), t.GetDetail()
	if t.Priority != nil {
		priority = *t.Priority
	}
	raw := c.raw["Pod "+namespace+"/"+t.Name]
	return Object{
		"UID": t.Uid, "Job": job, "Name": t.Name, "Namespace": namespace, "TaskRole": role, "Resreq": request, "InitResreq": request,
		"NodeName": word(raw, "spec", "nodeName"), "Status": Status(t.Status), "LastTransaction": nil, "Priority": priority,
		"Preemptable": detail == nil || detail.Preemptable == nil || *detail.Preemptable,
		"SchGated":    detail.GetGate() != apportionv1.TaskGate_TASK_GATE_UNSPECIFIED,
		"NumaInfo":    Object{"Policy": "", "ResMap": Object{}}, "Pod": raw,
	}
}

func (c *Cluster) readNodes() {
	for _, n := range c.Snapshot.Nodes {
		raw := c.raw[fmt.Sprint("Node ", nil, "/", n.Name)]
		c.Nodes[n.Name] = Object{
			"Name": n.Name, "Node": raw, "Allocatable": c.resource(c.Snapshot.Dimensions, n.Allocatable), "Tasks": map[string]Object{},
		}
	}
}

// place puts a pod on its node, unless it has finished.
func (c *Cluster) place(key string, raw Object) error {
	phase, node := word(raw, "status", "phase"), c.Nodes[word(raw, "spec", "nodeName")]
	if node == nil || phase == "Succeeded" || phase == "Failed" {
		return nil
	}
	name := key[len("Pod "):]
	task := c.Tasks[name]
	if task == nil {
		var err error
		if task, err = c.stray(raw); err != nil {
			return err
		}
	}
	tasks, _ := node["Tasks"].(map[string]Object)
	tasks[name] = task
	return nil
}

// stray is the TaskInfo of a pod without a job in the session. Its request is read like the request of a task.
func (c *Cluster) stray(raw Object) (Object, error) {
	namespace := word(raw, "metadata", "namespace")
	alone := Object{"kind": "Pod", "spec": raw["spec"], "status": raw["status"], "metadata": Object{
		"name": "alone", "namespace": "x", "annotations": Object{"scheduling.k8s.io/group-name": "g"},
	}}
	pod, err := json.Marshal(alone)
	if err != nil {
		return nil, err
	}
	read, err := volcano.FromObjects([]json.RawMessage{
		pod, []byte(`{"kind":"Queue","metadata":{"name":"default"}}`),
		[]byte(`{"kind":"PodGroup","metadata":{"name":"g","namespace":"x"}}`),
	})
	if err != nil {
		return nil, err
	}
	group := read.Snapshot.Jobs[0].Groups[0]
	return Object{
		"UID": word(raw, "metadata", "uid"), "Job": "", "Name": word(raw, "metadata", "name"), "Namespace": namespace,
		"Resreq": c.resource(read.Snapshot.Dimensions, group.Request), "Status": Status(group.Tasks[0].Status),
		"NodeName": word(raw, "spec", "nodeName"), "Pod": raw,
	}, nil
}

// pod returns a pod as the API server keeps it.
func (p *pusher) pod(i int, node string) string {
	name, job := podName(i), jobName(i/podsOfJob)
	head := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + name + `","namespace":"default","uid":"` + podUID(i) +
		`","creationTimestamp":"2026-01-02T03:07:00Z","labels":{"volcano.sh/task-spec":"worker"},` +
		`"annotations":{"scheduling.k8s.io/group-name":"` + job + `"`
	phase, nodeName := "Pending", ""
	if node != "" {
		phase, nodeName = "Running", `"nodeName":"`+node+`",`
	}
	if p.shape.Lean {
		return head + `}},"spec":{"containers":[{"name":"main",` +
			`"resources":{"requests":{"cpu":"2","memory":"8Gi","nvidia.com/gpu":"1"}}}],` + nodeName +
			`"schedulerName":"volcano"},"status":{"phase":"` + phase + `"}}`
	}
	return head + strings.NewReplacer("\n", "", "$NAME", name, "$JOB", job, "$NODE", nodeName, "$PHASE", phase).Replace(clusterPod)
}

// clusterPod is the rest of a pod of a Volcano job in a cluster: environment, volumes, tolerations, what controllers noted in
// managedFields, and conditions. Its line breaks are only for human readers.
//
//go:embed pod.json
var clusterPod string
