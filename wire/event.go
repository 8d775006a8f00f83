package wire

import (
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/apportion/apportion/engine/model"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

func done() *apportionv1.Answer {
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Done{Done: &apportionv1.DoneAnswer{}}}
}

func (s *Session) setStatus(q *apportionv1.SetStatusStep) (*apportionv1.Answer, error) {
	var faults model.Error
	tasks := s.selectTasks(q.GetTasks(), "tasks", &faults)
	status, known := statusOf(q.GetStatus())
	if !known || q.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED {
		faults.Add("status", "no status %d", q.GetStatus())
	}
	if err := faults.OrNil(); err != nil {
		return nil, err
	}
	for _, t := range tasks {
		s.engine.SetStatus(t, status)
	}
	return done(), nil
}

func (s *Session) allocate(q *apportionv1.AllocateStep) (*apportionv1.Answer, error) {
	var faults model.Error
	tasks := s.selectTasks(q.GetTasks(), "tasks", &faults)
	nodes := s.selectNodes(&apportionv1.Nodes{Index: q.GetNode()}, "node", &faults)
	if len(nodes) > 0 && len(nodes) != len(tasks) && faults.Total == 0 {
		faults.Add("node", "%d nodes for %d tasks", len(nodes), len(tasks))
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
	status, known := statusOf(q.GetStatus())
	if q.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED {
		status = model.Releasing
	}
	if !known || status.Holds() {
		faults.Add("status", "%s is no status that holds nothing", q.GetStatus())
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

// event carries out a change of several parts wholly or not at all.
func (s *Session) event(change func() error) (*apportionv1.Answer, error) {
	if err := s.engine.Try(change); err != nil {
		return nil, err
	}
	return done(), nil
}

func (s *Session) wrongStatus(t model.TaskID, err error) error {
	v := s.engine.View()
	return &Fault{
		Code: codes.FailedPrecondition, Reason: apportionv1.ErrorReason_ERROR_REASON_WRONG_TASK_STATUS, Field: "tasks",
		Text: "task " + strconv.Itoa(int(t)) + " is " + wireStatus(v.Status(t)).String() + ": " + err.Error(),
	}
}
