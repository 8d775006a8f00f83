package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/client"
	"github.com/apportion/apportion/contract/lookup"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// maxReplicas bounds how many tasks a job of a scenario has; the service has a limit of its own.
const maxReplicas = 100_000

// Job reads a job: name, namespace, queue, priority, minAvailable, minResources, and groups of role, replicas, request and minAvailable.
// Its resources refer to the dimensions of the snapshot. Its tasks are named as Volcano names pods: JOB-ROLE-INDEX.
func Job(file string, snapshot *lookup.Snapshot, n *yaml.Node, path string) (*apportionv1.Job, error) {
	s := source{file}
	job := client.Job{}
	groups := func(key string, n *yaml.Node) error {
		if n.Kind != yaml.SequenceNode {
			return s.fault(n, key, "a list is expected")
		}
		for i, item := range n.Content {
			group, err := s.group(fmt.Sprintf("%s[%d]", key, i), item, &job)
			if err != nil {
				return err
			}
			job.Groups = append(job.Groups, group)
		}
		return nil
	}
	err := s.mapping(n, path, readers{
		"uid": s.text(&job.UID), "name": s.text(&job.Name), "namespace": s.text(&job.Namespace), "queue": s.text(&job.Queue),
		"priority": whole(s, &job.Priority), "minAvailable": whole(s, &job.MinAvailable),
		"phase":        word(s, &job.Phase),
		"minResources": s.resources(&job.MinResources), "groups": groups,
	})
	if err != nil {
		return nil, err
	}
	if job.Name == "" {
		return nil, s.fault(n, join(path, "name"), "a job needs a name")
	}
	nameTasks(&job)
	return s.translate(n, path, snapshot, job)
}

// nameTasks names the tasks of a job once its name is known.
func nameTasks(job *client.Job) {
	for i := range job.Groups {
		group := &job.Groups[i]
		role := group.Role
		if role == "" {
			role = "task"
		}
		for k := range group.Tasks {
			group.Tasks[k].Name = fmt.Sprintf("%s-%s-%d", job.Name, role, k)
			group.Tasks[k].Index = new(uint32(k))
		}
	}
}

func (s source) group(path string, n *yaml.Node, job *client.Job) (client.Group, error) {
	group := client.Group{}
	replicas, minimum := uint32(1), int32(-1)
	err := s.mapping(n, path, readers{
		"role": s.text(&group.Role), "replicas": whole(s, &replicas), "request": s.resources(&group.Request),
		"minAvailable": whole(s, &minimum),
	})
	if err != nil {
		return group, err
	}
	if replicas > maxReplicas {
		return group, s.fault(n, join(path, "replicas"), fmt.Sprintf("more than %d", maxReplicas))
	}
	if minimum >= 0 {
		group.MinAvailable = new(uint32(minimum))
	}
	group.Tasks = make([]client.Task, replicas)
	// Volcano counts one of every pod, whatever it requests.
	if _, named := group.Request["pods"]; !named {
		if group.Request == nil {
			group.Request = client.Resources{}
		}
		group.Request["pods"] = "1"
	}
	if job.Queue == "" {
		job.Queue = "default"
	}
	return group, nil
}

// resources reads quantities by name.
func (s source) resources(place *client.Resources) func(string, *yaml.Node) error {
	return func(key string, n *yaml.Node) error {
		if n.Kind != yaml.MappingNode {
			return s.fault(n, key, "quantities by name are expected, as in {cpu: 500m, memory: 4Gi}")
		}
		*place = client.Resources{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, value := n.Content[i], n.Content[i+1]
			full := join(key, name.Value)
			if _, twice := (*place)[name.Value]; twice {
				return s.fault(name, full, "named twice")
			}
			if _, err := client.NewSnapshot().Total(client.Resources{name.Value: value.Value}).Build(); err != nil {
				if faults, ok := errors.AsType[*client.SnapshotError](err); ok {
					_, message, _ := strings.Cut(faults.Faults[0], ": ")
					return s.fault(value, full, message)
				}
				return s.fault(value, full, err.Error())
			}
			(*place)[name.Value] = value.Value
		}
		return nil
	}
}

// translate turns a job into the contract's, its resources over the snapshot's dimensions.
func (s source) translate(n *yaml.Node, path string, snapshot *lookup.Snapshot, job client.Job) (*apportionv1.Job, error) {
	built, err := client.NewSnapshot().Job(job).Build()
	if err != nil {
		return nil, s.fault(n, path, err.Error())
	}
	dimensions := make([]uint32, len(built.GetDimensions()))
	for i, name := range built.GetDimensions() {
		index := slices.Index(snapshot.GetDimensions(), name)
		if index < 0 && name != "pods" {
			return nil, s.fault(n, path, fmt.Sprintf("no resource %q is in the cluster", name))
		}
		dimensions[i] = uint32(max(index, 0))
	}
	message := built.GetJobs()[0]
	renumber := func(r *apportionv1.Resource) {
		kept := 0
		for i, index := range r.GetDimension() {
			name := built.GetDimensions()[index]
			if name == "pods" && !slices.Contains(snapshot.GetDimensions(), name) {
				continue
			}
			r.Dimension[kept], r.Amount[kept] = dimensions[index], r.Amount[i]
			kept++
		}
		if r != nil {
			r.Dimension, r.Amount = r.Dimension[:kept], r.Amount[:kept]
		}
	}
	renumber(message.GetMinResources())
	for _, group := range message.GetGroups() {
		renumber(group.GetRequest())
	}
	return message, nil
}
