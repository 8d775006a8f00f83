package adopt

import (
	"context"

	"github.com/apportion/apportion/client"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// Follow returns a mirror of the cluster as it is now.
func Follow(decide *client.Client, c *Cluster) (*client.Mirror, error) {
	m := client.NewMirror(decide)
	snapshot, err := c.Describe()
	if err == nil {
		err = m.Replace(snapshot)
	}
	return m, err
}

// Started sets where the pods of a job run, and asks which waiting jobs may enter now. Only what was set is sent.
func Started(ctx context.Context, decide *client.Client, m *client.Mirror, c *Cluster, job *Job) (*client.Admissions, error) {
	for pod, node := range job.Nodes {
		err := m.SetTask(podOf(job, pod), apportionv1.TaskStatus_TASK_STATUS_RUNNING, c.Nodes[node].Name)
		if err != nil {
			return nil, err
		}
	}
	return decide.Enqueue(ctx, client.Input{State: m.State(), Policy: client.VolcanoDefault()}, client.EnqueueQuestion{AsAction: true})
}
