package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/lookup"
	"github.com/apportion/apportion/internal/tree"
)

// maxReplicas bounds how many tasks a job of a scenario has; the service has a limit of its own.
const maxReplicas = 100_000

// Job reads a job: name, namespace, queue, priority, minAvailable, minResources, and groups of role, replicas, request and minAvailable.
// Its resources refer to the dimensions of the snapshot. Its tasks are named as Volcano names pods: JOB-ROLE-INDEX.
func Job(snapshot *lookup.Snapshot, n tree.Node) (*apportionv1.Job, error) {
	job := client.Job{}
	groups := func(n tree.Node) error {
		items, err := n.Items()
		for _, item := range items {
			group, err := readGroup(item, &job)
			if err != nil {
				return err
			}
			job.Groups = append(job.Groups, group)
		}
		return err
	}
	err := n.Read(tree.Fields{
		"uid": tree.Text(&job.UID), "name": tree.Text(&job.Name), "namespace": tree.Text(&job.Namespace), "queue": tree.Text(&job.Queue),
		"priority": tree.Whole(&job.Priority), "minAvailable": tree.Whole(&job.MinAvailable), "phase": word(&job.Phase),
		"minResources": resources(&job.MinResources), "groups": groups,
	})
	if err != nil {
		return nil, err
	}
	if job.Name == "" {
		return nil, n.FaultAt("name", "a job needs a name")
	}
	nameTasks(&job)
	return translate(n, snapshot, job)
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

func readGroup(n tree.Node, job *client.Job) (client.Group, error) {
	group := client.Group{}
	replicas, minimum := uint32(1), int32(-1)
	err := n.Read(tree.Fields{
		"role": tree.Text(&group.Role), "replicas": tree.Whole(&replicas), "request": resources(&group.Request),
		"minAvailable": tree.Whole(&minimum),
	})
	if err != nil {
		return group, err
	}
	if replicas > maxReplicas {
		return group, n.FaultAt("replicas", "more than %d", maxReplicas)
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
func resources(place *client.Resources) tree.Reader {
	return func(n tree.Node) error {
		if n.Kind != yaml.MappingNode {
			return n.Fault("quantities by name are expected, as in {cpu: 500m, memory: 4Gi}")
		}
		*place = client.Resources{}
		return n.Entries(func(name string, _, value tree.Node) error {
			(*place)[name] = value.Value
			_, err := client.NewSnapshot().Total(client.Resources{name: value.Value}).Build()
			if faults, ok := errors.AsType[*client.SnapshotError](err); ok {
				_, message, _ := strings.Cut(faults.Faults[0], ": ")
				return value.Fault("%s", message)
			}
			if err != nil {
				return value.Fault("%v", err)
			}
			return nil
		})
	}
}

// translate turns a job into the contract's, its resources over the snapshot's dimensions.
func translate(n tree.Node, snapshot *lookup.Snapshot, job client.Job) (*apportionv1.Job, error) {
	built, err := client.NewSnapshot().Job(job).Build()
	if err != nil {
		return nil, n.Fault("%v", err)
	}
	dimensions := make([]uint32, len(built.GetDimensions()))
	for i, name := range built.GetDimensions() {
		index := slices.Index(snapshot.GetDimensions(), name)
		if index < 0 && name != "pods" {
			return nil, n.Fault("no resource %q is in the cluster", name)
		}
		dimensions[i] = uint32(max(index, 0))
	}
	message := built.GetJobs()[0]
	renumber := func(r *apportionv1.Resource) {
		kept := 0
		for i, index := range r.GetDimensions() {
			name := built.GetDimensions()[index]
			if name == "pods" && !slices.Contains(snapshot.GetDimensions(), name) {
				continue
			}
			r.Dimensions[kept], r.Amounts[kept] = dimensions[index], r.Amounts[i]
			kept++
		}
		if r != nil {
			r.Dimensions, r.Amounts = r.Dimensions[:kept], r.Amounts[:kept]
		}
	}
	renumber(message.GetMinResources())
	for _, group := range message.GetGroups() {
		renumber(group.GetRequest())
	}
	return message, nil
}
