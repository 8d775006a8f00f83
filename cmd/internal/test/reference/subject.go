package reference

import (
	"fmt"
	"time"

	"github.com/apportion/apportion/adapter/objects"
	"github.com/apportion/apportion/adapter/volcano"
	"github.com/apportion/apportion/adapter/volcano/schedulerconf"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// asOf is the clock of the recording; the times that depend on it lie years away.
var asOf = time.Date(2026, time.January, 2, 3, 10, 0, 0, time.UTC)

// subject is the content of a case as we read it: the input of the questions, and the names by which the recording refers to what is in it.
type subject struct {
	input *apportionv1.Input

	taskNames, jobNames, queueNames, nodeNames []string

	tasks, jobs, queues map[string]uint32

	// ofTask is the job of each task, ofJob the queue of each job.
	ofTask, ofJob []uint32
	status        []apportionv1.TaskStatus
}

// subject reads the case's manifests and its configuration.
func (c *Case) subject() (*subject, error) {
	cluster, err := volcano.FromObjects(c.Manifests, volcano.WithAsOf(asOf), volcano.AsScheduler())
	if err != nil {
		return nil, fmt.Errorf("manifests: %w", err)
	}
	policy, _, err := schedulerconf.Read(objects.Source{Name: "conf", Data: []byte(c.Conf)})
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	s := &subject{
		input: &apportionv1.Input{
			Source: &apportionv1.Input_Snapshot{Snapshot: cluster.Snapshot},
			Rule:   &apportionv1.Input_Policy{Policy: policy},
		},
		tasks: map[string]uint32{}, jobs: map[string]uint32{}, queues: map[string]uint32{},
	}
	s.index(cluster.Snapshot)
	return s, nil
}

// index numbers what is in the snapshot.
func (s *subject) index(snapshot *apportionv1.Snapshot) {
	for i, q := range snapshot.Queues {
		s.queues[q.Name] = uint32(i)
		s.queueNames = append(s.queueNames, q.Name)
	}
	for _, n := range snapshot.Nodes {
		s.nodeNames = append(s.nodeNames, n.Name)
	}
	for i, j := range snapshot.Jobs {
		name := j.Namespace + "/" + j.Name
		s.jobs[name] = uint32(i)
		s.jobNames = append(s.jobNames, name)
		s.ofJob = append(s.ofJob, s.queues[j.Queue])
		for _, g := range j.Groups {
			for _, t := range g.Tasks {
				name := j.Namespace + "/" + t.Name
				s.tasks[name] = uint32(len(s.taskNames))
				s.taskNames = append(s.taskNames, name)
				s.ofTask = append(s.ofTask, uint32(i))
				s.status = append(s.status, taskStatus(t))
			}
		}
	}
}

func taskStatus(t *apportionv1.Task) apportionv1.TaskStatus {
	if t.Status == apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED {
		return apportionv1.TaskStatus_TASK_STATUS_PENDING
	}
	return t.Status
}

// eachPlugin calls visit for each plugin of the policy, with the position of its tier.
func (s *subject) eachPlugin(visit func(tier int, plugin *apportionv1.Plugin)) {
	for i, tier := range s.input.GetPolicy().GetTiers() {
		for _, plugin := range tier.Plugins {
			visit(i, plugin)
		}
	}
}

// hasTree reports whether the policy's account of queues is a tree.
func (s *subject) hasTree() bool {
	found := false
	s.eachPlugin(func(_ int, p *apportionv1.Plugin) { found = found || p.GetCapacity().GetHierarchical() })
	return found
}

// hasNodeGroups reports whether the policy binds queues to groups of nodes.
func (s *subject) hasNodeGroups() bool {
	found := false
	s.eachPlugin(func(_ int, p *apportionv1.Plugin) { found = found || p.GetNodeGroup() != nil })
	return found
}
