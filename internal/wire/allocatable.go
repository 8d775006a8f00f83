package wire

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

var allocatableQuestion = question[*apportionv1.AllocatableStep]{
	of:     (*apportionv1.Step).GetAllocatable,
	answer: (*Session).allocatable,
	work: func(s *Session, q *apportionv1.AllocatableStep) error {
		return s.work.Spend(selected(q.GetTasks(), 0), s.workOfTask())
	},
	memory: func(a *asking, q *apportionv1.AllocatableStep) (answer, work int64) {
		return a.taskVerdicts(q.GetTasks(), q.GetExplain())
	},
	explains: (*apportionv1.AllocatableStep).GetExplain,
	decision: verdicts((*apportionv1.Answer).GetAllocatable, (*apportionv1.AllocatableAnswer).GetTasks),
	read: reader(func(m *made[apportionv1.Step_Allocatable, apportionv1.AllocatableStep], r stepFields) {
		m.body.Tasks, m.body.Jointly = r.chosen[1].into(&m.tasks), r.numbers[2] != 0
		m.body.Mode, m.body.Explain = apportionv1.AccountingMode(int32(r.numbers[3])), r.numbers[4] != 0
		m.step.Step, m.member.Allocatable = &m.member, &m.body
	}),
}

var preemptiveQuestion = question[*apportionv1.PreemptiveStep]{
	of:     (*apportionv1.Step).GetPreemptive,
	answer: (*Session).preemptive,
	work: func(s *Session, q *apportionv1.PreemptiveStep) error {
		return s.work.Spend(selected(q.GetTasks(), 0), s.workOfTask())
	},
	memory: func(a *asking, q *apportionv1.PreemptiveStep) (answer, work int64) {
		return a.taskVerdicts(q.GetTasks(), q.GetExplain())
	},
	explains: (*apportionv1.PreemptiveStep).GetExplain,
	decision: verdicts((*apportionv1.Answer).GetPreemptive, (*apportionv1.PreemptiveAnswer).GetTasks),
	read: reader(func(m *made[apportionv1.Step_Preemptive, apportionv1.PreemptiveStep], r stepFields) {
		m.body.Tasks, m.body.Jointly, m.body.Explain = r.chosen[1].into(&m.tasks), r.numbers[2] != 0, r.numbers[3] != 0
		m.step.Step, m.member.Preemptive = &m.member, &m.body
	}),
}

func (s *Session) allocatable(q *apportionv1.AllocatableStep) (*apportionv1.Answer, error) {
	mode := policy.InSession
	switch q.GetMode() {
	case apportionv1.AccountingMode_ACCOUNTING_MODE_UNSPECIFIED, apportionv1.AccountingMode_ACCOUNTING_MODE_SESSION:
	case apportionv1.AccountingMode_ACCOUNTING_MODE_SIMULATION:
		mode = policy.InSimulation
	default:
		return nil, faultAt("mode", "no mode %d", q.GetMode())
	}
	tasks, err := s.taskVerdicts(q.GetTasks(), q.GetJointly(), q.GetExplain(),
		func(tasks []model.TaskID, why *policy.Reasons, checks *policy.Checks) bool {
			return s.engine.Allocatable(tasks, mode, why, checks)
		})
	if err != nil {
		return nil, err
	}
	out := single(&s.out, &s.out.memory().allocatables)
	out.body.Tasks, out.member.Allocatable, out.answer.Answer = tasks, &out.body, &out.member
	return &out.answer, nil
}

func (s *Session) preemptive(q *apportionv1.PreemptiveStep) (*apportionv1.Answer, error) {
	tasks, err := s.taskVerdicts(q.GetTasks(), q.GetJointly(), q.GetExplain(), s.engine.Preemptive)
	if err != nil {
		return nil, err
	}
	out := &whole[apportionv1.Answer_Preemptive, apportionv1.PreemptiveAnswer]{}
	out.body.Tasks, out.member.Preemptive, out.answer.Answer = tasks, &out.body, &out.member
	return &out.answer, nil
}

// taskVerdicts asks a question of each task, or of all together.
func (s *Session) taskVerdicts(
	selection *apportionv1.Selector, jointly, explain bool, ask func([]model.TaskID, *policy.Reasons, *policy.Checks) bool,
) ([]*apportionv1.TaskVerdict, error) {
	var faults model.Error
	tasks := s.selectTasks(selection, "tasks", &faults)
	if jointly && faults.Total == 0 {
		s.checkJoint(tasks, &faults)
	}
	if err := faults.OrNil(); err != nil {
		return nil, err
	}
	if jointly {
		verdict := &apportionv1.TaskVerdict{}
		s.taskVerdict(verdict, tasks, explain, ask)
		return []*apportionv1.TaskVerdict{verdict}, s.out.check("explain")
	}
	if err := s.out.room(len(tasks), "tasks"); err != nil {
		return nil, err
	}
	verdicts, list := s.out.memory().taskVerdicts.take(len(tasks)), s.out.memory().taskLists.take(len(tasks))
	for i, t := range tasks {
		if s.stopped(i) {
			return nil, policy.ErrStopped
		}
		list[i] = &verdicts[i]
		list[i].Task = s.out.optional(int(t))
		if s.taskVerdict(list[i], tasks[i:i+1], explain, ask); s.out.left < 0 {
			return nil, s.out.tooLarge("tasks")
		}
	}
	return list, nil
}

func (s *Session) checkJoint(tasks []model.TaskID, faults *model.Error) {
	v := s.engine.View()
	if len(tasks) == 0 {
		faults.Add("tasks", "no task is named to be asked about jointly")
		return
	}
	for _, t := range tasks {
		if q, first := v.QueueOf(t), v.QueueOf(tasks[0]); q != first {
			faults.Add("tasks", "tasks asked jointly belong to one queue, but task %d is of %q and task %d of %q",
				tasks[0], v.Queues[first].Name, t, v.Queues[q].Name)
			return
		}
	}
}

func (s *Session) taskVerdict(
	out *apportionv1.TaskVerdict, tasks []model.TaskID, explain bool, ask func([]model.TaskID, *policy.Reasons, *policy.Checks) bool,
) {
	s.reasons.List = s.reasons.List[:0]
	var checks *policy.Checks
	if explain {
		s.checks.List = s.checks.List[:0]
		checks = &s.checks
	}
	permitted := ask(tasks, &s.reasons, checks)
	out.Verdict = s.out.verdict(permitted, s.reasons.List)
	s.out.left -= messageBytes
	if !explain {
		return
	}
	out.Checks = make([]*apportionv1.Cause, len(checks.List))
	for i := range checks.List {
		out.Checks[i] = s.out.reason(&checks.List[i].Reason)
		out.Checks[i].Passed = checks.List[i].Passed
	}
}

func (a *asking) taskVerdicts(tasks *apportionv1.Selector, explain bool) (answer, work int64) {
	n := int64(selected(tasks, 0))
	answer = n * (decode.BytesOf[apportionv1.TaskVerdict](1) + 24 + a.verdict())
	if explain {
		answer += min(a.explain, n*a.Plugins*(a.Dimensions+1)*a.Queues*(decode.BytesOf[policy.Check](1)+a.reason()))
	}
	return answer, 8 * n
}
