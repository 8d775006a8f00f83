package wire

import (
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/account"
	"github.com/apportion/apportion/engine/resource"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

var inspectQuestion = question[*apportionv1.InspectStep]{
	of:     (*apportionv1.Step).GetInspect,
	answer: (*Session).inspect,
	need:   exceptNodes,
	// Jobs and tasks are shown with their priorities.
	unranked: func(_ *Session, q *apportionv1.InspectStep) bool { return !q.GetJobs() && !q.GetTasks() },
	work: func(s *Session, _ *apportionv1.InspectStep) error {
		v := s.engine.View()
		return s.work.Spend(len(v.Nodes)+v.Jobs.Len()+v.Tasks.Len(), v.Dims.Len())
	},
	memory: (*asking).inspect,
	permit: func(s *Session, q *apportionv1.InspectStep) *decode.Fault {
		return s.permitJobs(q.GetOf(), "of", false)
	},
	visible: map[string]string{
		"InspectAnswer":     "total queue_count job_count task_count node_count nodes jobs tasks queues memory",
		"Memory":            "epoch_seconds half_life_epochs epoch offered",
		"InspectedNode":     "node name allocatable used idle group unschedulable reservations",
		"NodeReservation":   "start_unix_nano end_unix_nano request holder reason",
		"NodeUnschedulable": "cause detail",
		"InspectedQueue":    "queue settings",
		"Queue": "name parent weight priority state reclaimable capability guarantee deserved create_time node_group_affinity " +
			"fair_share_hierarchy usage budget owners entitled node_group_limits",
		"NodeGroupAffinity":  "affinity anti_affinity",
		"NodeGroupTerms":     "required_groups preferred_groups",
		"NodeGroupLimits":    "groups invalid",
		"NodeGroupLimit":     "group limit",
		"FairShareHierarchy": "path weights",
		"Usage":              "dimensions quantum_seconds",
		"Budget":             "kind amount spent",
		"OwnerUsage":         "owner usage weight",
		"InspectedJob": "job uid queue priority phase min_available min_resources allocated total_request elastic ready_tasks " +
			"valid_tasks name namespace",
		"InspectedTask": "task uid job role status node request priority preemptable best_effort gated name",
	},
}

func (s *Session) inspect(q *apportionv1.InspectStep) (*apportionv1.Answer, error) {
	v := s.engine.View()
	answer := &apportionv1.InspectAnswer{
		Total: s.out.resource(v.Total), QueueCount: uint32(len(v.QueueOrder)), JobCount: uint32(len(v.Present())),
		NodeCount: uint32(len(v.NodeOrder)), Policy: s.policy(),
	}
	s.out.left -= proto.Size(s.policy()) + 4*messageBytes
	for _, j := range v.Present() {
		answer.TaskCount += uint32(v.Account(j).AllTasks())
	}
	of, err := s.inspected(q)
	if err != nil {
		return nil, err
	}
	steps := []struct {
		wanted bool
		list   func(*apportionv1.InspectAnswer, []model.JobID) error
	}{{q.GetNodes(), s.inspectNodes}, {q.GetQueues(), s.inspectQueues}, {q.GetJobs(), s.inspectJobs}, {q.GetTasks(), s.inspectTasks}}
	for _, step := range steps {
		if step.wanted {
			if err := step.list(answer, of); err != nil {
				return nil, err
			}
		}
	}
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Inspect{Inspect: answer}}, nil
}

// inspected are the jobs that a step is about.
func (s *Session) inspected(q *apportionv1.InspectStep) ([]model.JobID, error) {
	if q.GetOf() == nil {
		return s.audience.jobs(s.engine.View(), s.allJobs()), nil
	}
	var faults model.Error
	if !q.GetJobs() && !q.GetTasks() {
		faults.Add("of", "neither jobs nor tasks are selected")
	}
	return s.jobsNamed(q.GetOf(), "of", &faults), faults.OrNil()
}

func (s *Session) inspectQueues(answer *apportionv1.InspectAnswer, _ []model.JobID) error {
	v := s.engine.View()
	answer.Memory = decode.MemoryOf(v.Model)
	for i, q := range s.allQueues() {
		if s.stopped(i) {
			return policy.ErrStopped
		}
		if !s.audience.Shows(q) {
			continue
		}
		settings := decode.DescribeQueue(v.Model, &v.Queues[q])
		if !s.audience.Owns(q) {
			settings.Owners = nil
		}
		answer.Queues = append(answer.Queues, &apportionv1.InspectedQueue{Queue: uint32(q), Settings: settings})
		if s.out.left -= messageBytes + proto.Size(settings); s.out.left < 0 {
			return s.out.tooLarge("queues")
		}
	}
	return nil
}

func (s *Session) inspectNodes(answer *apportionv1.InspectAnswer, _ []model.JobID) error {
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
		node := &apportionv1.InspectedNode{
			Node: uint32(n), Name: v.Nodes[n].Name, Allocatable: s.out.resource(v.Nodes[n].Allocatable), Used: s.out.resource(v.Used(n)),
			Idle: s.out.resource(idle),
		}
		if v.Nodes[n].Labelled {
			node.Group = new(v.Nodes[n].Group) // A copy: the memory of a model is used again before its answers are encoded.
		}
		if u := v.Nodes[n].Unschedulable; u != nil {
			node.Unschedulable = &apportionv1.NodeUnschedulable{Cause: apportionv1.UnschedulableCause(u.Cause), Detail: u.Detail}
		}
		node.Reservations = s.reservationsOf(n)
		answer.Nodes = append(answer.Nodes, node)
		if s.out.left -= messageBytes + len(node.Name) + len(node.GetGroup()) + len(node.GetUnschedulable().GetDetail()); s.out.left < 0 {
			return s.out.tooLarge("nodes")
		}
	}
	return nil
}

// reservationsOf returns the reservations of a node as far as the reader may see them: a job that the model does not have is one of others.
func (s *Session) reservationsOf(n model.NodeID) []*apportionv1.NodeReservation {
	v := s.engine.View()
	var out []*apportionv1.NodeReservation
	list := v.Nodes[n].Reservations()
	for i := range list {
		r := &list[i]
		one := &apportionv1.NodeReservation{
			StartUnixNano: r.From, EndUnixNano: r.Until, Request: s.out.resource(r.Request), Reason: r.Reason,
		}
		if j, known := v.Job(r.Holder); s.audience == nil || known && s.audience.Owns(v.Jobs.At(j).Queue) {
			one.Holder = r.Holder
		}
		out = append(out, one)
		s.out.left -= 2*messageBytes + len(one.Holder) + len(one.Reason)
	}
	return out
}

func (s *Session) inspectJobs(answer *apportionv1.InspectAnswer, of []model.JobID) error {
	v := s.engine.View()
	elastic := resource.NewAccount(v.Dims.Len())
	for i, j := range of {
		if s.stopped(i) {
			return policy.ErrStopped
		}
		job, tasks := v.Jobs.At(j), v.Account(j)
		account.Elastic(v, j, &elastic)
		answer.Jobs = append(answer.Jobs, &apportionv1.InspectedJob{
			Job: uint32(j), Uid: job.UID, Queue: uint32(job.Queue), Priority: job.Priority, Phase: decode.WirePhase(v.Phase(j)),
			MinAvailable: uint32(job.MinAvailable), MinResources: s.out.resource(job.MinResources),
			Allocated: s.out.resource(tasks.Allocated), TotalRequest: s.out.resource(tasks.Total), Elastic: s.out.resource(elastic),
			ReadyTasks: uint32(tasks.Ready()), ValidTasks: uint32(tasks.Valid()),
			Name: job.Name, Namespace: job.Namespace,
		})
		if s.out.left -= 4*messageBytes + len(job.UID) + len(job.Name) + len(job.Namespace); s.out.left < 0 {
			return s.out.tooLarge("jobs")
		}
	}
	return nil
}

func (s *Session) inspectTasks(answer *apportionv1.InspectAnswer, of []model.JobID) error {
	v := s.engine.View()
	for i, t := range tasksOf(s.engine.View(), of) {
		if s.stopped(i) {
			return policy.ErrStopped
		}
		task := v.Tasks.At(t)
		request := v.Request(t)
		uid, name := v.TaskKey(t), v.TaskName(t)
		role := v.Groups.At(task.Group).Role
		answer.Tasks = append(answer.Tasks, &apportionv1.InspectedTask{
			Task: uint32(t), Uid: uid, Job: uint32(task.Job), Role: role, Status: decode.WireStatus(v.Status(t)),
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

func (a *asking) inspect(q *apportionv1.InspectStep) (answer, work int64) {
	if q.GetNodes() {
		answer += a.Nodes*(decode.BytesOf[apportionv1.InspectedNode](1)+24+3*a.resource()) +
			a.Reservations*(2*decode.BytesOf[apportionv1.NodeReservation](1)+24+a.resource())
	}
	if q.GetJobs() {
		answer += a.Jobs * (decode.BytesOf[apportionv1.InspectedJob](1) + 24 + 4*a.resource())
	}
	if q.GetQueues() {
		answer += a.Queues * (decode.BytesOf[apportionv1.InspectedQueue](1) + decode.BytesOf[apportionv1.Queue](1) + 64 + 3*a.resource())
	}
	if q.GetTasks() {
		answer += a.Tasks * (decode.BytesOf[apportionv1.InspectedTask](1) + 64 + a.resource())
	}
	return answer, 8 * (a.Jobs + a.Tasks)
}
