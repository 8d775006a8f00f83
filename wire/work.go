package wire

import (
	"errors"
	"math/bits"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/policy"
	apportionv1 "github.com/apportion/apportion/gen/apportion/v1"
)

// ofWork returns the fault of a question that costs more than it may, if that is what an error says.
func ofWork(err error) *Fault {
	e, ok := errors.AsType[*policy.WorkError](err)
	if !ok {
		return nil
	}
	return Exceeded("work", e.Needed(), e.Maximum, "the question costs more than is allowed: "+e.Error())
}

// spend spends what a step costs, before anything is done. What only a division finds out on its way is spent there.
func (s *Session) spend(step *apportionv1.Step) error {
	v, work := s.engine.View(), s.work
	plugins := s.plugins
	perTask := v.Dims.Len() * plugins * s.depth
	switch q := step.GetStep().(type) {
	case *apportionv1.Step_Shares:
		return s.spendOnShares(q.Shares)
	case *apportionv1.Step_Jobs:
		return work.Spend(selected(q.Jobs.GetJobs(), v.Jobs.Len()), plugins)
	case *apportionv1.Step_Enqueue:
		return s.work.Spend(selected(q.Enqueue.GetJobs(), v.Jobs.Len()), perTask)
	case *apportionv1.Step_Allocatable:
		return s.work.Spend(selected(q.Allocatable.GetTasks(), 0), perTask)
	case *apportionv1.Step_Preemptive:
		return s.work.Spend(selected(q.Preemptive.GetTasks(), 0), perTask)
	case *apportionv1.Step_Reclaim:
		return s.spendOnVictims(q.Reclaim.GetCandidates(), perTask)
	case *apportionv1.Step_Preempt:
		return s.spendOnVictims(q.Preempt.GetCandidates(), perTask)
	case *apportionv1.Step_Order:
		return s.spendOnOrder(q.Order)
	case *apportionv1.Step_Nodes:
		if q.Nodes.GetJointly() {
			if err := work.Spend(engine.PlacementWork, 1); err != nil {
				return err
			}
		}
		nodes := len(v.Nodes)
		if n := q.Nodes.GetNodes(); n != nil {
			nodes = len(n.GetIndex()) + len(n.GetName())
		}
		return work.Spend(selected(q.Nodes.GetTasks(), 0), nodes*(v.Dims.Len()+plugins))
	case *apportionv1.Step_Inspect:
		return work.Spend(len(v.Nodes)+v.Jobs.Len()+v.Tasks.Len(), v.Dims.Len())
	case *apportionv1.Step_Plan:
		return s.engine.SpendOnPlan()
	case *apportionv1.Step_Remedies:
		// The rest is spent try by try.
		return work.Spend(v.Tasks.Len()+len(v.Nodes), v.Dims.Len()*plugins)
	case *apportionv1.Step_SetStatus:
		return s.spendOnChange(q.SetStatus.GetTasks())
	case *apportionv1.Step_Allocate:
		return s.spendOnChange(q.Allocate.GetTasks())
	case *apportionv1.Step_Deallocate:
		return s.spendOnChange(q.Deallocate.GetTasks())
	}
	return nil
}

// selection is a list of things by index and by uid.
type selection interface {
	comparable
	GetIndex() []uint32
	GetUid() []string
}

// selected returns how many things a selection names, which are all if it is absent.
func selected[S selection](s S, all int) int {
	var absent S
	if s == absent {
		return all
	}
	return len(s.GetIndex()) + len(s.GetUid())
}

// sorting is about how many comparisons sorting n things takes.
func sorting(n int) int { return n * bits.Len(uint(n)) }

func (s *Session) spendOnChange(tasks *apportionv1.Tasks) error {
	return s.work.Spend(selected(tasks, 0), s.engine.View().Dims.Len()*s.plugins)
}

// spendOnShares spends on the accounts that are wanted, and on the order of all queues with jobs.
func (s *Session) spendOnShares(q *apportionv1.SharesStep) error {
	v := s.engine.View()
	queues, jobs := len(v.Queues), 0
	if wanted := q.GetQueues(); wanted != nil {
		queues = len(wanted.GetIndex()) + len(wanted.GetName())
	}
	if wanted := q.GetJobs(); wanted != nil {
		if jobs = selected(wanted, 0); jobs == 0 {
			jobs = v.Jobs.Len()
		}
	}
	if q.GetTree() {
		jobs += v.Jobs.Len()
	}
	if err := s.work.Spend(queues+jobs, v.Dims.Len()*s.plugins); err != nil {
		return err
	}
	return s.work.Spend(v.Jobs.Len()+sorting(len(v.Queues)), 1)
}

func (s *Session) spendOnVictims(candidates *apportionv1.Tasks, perTask int) error {
	n := selected(candidates, s.engine.View().Tasks.Len())
	if err := s.work.Spend(n, perTask); err != nil {
		return err
	}
	return s.work.Spend(sorting(n), 1)
}

// spendOnOrder spends on sorting, on comparing pairs to find out whether there is an order, and on those that are wanted.
func (s *Session) spendOnOrder(q *apportionv1.OrderStep) error {
	v, n := s.engine.View(), 0
	switch subject := q.GetSubject().(type) {
	case *apportionv1.OrderStep_Queues:
		if n = len(subject.Queues.GetIndex()) + len(subject.Queues.GetName()); n == 0 {
			n = len(v.Queues)
		}
	case *apportionv1.OrderStep_Jobs:
		if n = selected(subject.Jobs, 0); n == 0 {
			n = v.Jobs.Len()
		}
	case *apportionv1.OrderStep_Tasks:
		n = selected(subject.Tasks, 0)
	}
	pairs := min(n, maxPairs) * min(n, maxPairs)
	if err := s.work.Spend(sorting(n)+pairs, s.depth); err != nil {
		return err
	}
	return s.work.Spend(n, s.plugins)
}
