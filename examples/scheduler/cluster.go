package main

import (
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// gpu is the dimension that the cluster is about.
const gpu = "nvidia.com/gpu"

// Room is the capacity of a node, or the request of a task, in whole units. The scheduler itself checks that a placement fits.
type Room struct {
	CPU       int64 `yaml:"cpu"`
	MemoryGiB int64 `yaml:"memoryGiB"`
	GPU       int64 `yaml:"gpu"`
}

// holds reports whether a task that asks for other finds room.
func (r Room) holds(other Room) bool {
	return other.CPU <= r.CPU && other.MemoryGiB <= r.MemoryGiB && other.GPU <= r.GPU
}

func (r Room) plus(other Room) Room {
	return Room{r.CPU + other.CPU, r.MemoryGiB + other.MemoryGiB, r.GPU + other.GPU}
}

func (r Room) minus(other Room) Room {
	return Room{r.CPU - other.CPU, r.MemoryGiB - other.MemoryGiB, r.GPU - other.GPU}
}

func (r Room) times(n int64) Room {
	return Room{r.CPU * n, r.MemoryGiB * n, r.GPU * n}
}

// resources are the room as client.Resources.
func (r Room) resources() client.Resources {
	return client.Resources{"cpu": fmt.Sprint(r.CPU), "memory": fmt.Sprint(r.MemoryGiB) + "Gi", gpu: fmt.Sprint(r.GPU)}
}

// Cluster is the nodes and the queues.
type Cluster struct {
	Nodes  Nodes   `yaml:"nodes"`
	Queues []Queue `yaml:"queues"`
}

// Nodes are so many of equal size.
type Nodes struct {
	Count int  `yaml:"count"`
	Each  Room `yaml:"each"`
}

// Queue is one of the queues that share the cluster, with the settings that each policy needs.
type Queue struct {
	Name string `yaml:"name"`
	// Weight is for proportion, and for its branch of the tree of hierarchical DRF.
	Weight uint32 `yaml:"weight"`
	// Deserved is the number of GPUs for capacity.
	Deserved int64 `yaml:"deserved"`
	// Guarantee is the number of GPUs that no other queue may use.
	Guarantee int64 `yaml:"guarantee"`
}

// gpus is the size of the cluster.
func (c *Cluster) gpus() int64 { return c.Nodes.Each.times(int64(c.Nodes.Count)).GPU }

// queue is the position of a queue, -1 if there is none of that name.
func (c *Cluster) queue(name string) int {
	for i := range c.Queues {
		if c.Queues[i].Name == name {
			return i
		}
	}
	return -1
}

func readCluster(r io.Reader) (*Cluster, error) {
	decoder := yaml.NewDecoder(r)
	decoder.KnownFields(true)
	cluster := &Cluster{}
	if err := decoder.Decode(cluster); err != nil {
		return nil, err
	}
	if cluster.Nodes.Count < 1 || cluster.Nodes.Each.GPU < 1 || len(cluster.Queues) == 0 {
		return nil, errors.New("a cluster needs nodes with GPUs, and queues")
	}
	return cluster, nil
}

// check refuses jobs on unknown queues, and tasks that no node could ever hold.
func (c *Cluster) check(trace []Submission) error {
	for i := range trace {
		s := &trace[i]
		switch {
		case c.queue(s.Queue) < 0:
			return fmt.Errorf("job %s: no queue %q", s.Name, s.Queue)
		case !c.Nodes.Each.holds(s.Each):
			return fmt.Errorf("job %s: no node holds a task of %+v", s.Name, s.Each)
		}
	}
	return nil
}

// declare adds the nodes and the queues to a snapshot.
func (c *Cluster) declare(s *client.Snapshot) {
	for i := range c.Nodes.Count {
		s.Node(client.Node{Name: fmt.Sprintf("gpu-%d", i), Allocatable: c.Nodes.Each.resources()})
	}
	for i := range c.Queues {
		q := &c.Queues[i]
		queue := client.Queue{
			Name: q.Name, Weight: q.Weight,
			FairShareHierarchy: &apportionv1.FairShareHierarchy{Path: "root/" + q.Name, Weights: fmt.Sprintf("1/%d", q.Weight)},
		}
		if q.Deserved > 0 {
			queue.Deserved = client.Resources{gpu: fmt.Sprint(q.Deserved)}
		}
		if q.Guarantee > 0 {
			queue.Guarantee = client.Resources{gpu: fmt.Sprint(q.Guarantee)}
		}
		s.Queue(queue)
	}
}
