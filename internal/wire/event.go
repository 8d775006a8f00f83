package wire

import (
	"cmp"
	"errors"
	"strconv"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
	"github.com/apportion/apportion/internal/decode"
	"github.com/apportion/apportion/internal/event"
)

// changeBytes is the memory for undoing a change of one task.
const changeBytes = 8 << 10

var eventQuestion = question[*apportionv1.Event]{
	of: (*apportionv1.Step).GetEvent, changes: true, need: noKind, answer: (*Session).happen,
	work: func(s *Session, e *apportionv1.Event) error {
		return s.work.Spend(selected(subjects(e), 0), s.engine.View().Dims.Len()*s.plugins)
	},
	memory: func(a *asking, e *apportionv1.Event) (answer, work int64) {
		if change := e.GetChange(); change != nil {
			return a.change(change), 0
		}
		if edits := e.GetEdit(); edits != nil {
			a.edit(edits)
			return 0, 0
		}
		// Of tasks: their list, and the pages of the model that hold them.
		n := int64(selected(subjects(e), 0))
		a.undo += changeBytes + n*(64+2*decode.RowBytes(int(a.Dimensions)))
		return 0, a.moved(n)
	},
	read: readEvent,
}

// subjects returns the jobs or tasks to which an event happens; nil for a change or edits.
func subjects(e *apportionv1.Event) *apportionv1.Selector {
	switch e := e.GetEvent().(type) {
	case *apportionv1.Event_Admit:
		return e.Admit.GetJobs()
	case *apportionv1.Event_Place:
		return e.Place.GetTasks()
	case *apportionv1.Event_Evict:
		return e.Evict.GetTasks()
	case *apportionv1.Event_Status:
		return e.Status.GetTasks()
	}
	return nil
}

// eventKind is the kind of steps that are events.
var eventKind = sync.OnceValue(func() *Question { return QuestionOf(event.Step(nil)) })

// Apply lets the events from a position on happen, in order, as one list of steps would, or returns a *Fault whose paths begin with the
// event: field[3].place.tasks. Some of the events have happened by then.
func (s *Session) Apply(events []*apportionv1.Event, from int, field string) error {
	if from >= len(events) {
		return nil
	}
	s.begin()
	defer s.end()
	for i, step := range Happening(events[from:]) {
		if s.stopped(i) {
			return decode.AsFault(policy.ErrStopped)
		}
		if _, fault := s.attempt(eventKind(), step); fault != nil {
			return fault.Within(indexed(field, from+i) + ".")
		}
	}
	return nil
}

// Continue goes on from the snapshot of an input: the events from a position on happen, then its edits are made. It returns a *Fault whose
// paths begin with a prefix, which leads to the input.
func (s *Session) Continue(events []*apportionv1.Event, from int, edits []*apportionv1.Edit, prefix string) error {
	if err := s.Apply(events, from, prefix+"events"); err != nil {
		return err
	}
	return s.Edit(edits, prefix)
}

// Happening returns events as steps.
func Happening(events []*apportionv1.Event) []*apportionv1.Step {
	steps := make([]*apportionv1.Step, len(events))
	for i, e := range events {
		steps[i] = event.Step(e)
	}
	return steps
}

// happen lets an event happen.
func (s *Session) happen(e *apportionv1.Event) (*apportionv1.Answer, error) {
	answer := &apportionv1.EventAnswer{}
	var err error
	switch e := e.GetEvent().(type) {
	case *apportionv1.Event_Admit:
		err = within(s.admit(e.Admit), "admit.")
	case *apportionv1.Event_Place:
		err = within(s.place(e.Place), "place.")
	case *apportionv1.Event_Evict:
		err = within(s.evict(e.Evict), "evict.")
	case *apportionv1.Event_Status:
		err = within(s.setStatus(e.Status), "status.")
	case *apportionv1.Event_Change:
		err = s.changeSnapshot(e.Change, answer)
	case *apportionv1.Event_Edit:
		err = within(s.editSnapshot(e.Edit), "edit.")
	default:
		err = faultAt("event", "no event is given, or none that this version supports")
	}
	return &apportionv1.Answer{Answer: &apportionv1.Answer_Event{Event: answer}}, err
}

// within makes the paths of an error begin with a prefix.
func within(err error, prefix string) error {
	if violations, ok := errors.AsType[*model.Error](err); ok {
		return decode.Prefixed(violations, prefix)
	}
	if fault, ok := errors.AsType[*decode.Fault](err); ok {
		return fault.Within(prefix)
	}
	return err
}

func (s *Session) admit(q *apportionv1.Admission) error {
	var faults model.Error
	jobs := s.selectJobs(q.GetJobs(), &faults)
	if err := faults.OrNil(); err != nil {
		return err
	}
	return s.whole(func() error {
		for _, j := range jobs {
			if phase := s.engine.View().Phase(j); !s.engine.Job(j).Admit(nil) {
				name := decode.WirePhase(phase).String()
				return wrongStatus("jobs", "job "+strconv.Itoa(int(j))+" is "+name+": only a pending job is admitted")
			}
		}
		return nil
	})
}

func (s *Session) place(q *apportionv1.Placement) error {
	var faults model.Error
	tasks := s.selectTasks(q.GetTasks(), "tasks", &faults)
	nodes := s.selectNodes(q.GetNodes(), "nodes", &faults)
	if len(nodes) > 0 && len(nodes) != len(tasks) && faults.Total == 0 {
		faults.Add("nodes", "%d nodes for %d tasks", len(nodes), len(tasks))
	}
	if err := faults.OrNil(); err != nil {
		return err
	}
	return s.whole(func() error {
		for i, t := range tasks {
			node := model.NodeID(model.None)
			if len(nodes) > 0 {
				node = nodes[i]
			}
			if err := s.engine.Allocate(t, node); err != nil {
				return s.wrongTask(t, err)
			}
		}
		return nil
	})
}

func (s *Session) evict(q *apportionv1.Eviction) error {
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
		return err
	}
	return s.whole(func() error {
		for _, t := range tasks {
			if err := s.engine.Deallocate(t, status); err != nil {
				return s.wrongTask(t, err)
			}
		}
		return nil
	})
}

func (s *Session) setStatus(q *apportionv1.StatusChange) error {
	var faults model.Error
	tasks := s.selectTasks(q.GetTasks(), "tasks", &faults)
	status, known := decode.StatusOf(q.GetStatus())
	if !known || q.GetStatus() == apportionv1.TaskStatus_TASK_STATUS_UNSPECIFIED {
		faults.Add("status", "no status %d", q.GetStatus())
	}
	if err := faults.OrNil(); err != nil {
		return err
	}
	set := func() error {
		for _, t := range tasks {
			s.engine.SetStatus(t, status)
		}
		return nil
	}
	if s.engine.View().Pods != nil {
		return s.whole(set)
	}
	return set()
}

// whole carries out an event of several parts wholly or not at all. What the rules on other pods count of it costs work that is found out
// on the way.
func (s *Session) whole(parts func() error) error {
	return s.engine.Try(func() error { return cmp.Or(parts(), s.exceeded()) })
}

func (s *Session) wrongTask(t model.TaskID, err error) error {
	status := decode.WireStatus(s.engine.View().Status(t))
	return wrongStatus("tasks", "task "+strconv.Itoa(int(t))+" is "+status.String()+": "+err.Error())
}

func wrongStatus(field, text string) error {
	return &decode.Fault{
		Code: codes.FailedPrecondition, Reason: apportionv1.ErrorReason_ERROR_REASON_WRONG_STATUS, Field: field, Text: text,
	}
}
