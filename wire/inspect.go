package wire

import (
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/account"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func (s *Session) inspect(q *apportionv1.InspectStep) (*apportionv1.Answer, error) {
	v := s.engine.View()
	answer := &apportionv1.InspectAnswer{
		Total: s.out.resource(v.Total), QueueCount: uint32(len(v.QueueOrder)), JobCount: uint32(len(v.Present())),
		NodeCount: uint32(len(v.NodeOrder)), Policy: s.policy,
	}
	s.out.left -= proto.Size(s.policy) + 4*messageBytes
	for _, j := range v.Present() {
		answer.TaskCount += uint32(v.Account(j).AllTasks())
	}
	steps := []struct {
		wanted bool
		list   func(*apportionv1.InspectAnswer) error
	}{{q.GetNodes(), s.inspectNodes}, {q.GetJobs(), s.inspectJobs}, {q.GetTasks(), s.inspectTasks}}
	for _, step := range steps {
		if step.wanted {
			if err := step.list(answer); err != nil {
				return nil, err
			}
		}
	}
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Inspect{Inspect: answer}}, nil
}

func (s *Session) inspectNodes(answer *apportionv1.InspectAnswer) error {
	v := s.engine.View()
	idle := resource.NewAccount(v.Dims.Len())
	for i := range v.Nodes {
		if s.stopped(i) {
			return policy.ErrStopped
		}
		n := model.NodeID(i)
		if !v.HasNode(n) {
			continue
		}
		v.Idle(n, &idle)
		answer.Nodes = append(answer.Nodes, &apportionv1.InspectedNode{
			Node: uint32(n), Name: v.Nodes[n].Name, Allocatable: s.out.resource(v.Nodes[n].Allocatable), Used: s.out.resource(v.Used(n)),
			Idle: s.out.resource(idle),
		})
		if s.out.left -= messageBytes + len(v.Nodes[n].Name); s.out.left < 0 {
			return s.out.tooLarge("nodes")
		}
	}
	return nil
}

func (s *Session) inspectJobs(answer *apportionv1.InspectAnswer) error {
	v := s.engine.View()
	elastic := resource.NewAccount(v.Dims.Len())
	for i, j := range s.allJobs() {
		if s.stopped(i) {
			return policy.ErrStopped
		}
		job, tasks := v.Jobs.At(j), v.Account(j)
		account.Elastic(v, j, &elastic)
		answer.Jobs = append(answer.Jobs, &apportionv1.InspectedJob{
			Job: uint32(j), Uid: job.UID, Queue: uint32(job.Queue), Priority: job.Priority, Phase: wirePhase(v.Phase(j)),
			MinAvailable: uint32(job.MinAvailable), MinResources: s.out.resource(job.MinResources),
			Allocated: s.out.resource(tasks.Allocated), TotalRequest: s.out.resource(tasks.Total), Elastic: s.out.resource(elastic),
			ReadyTasks: uint32(tasks.Ready()), ValidTasks: uint32(tasks.Valid()),
		})
		if s.out.left -= 4*messageBytes + len(job.UID); s.out.left < 0 {
			return s.out.tooLarge("jobs")
		}
	}
	return nil
}

func (s *Session) inspectTasks(answer *apportionv1.InspectAnswer) error {
	v := s.engine.View()
	for i, t := range s.allTasks() {
		if s.stopped(i) {
			return policy.ErrStopped
		}
		task := v.Tasks.At(t)
		request := v.Request(t)
		uid, name := v.TaskKey(t), v.TaskName(t)
		role := v.Groups.At(task.Group).Role
		answer.Tasks = append(answer.Tasks, &apportionv1.InspectedTask{
			Task: uint32(t), Uid: uid, Job: uint32(task.Job), Role: role, Status: wireStatus(v.Status(t)),
			Node: s.out.optional(int(v.NodeOf(t))), Request: s.out.resource(request), Priority: task.Priority,
			Preemptable: task.Preemptable, BestEffort: v.BestEffort(request),
			Gated: task.Gate != model.GateNone, Name: name,
		})
		if s.out.left -= 4*messageBytes + len(uid) + len(role) + len(name); s.out.left < 0 {
			return s.out.tooLarge("tasks")
		}
	}
	return nil
}
