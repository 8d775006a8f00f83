package submission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/tree"
)

// kind is a kind of workload: its API group, and the function that builds its PodGroups.
type kind struct {
	group, name string
	read        func(*workload) ([]*group, error)
}

// kinds are the supported kinds. The core group of Kubernetes is "".
var kinds = []kind{
	{"batch.volcano.sh", "Job", (*workload).volcanoJob},
	{"batch", "Job", (*workload).batchJob},
	{"kubeflow.org", "PyTorchJob", (*workload).pyTorchJob},
	{"ray.io", "RayJob", (*workload).rayJob},
	{"ray.io", "RayCluster", (*workload).rayCluster},
	{"jobset.x-k8s.io", "JobSet", (*workload).jobSet},
	{"apps", "Deployment", (*workload).replicas},
	{"apps", "ReplicaSet", (*workload).replicas},
	{"apps", "StatefulSet", (*workload).replicas},
}

// Kinds lists the workloads that are read, as API group and kind.
func Kinds() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name + " (" + k.group + ")"
	}
	return names
}

// kindOf returns the kind of a document, nil if it is not a supported workload.
func kindOf(root tree.Node) func(*workload) ([]*group, error) {
	of, _, versioned := strings.Cut(textOf(root, "apiVersion"), "/")
	i := slices.IndexFunc(kinds, func(k kind) bool { return versioned && k.name == textOf(root, "kind") && k.group == of })
	if i < 0 {
		return nil
	}
	return kinds[i].read
}

// workload is a document that is read.
type workload struct {
	root tree.Node
	// unscheduled is true if the template alone names the scheduler of the pods: Volcano ignores them unless it is Volcano's.
	unscheduled bool
}

// metadata contains the metadata of a workload that is read.
type metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// decode reads the document into a struct of the needed fields. Fields of a wrong type are faults with their names.
func (w *workload) decode(into any, meta *metadata) error {
	r := objects.NewReader()
	r.Doc = &objects.Document{Name: w.root.Source, Lines: true}
	if !r.Into(objects.ValueOf(r.Doc, w.root.Node, objects.Deep, &r.Found), into) {
		return r.Found.Err()
	}
	if meta.Name == "" {
		return w.fault("metadata.name", "a name is missing")
	}
	if meta.Namespace == "" {
		meta.Namespace = "default"
	}
	return nil
}

// fault returns an error about a path, with the line of the last key of the path that exists.
func (w *workload) fault(path, format string, args ...any) error {
	at := w.root.At(path)
	at.Path = path
	return at.Fault(format, args...)
}

// replicasAt checks a number of pods.
func (w *workload) replicasAt(path string, n int32) error {
	if n < 0 || n > maxReplicas {
		return w.fault(path, "not between 0 and %d", maxReplicas)
	}
	return nil
}

// needTemplate returns an error for a template without containers.
func (w *workload) needTemplate(path string, t *template) error {
	if len(t.Spec) == 0 {
		return w.fault(path+".spec", "the specification of the pods is missing")
	}
	return nil
}

// checkScheduler warns of pods that name no scheduler, which Volcano ignores, and returns an error for pods that name another scheduler.
func (w *workload) checkScheduler(groups []*group, options []volcano.Option) ([]*apportionv1.Warning, error) {
	own := volcano.Schedulers(options...)
	for _, g := range groups {
		for i := range g.sets {
			name := g.sets[i].template.scheduler()
			switch {
			case name == "" && w.unscheduled:
				return []*apportionv1.Warning{{
					Path: w.root.Source,
					Message: fmt.Sprintf("its pods name no scheduler, so that Volcano leaves them to Kubernetes' own; the answer is for "+
						"schedulerName: %s", own[0]),
				}}, nil
			case name != "" && !slices.Contains(own, name):
				return nil, w.root.FaultAt("schedulerName", "pods are left to the scheduler %q; --scheduler %s asks about it", name, name)
			}
		}
	}
	return nil, nil
}

// or returns the value of a pointer, or another value for nil.
func or[T any](given *T, otherwise T) T {
	if given == nil {
		return otherwise
	}
	return *given
}

// volcanoJob reads a Job of Volcano, whose controller makes a PodGroup of the same name.
func (w *workload) volcanoJob() ([]*group, error) {
	var job struct {
		Metadata metadata `json:"metadata"`
		Spec     struct {
			Queue             string `json:"queue"`
			MinAvailable      *int32 `json:"minAvailable"`
			PriorityClassName string `json:"priorityClassName"`
			NetworkTopology   any    `json:"networkTopology"`
			Tasks             []struct {
				Name            string     `json:"name"`
				Replicas        *int32     `json:"replicas"`
				MinAvailable    *int32     `json:"minAvailable"`
				PartitionPolicy *partition `json:"partitionPolicy"`
				Template        template   `json:"template"`
			} `json:"tasks"`
		} `json:"spec"`
	}
	if err := w.decode(&job, &job.Metadata); err != nil {
		return nil, err
	}
	g := &group{
		name: job.Metadata.Name, namespace: job.Metadata.Namespace, queue: job.Spec.Queue, priorityClass: job.Spec.PriorityClassName,
		annotations: job.Metadata.Annotations, labels: job.Metadata.Labels, topology: job.Spec.NetworkTopology,
	}
	total := int32(0)
	for i := range job.Spec.Tasks {
		t := &job.Spec.Tasks[i]
		if t.Name == "" {
			t.Name = fmt.Sprintf("default%d", i)
		}
		set := podSet{role: t.Name, name: g.name + "-" + t.Name, replicas: or(t.Replicas, 1), template: t.Template}
		if err := w.replicasAt(fmt.Sprintf("spec.tasks[%d].replicas", i), set.replicas); err != nil {
			return nil, err
		}
		minimum := set.replicas
		if p := t.PartitionPolicy; p != nil {
			path := fmt.Sprintf("spec.tasks[%d].partitionPolicy", i)
			if err := w.replicasAt(path+".partitionSize", p.PartitionSize); err != nil {
				return nil, err
			}
			if err := w.replicasAt(path+".minPartitions", p.MinPartitions); err != nil {
				return nil, err
			}
			if p.MinPartitions > 0 {
				minimum = p.minimum()
			}
			g.partitions = append(g.partitions, p.policy(t.Name))
		}
		set.minimum = new(or(t.MinAvailable, minimum))
		g.sets = append(g.sets, set)
		total += *set.minimum
	}
	g.minMember = or(job.Spec.MinAvailable, total)
	g.countTasks()
	return []*group{g}, nil
}

// partition is how a task of a Volcano Job is divided.
type partition struct {
	PartitionSize   int32 `json:"partitionSize"`
	MinPartitions   int32 `json:"minPartitions"`
	NetworkTopology any   `json:"networkTopology"`
}

// minimum is how many pods of the task the webhook demands.
func (p *partition) minimum() int32 {
	return int32(min(int64(p.MinPartitions)*int64(p.PartitionSize), maxReplicas))
}

// policy is the entry of the PodGroup for a task.
func (p *partition) policy(task string) map[string]any {
	policy := map[string]any{"name": task, "subGroupSize": p.PartitionSize, "minSubGroups": p.MinPartitions}
	if p.NetworkTopology != nil {
		policy["networkTopology"] = p.NetworkTopology
	}
	return policy
}

// countTasks counts the pods whose resources Volcano's controller writes as the minimum: those of each task's minimum, then further pods in
// the order of the tasks until the job's minimum is reached; or just the job's first pods if the tasks' minima are more than the job's.
func (g *group) countTasks() {
	total := int32(0)
	for i := range g.sets {
		total += *g.sets[i].minimum
	}
	left := g.minMember
	if left >= total {
		for i := range g.sets {
			g.sets[i].counted = *g.sets[i].minimum
			left -= g.sets[i].counted
		}
	}
	g.countFirst(left)
}

// countFirst counts this number of further pods, in the order of the sets.
func (g *group) countFirst(left int32) {
	for i := range g.sets {
		set := &g.sets[i]
		more := max(0, min(left, set.replicas-set.counted))
		set.counted += more
		left -= more
	}
}
