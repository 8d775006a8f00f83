package adopt

import (
	"strconv"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Describe returns the present state of the cluster as a snapshot. A team is a queue whose weight is its quota.
func (c *Cluster) Describe() (*apportionv1.Snapshot, error) {
	snapshot := client.NewSnapshot()
	for _, node := range c.Nodes {
		snapshot.Node(client.Node{Name: node.Name, Allocatable: gpus(node.GPUs)})
	}
	for _, team := range c.Teams {
		snapshot.Queue(client.Queue{Name: team.Name, Weight: uint32(team.Quota)})
	}
	for _, job := range c.Jobs {
		described := client.Job{
			Name: job.Name, Queue: job.Team, MinAvailable: uint32(job.Least), MinResources: gpus(job.Least),
			Groups: []client.Group{{Request: gpus(1)}},
		}
		if job.Runs() {
			described.Phase = apportionv1.JobPhase_JOB_PHASE_RUNNING
		}
		for pod := range job.Pods {
			task := client.Task{UID: podOf(job, pod)}
			if pod < len(job.Nodes) {
				task.Status, task.Node = apportionv1.TaskStatus_TASK_STATUS_RUNNING, c.Nodes[job.Nodes[pod]].Name
			}
			described.Groups[0].Tasks = append(described.Groups[0].Tasks, task)
		}
		snapshot.Job(described)
	}
	return snapshot.Build()
}

func gpus(n int) client.Resources { return client.Resources{"nvidia.com/gpu": strconv.Itoa(n)} }

func podOf(job *Job, pod int) string { return job.Name + "-" + strconv.Itoa(pod) }
