// Package adopt is an existing scheduler that adopts Apportion in steps. docs/adding-to-a-scheduler.md describes the steps and shows this
// code.
package adopt

// Cluster is the scheduler's own state, without types of Apportion.
type Cluster struct {
	Nodes []Node
	Teams []Team
	Jobs  []*Job
}

// Node is a machine.
type Node struct {
	Name string
	GPUs int
}

// Team has a quota of GPUs.
type Team struct {
	Name  string
	Quota int
}

// Job is a gang of pods with one GPU each. It runs with any number of pods from Least on.
type Job struct {
	Name, Team  string
	Pods, Least int
	// Nodes of the first pods, by position in the cluster; the others wait.
	Nodes []int
}

// Runs says whether the job has nodes.
func (j *Job) Runs() bool { return len(j.Nodes) > 0 }

// MayStart is the rule that this scheduler has had until now: no team gets more than its quota.
func (c *Cluster) MayStart(job *Job) bool {
	used := job.Pods
	for _, other := range c.Jobs {
		if other.Team == job.Team {
			used += len(other.Nodes)
		}
	}
	for _, team := range c.Teams {
		if team.Name == job.Team {
			return used <= team.Quota
		}
	}
	return false
}
