package wire

import (
	"cmp"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
)

// changeBytes is the memory for undoing a change of one task.
const changeBytes = 8 << 10

// tasksStep is a step that changes the tasks that it selects.
type tasksStep interface {
	proto.Message
	GetTasks() *apportionv1.Selector
}

var setStatusQuestion = question[*apportionv1.SetStatusStep]{
	of: (*apportionv1.Step).GetSetStatus, changes: true, need: noKind, answer: (*Session).setStatus,
	work: spendOnTasks[*apportionv1.SetStatusStep], memory: memoryOfTasks[*apportionv1.SetStatusStep],
	read: reader(false, func(m *made[apportionv1.Step_SetStatus, apportionv1.SetStatusStep], r stepFields) {
		m.body.Tasks, m.body.Status = r.tasks(&m.tasks), apportionv1.TaskStatus(int32(r.numbers[2]))
		m.step.Step, m.member.SetStatus = &m.member, &m.body
	}),
}

var allocateQuestion = question[*apportionv1.AllocateStep]{
	of: (*apportionv1.Step).GetAllocate, changes: true, need: noKind, answer: (*Session).allocate,
	work: spendOnTasks[*apportionv1.AllocateStep], memory: memoryOfTasks[*apportionv1.AllocateStep],
	read: reader(true, func(m *made[apportionv1.Step_Allocate, apportionv1.AllocateStep], r stepFields) {
		m.body.Tasks, m.body.Nodes = r.tasks(&m.tasks), r.list
		m.step.Step, m.member.Allocate = &m.member, &m.body
	}),
}

var deallocateQuestion = question[*apportionv1.DeallocateStep]{
	of: (*apportionv1.Step).GetDeallocate, changes: true, need: noKind, answer: (*Session).deallocate,
	work: spendOnTasks[*apportionv1.DeallocateStep], memory: memoryOfTasks[*apportionv1.DeallocateStep],
	read: reader(false, func(m *made[apportionv1.Step_Deallocate, apportionv1.DeallocateStep], r stepFields) {
		m.body.Tasks, m.body.Status = r.tasks(&m.tasks), apportionv1.TaskStatus(int32(r.numbers[2]))
		m.step.Step, m.member.Deallocate = &m.member, &m.body
	}),
}

func spendOnTasks[Q tasksStep](s *Session, q Q) error {
	return s.work.Spend(selected(q.GetTasks(), 0), s.engine.View().Dims.Len()*s.plugins)
}

// memoryOfTasks returns the memory of a change of tasks: their list, and the pages of the model that hold them.
func memoryOfTasks[Q tasksStep](a *asking, q Q) (answer, work int64) {
	n := int64(selected(q.GetTasks(), 0))
	a.undo += changeBytes + n*(64+2*decode.RowBytes(int(a.Dimensions)))
	return 0, a.moved(n)
}

func done() *apportionv1.Answer {
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Done{Done: &apportionv1.DoneAnswer{}}}
}

func (s *Session) setStatus(q *apportionv1.SetStatusStep) (*apportionv1.Answer, error) {
	var faults model.Error
	tasks := s.selectTasks(q.GetTasks(), "tasks", &faults)
	status, known := decode.StatusOf(q.GetStatus())
	if !known || q.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED {
		faults.Add("status", "no status %d", q.GetStatus())
	}
	if err := faults.OrNil(); err != nil {
		return nil, err
	}
	set := func() error {
		for _, t := range tasks {
			s.engine.SetStatus(t, status)
		}
		return nil
	}
	if s.engine.View().Pods != nil {
		return s.event(set)
	}
	return done(), set()
}

func (s *Session) allocate(q *apportionv1.AllocateStep) (*apportionv1.Answer, error) {
	var faults model.Error
	tasks := s.selectTasks(q.GetTasks(), "tasks", &faults)
	nodes := s.selectNodes(&apportionv1.Selector{Indices: q.GetNodes()}, "node", &faults)
	if len(nodes) > 0 && len(nodes) != len(tasks) && faults.Total == 0 {
		faults.Add("nodes", "%d nodes for %d tasks", len(nodes), len(tasks))
	}
	if err := faults.OrNil(); err != nil {
		return nil, err
	}
	return s.event(func() error {
		for i, t := range tasks {
			node := model.NodeID(model.None)
			if len(nodes) > 0 {
				node = nodes[i]
			}
			if err := s.engine.Allocate(t, node); err != nil {
				return s.wrongStatus(t, err)
			}
		}
		return nil
	})
}

func (s *Session) deallocate(q *apportionv1.DeallocateStep) (*apportionv1.Answer, error) {
	var faults model.Error
	tasks := s.selectTasks(q.GetTasks(), "tasks", &faults)
	status, known := decode.StatusOf(q.GetStatus())
	if q.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED {
		status = model.Releasing
	}
	if !known || status.Holds() {
		faults.Add("status", "%s is a status that holds resources", q.GetStatus())
	}
	if err := faults.OrNil(); err != nil {
		return nil, err
	}
	return s.event(func() error {
		for _, t := range tasks {
			if err := s.engine.Deallocate(t, status); err != nil {
				return s.wrongStatus(t, err)
			}
		}
		return nil
	})
}

// event carries out a change of several parts wholly or not at all. What the rules on other pods count of a change costs work that is
// found out on the way.
func (s *Session) event(change func() error) (*apportionv1.Answer, error) {
	err := s.engine.Try(func() error { return cmp.Or(change(), s.exceeded()) })
	if err != nil {
		return nil, err
	}
	return done(), nil
}

func (s *Session) wrongStatus(t model.TaskID, err error) error {
	v := s.engine.View()
	return &decode.Fault{
		Code: codes.FailedPrecondition, Reason: apportionv1.ErrorReason_ERROR_REASON_WRONG_TASK_STATUS, Field: "tasks",
		Text: "task " + strconv.Itoa(int(t)) + " is " + decode.WireStatus(v.Status(t)).String() + ": " + err.Error(),
	}
}
