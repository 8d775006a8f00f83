package submission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/apportion/apportion/adapter/objects"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
)

// maxReplicas is the maximum number of pods of a set, and maxGroups the maximum number of PodGroups of a workload.
const (
	maxReplicas = 100_000
	maxGroups   = 1_000
)

// The annotations that relate pods to their group, and those with the settings of plain pods.
const (
	groupNameKey = "scheduling.k8s.io/group-name"
	roleKey      = "volcano.sh/task-spec"
	queueKey     = "scheduling.volcano.sh/queue-name"
	minMemberKey = "scheduling.volcano.sh/group-min-member"
)

// group is a PodGroup and its pods, as the controller of a workload creates them.
type group struct {
	name, namespace      string
	queue, priorityClass string
	minMember            int32
	// minResources are those that the workload names; nil: the sum over the counted pods of the sets.
	minResources map[string]any
	sets         []podSet
	// annotations and labels are those of the workload that its controller copies.
	annotations, labels map[string]string
	// topology is the network topology that the workload states; nil: none. partitions are the policies of its subgroups.
	topology   any
	partitions []map[string]any
}

// podSet is a number of equal pods.
type podSet struct {
	// role distinguishes the sets of a group. name is the prefix of the names of its pods, before their number.
	role, name string
	replicas   int32
	// minimum is the minimum of the role; nil: it has none of its own.
	minimum  *int32
	template template
	// counted is the number of its pods in the group's minimum resources. later is true if its pods are created after the others have
	// started.
	counted int32
	later   bool
}

// template contains the fields of a pod template that are read.
type template struct {
	Metadata struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec map[string]any `json:"spec"`
}

// scheduler returns the scheduler that the template names.
func (t *template) scheduler() string {
	name, _ := t.Spec["schedulerName"].(string)
	return name
}

// expand writes the PodGroups and Pods.
func expand(file string, groups []*group) ([]objects.Source, error) {
	var sources []objects.Source
	for _, g := range groups {
		made, err := g.expand(file)
		if err != nil {
			return nil, err
		}
		sources = append(sources, made...)
	}
	return sources, nil
}

func (g *group) expand(file string) ([]objects.Source, error) {
	spec := map[string]any{"minMember": g.minMember}
	minimum := make(map[string]int32)
	for i := range g.sets {
		if g.sets[i].minimum != nil {
			minimum[g.sets[i].role] = *g.sets[i].minimum
		}
	}
	if len(minimum) > 0 {
		spec["minTaskMember"] = minimum
	}
	if g.queue != "" {
		spec["queue"] = g.queue
	}
	if g.priorityClass != "" {
		spec["priorityClassName"] = g.priorityClass
	}
	if g.minResources != nil {
		spec["minResources"] = g.minResources
	}
	if g.topology != nil {
		spec["networkTopology"] = g.topology
	}
	if g.partitions != nil {
		spec["subGroupPolicy"] = g.partitions
	}
	made, err := json.Marshal(map[string]any{
		"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
		"metadata": map[string]any{"name": g.name, "namespace": g.namespace, "annotations": g.annotations, "labels": g.labels},
		"spec":     spec, "status": map[string]any{"phase": "Pending"},
	})
	if err != nil {
		return nil, err
	}
	sources := []objects.Source{{Name: file + " (its PodGroup)", Data: made}}
	for i := range g.sets {
		var pods bytes.Buffer
		for k := range g.sets[i].replicas {
			pod, err := json.Marshal(g.pod(&g.sets[i], k))
			if err != nil {
				return nil, err
			}
			pods.Write(pod)
			pods.WriteByte('\n')
		}
		sources = append(sources, objects.Source{Name: fmt.Sprintf("%s (pods %s)", file, g.sets[i].name), Data: pods.Bytes()})
	}
	return sources, nil
}

// pod is a pod of a set. Like Volcano's controllers it belongs to the group; its scheduler is the default of the reader.
func (g *group) pod(set *podSet, index int32) map[string]any {
	annotations := maps.Clone(set.template.Metadata.Annotations)
	if annotations == nil {
		annotations = make(map[string]string)
	}
	annotations[groupNameKey] = g.name
	if set.role != "" {
		annotations[roleKey] = set.role
	}
	spec := maps.Clone(set.template.Spec)
	delete(spec, "schedulerName")
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": fmt.Sprintf("%s-%d", set.name, index), "namespace": g.namespace,
			"annotations": annotations, "labels": set.template.Metadata.Labels,
		},
		"spec": spec, "status": map[string]any{"phase": "Pending"},
	}
}

// complete sets the minimum resources that the controller writes, and removes the pods that are created later.
func (g *group) complete(snapshot *lookup.Snapshot, job *apportionv1.Job) {
	counted, later := make(map[string]int32, len(g.sets)), make(map[string]bool, len(g.sets))
	for i := range g.sets {
		counted[g.sets[i].role], later[g.sets[i].role] = g.sets[i].counted, g.sets[i].later
	}
	amounts := make([]float64, len(snapshot.GetDimensions()))
	kept := job.GetGroups()[:0]
	for _, tasks := range job.GetGroups() {
		for i, index := range tasks.GetRequest().GetDimensions() {
			amounts[index] += float64(counted[tasks.GetRole()]) * tasks.GetRequest().GetAmounts()[i]
		}
		if !later[tasks.GetRole()] {
			kept = append(kept, tasks)
		}
	}
	job.Groups = kept
	if g.minResources != nil {
		return
	}
	minimum := &apportionv1.Resource{}
	for index, amount := range amounts {
		if name := snapshot.GetDimensions()[index]; name != "pods" && amount > 0 {
			minimum.Dimensions, minimum.Amounts = append(minimum.Dimensions, uint32(index)), append(minimum.Amounts, amount)
		}
	}
	job.MinResources = minimum
}
