package submission

import (
	"slices"
	"strings"
)

// pyTorchJob reads a PyTorchJob of Kubeflow's training operator, which makes the PodGroup itself where it runs with
// --gang-scheduler-name=volcano: of all pods, unless the scheduling policy says otherwise.
func (w *workload) pyTorchJob() ([]*group, error) {
	var job struct {
		Metadata metadata `json:"metadata"`
		Spec     struct {
			RunPolicy struct {
				SchedulingPolicy struct {
					MinAvailable  *int32         `json:"minAvailable"`
					Queue         string         `json:"queue"`
					PriorityClass string         `json:"priorityClass"`
					MinResources  map[string]any `json:"minResources"`
				} `json:"schedulingPolicy"`
			} `json:"runPolicy"`
			ReplicaSpecs map[string]struct {
				Replicas *int32   `json:"replicas"`
				Template template `json:"template"`
			} `json:"pytorchReplicaSpecs"`
		} `json:"spec"`
	}
	if err := w.decode(&job, &job.Metadata); err != nil {
		return nil, err
	}
	policy := job.Spec.RunPolicy.SchedulingPolicy
	g := &group{
		name: job.Metadata.Name, namespace: job.Metadata.Namespace, queue: policy.Queue, priorityClass: policy.PriorityClass,
		minResources: policy.MinResources,
	}
	types := make([]string, 0, len(job.Spec.ReplicaSpecs))
	for name := range job.Spec.ReplicaSpecs {
		types = append(types, name)
	}
	slices.Sort(types) // Master before Worker
	for _, name := range types {
		spec := job.Spec.ReplicaSpecs[name]
		path := "spec.pytorchReplicaSpecs." + name
		replicas := or(spec.Replicas, 1)
		if err := w.replicasAt(path+".replicas", replicas); err != nil {
			return nil, err
		}
		if err := w.needTemplate(path+".template", &spec.Template); err != nil {
			return nil, err
		}
		role := strings.ToLower(name)
		g.sets = append(g.sets, podSet{role: role, name: g.name + "-" + role, replicas: replicas, template: spec.Template})
		g.minMember += replicas
	}
	if len(g.sets) == 0 {
		return nil, w.fault("spec.pytorchReplicaSpecs", "neither Master nor Worker is in it")
	}
	g.minMember = or(policy.MinAvailable, g.minMember)
	g.countFirst(g.minMember)
	return []*group{g}, nil
}

// The labels that KubeRay reads on a RayJob or a RayCluster.
const (
	rayQueueLabel    = "volcano.sh/queue-name"
	rayPriorityLabel = "ray.io/priority-class-name"
)

// rayClusterSpec contains the fields of a RayCluster's specification that are read.
type rayClusterSpec struct {
	EnableInTreeAutoscaling *bool `json:"enableInTreeAutoscaling"`
	HeadGroupSpec           struct {
		Template template `json:"template"`
	} `json:"headGroupSpec"`
	WorkerGroupSpecs []struct {
		GroupName   string   `json:"groupName"`
		Replicas    *int32   `json:"replicas"`
		MinReplicas *int32   `json:"minReplicas"`
		MaxReplicas *int32   `json:"maxReplicas"`
		NumOfHosts  *int32   `json:"numOfHosts"`
		Suspend     bool     `json:"suspend"`
		Template    template `json:"template"`
	} `json:"workerGroupSpecs"`
}

// group is the PodGroup that KubeRay makes with --batch-scheduler=volcano: the head and all workers, or with autoscaling as many workers as
// there are at least.
func (s *rayClusterSpec) group(w *workload, path string, owner *metadata) (*group, error) {
	g := &group{
		name: "ray-" + owner.Name + "-pg", namespace: owner.Namespace, queue: owner.Labels[rayQueueLabel],
		priorityClass: owner.Labels[rayPriorityLabel],
	}
	if err := w.needTemplate(path+".headGroupSpec.template", &s.HeadGroupSpec.Template); err != nil {
		return nil, err
	}
	g.sets = append(g.sets, podSet{
		role: "headgroup", name: owner.Name + "-head", replicas: 1, counted: 1, template: s.HeadGroupSpec.Template,
	})
	g.minMember = 1
	for i := range s.WorkerGroupSpecs {
		workers := &s.WorkerGroupSpecs[i]
		if workers.Suspend {
			continue
		}
		least, hosts := or(workers.MinReplicas, 0), or(workers.NumOfHosts, 1)
		desired := min(max(or(workers.Replicas, least), least), or(workers.MaxReplicas, maxReplicas))
		for _, n := range []int32{least, hosts, desired} {
			if err := w.replicasAt(path+".workerGroupSpecs", n); err != nil {
				return nil, err
			}
		}
		if int64(max(desired, least))*int64(hosts) > maxReplicas {
			return nil, w.fault(path+".workerGroupSpecs", "more than %d pods", maxReplicas)
		}
		if err := w.needTemplate(path+".workerGroupSpecs", &workers.Template); err != nil {
			return nil, err
		}
		counted := desired * hosts
		if or(s.EnableInTreeAutoscaling, false) {
			counted = least * hosts
		}
		g.minMember += counted
		g.sets = append(g.sets, podSet{
			role: workers.GroupName, name: owner.Name + "-" + workers.GroupName + "-worker", replicas: desired * hosts, counted: counted,
			template: workers.Template,
		})
	}
	return g, nil
}

// rayCluster reads a RayCluster of KubeRay.
func (w *workload) rayCluster() ([]*group, error) {
	var cluster struct {
		Metadata metadata       `json:"metadata"`
		Spec     rayClusterSpec `json:"spec"`
	}
	if err := w.decode(&cluster, &cluster.Metadata); err != nil {
		return nil, err
	}
	g, err := cluster.Spec.group(w, "spec", &cluster.Metadata)
	if err != nil {
		return nil, err
	}
	return []*group{g}, nil
}

// rayJob reads a RayJob of KubeRay. The pod that submits the job is created when the cluster runs; its resources count towards the minimum,
// the pod itself does not.
func (w *workload) rayJob() ([]*group, error) {
	var job struct {
		Metadata metadata `json:"metadata"`
		Spec     struct {
			SubmissionMode       string          `json:"submissionMode"`
			SubmitterPodTemplate *template       `json:"submitterPodTemplate"`
			RayClusterSpec       *rayClusterSpec `json:"rayClusterSpec"`
		} `json:"spec"`
	}
	if err := w.decode(&job, &job.Metadata); err != nil {
		return nil, err
	}
	if job.Spec.RayClusterSpec == nil {
		return nil, w.fault("spec.rayClusterSpec", "it is missing: a job for a RayCluster that exists makes no PodGroup")
	}
	g, err := job.Spec.RayClusterSpec.group(w, "spec.rayClusterSpec", &job.Metadata)
	if err != nil {
		return nil, err
	}
	if mode := job.Spec.SubmissionMode; mode == "" || mode == "K8sJobMode" {
		submitter := job.Spec.SubmitterPodTemplate
		if submitter == nil {
			submitter = &template{Spec: defaultSubmitter}
		}
		g.sets = append(g.sets, podSet{
			role: "submitter", name: g.name + "-submitter", replicas: 1, counted: 1, later: true, template: *submitter,
		})
	}
	return []*group{g}, nil
}

// defaultSubmitter is the pod that submits a RayJob where none is specified.
var defaultSubmitter = map[string]any{"containers": []any{map[string]any{
	"name": "ray-job-submitter", "resources": map[string]any{"requests": map[string]any{"cpu": "500m", "memory": "200Mi"}},
}}}
