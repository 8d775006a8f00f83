package cycle

import (
	"errors"
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/plan"
	"github.com/apportion/apportion/engine/policy"
)

// State is what a cycle decides on: a session, in which tasks have their places, jobs their phases, and plugins their accounts. As a
// Scheduler it serves by the questions of the session.
type State struct {
	*engine.Session

	// Told is called with each decision when it is kept.
	Told func(*Decision)
	// Gangs leave as a whole: a job that had its minimum and loses a part of it loses its other tasks too, as controllers of jobs do.
	Gangs bool
	// Alike, if not nil, says of which kind a job is, and whether others of this kind ask the same. A question that was refused to one of
	// them is then not asked for another until something changes.
	Alike func(j model.JobID) (kind Kind, common bool)

	refusals refusals
	// placed are the tasks that the cycle has placed, tentative those of the attempt under way, on nodes.
	placed, tentative []model.TaskID
	nodes             []model.NodeID
	fits              []model.NodeID
	scores, total     []float64
}

// Plans reports whether the policy reclaims by plans.
func (s *State) Plans() bool { return s.Reclaim().Plans() }

// QueueOf returns the queue of a job.
func (s *State) QueueOf(j model.JobID) model.QueueID { return s.View().Jobs.At(j).Queue }

// Before compares jobs as the policy orders them in the present state.
func (s *State) Before(l, r model.JobID) bool { return s.Order().CompareJobs(l, r).Less }

// Enqueue lets jobs in as Volcano's action does.
func (s *State) Enqueue() error {
	for _, j := range s.Order().Pending() {
		if s.Job(j).Enqueue(nil) {
			s.keep(&Decision{Action: Enqueue, Job: j})
		}
	}
	return nil
}

// Waiting lists the jobs that have entered and have pending tasks, by number.
func (s *State) Waiting(Action) (begun, others []model.JobID, err error) {
	v := s.View()
	for _, j := range v.Present() {
		if v.Phase(j) != model.PhasePending && v.Account(j).Tasks[model.Pending] > 0 {
			others = append(others, j)
		}
	}
	slices.Sort(others)
	return nil, others, nil
}

// Queues sorts queues as the policy does.
func (s *State) Queues(queues []model.QueueID, all bool) ([]model.QueueID, error) {
	s.Order().SortQueues(queues)
	if all {
		return queues, nil
	}
	return slices.DeleteFunc(queues, func(q model.QueueID) bool { return s.IsOverused(q, nil) }), nil
}

// Serve places tasks of a job, or carries out a plan for it.
func (s *State) Serve(j model.JobID, action Action) (done, more bool, err error) {
	v := s.View()
	switch {
	case v.Stop != nil && v.Stop():
		return false, false, policy.ErrStopped
	case s.refused(j, action):
		return false, false, nil
	case action == Allocate:
		done = s.place(j)
	default:
		done, err = s.evictFor(j, action)
	}
	if !done && err == nil {
		s.refuse(j, action)
	}
	return done, v.Account(j).Tasks[model.Pending] > 0, err
}

// keep tells a decision that was carried out.
func (s *State) keep(d *Decision) {
	s.placed = append(s.placed, d.Tasks...)
	s.refusals.forget(len(d.Victims) > 0)
	if s.Told != nil {
		s.Told(d)
	}
}

// Begin lets the tasks run that the cycle has placed.
func (s *State) Begin() {
	for _, t := range s.placed {
		if s.View().Status(t) == model.Allocated {
			s.SetStatus(t, model.Running)
		}
	}
	s.placed = s.placed[:0]
}

// errNotReady undoes an attempt.
var errNotReady = errors.New("the job does not become ready")

// place places tasks of a job where there is room, in the order of their numbers, until the job is ready, and reports whether it became so.
func (s *State) place(j model.JobID) bool {
	s.tentative, s.nodes = s.tentative[:0], s.nodes[:0]
	v := s.View()
	job := v.Jobs.At(j)
	ready := nil == s.Try(func() error {
		for t := job.FirstTask; t < job.EndTask; t++ {
			if v.Status(t) != model.Pending || v.Tasks.At(t).Gate == model.GateOther {
				continue
			}
			if !s.Allocatable([]model.TaskID{t}, policy.InSession, nil, nil) {
				return errNotReady
			}
			n := s.bestNode(t)
			if n == model.None {
				return errNotReady
			}
			if err := s.Allocate(t, n); err != nil {
				return err
			}
			s.tentative, s.nodes = append(s.tentative, t), append(s.nodes, n)
			if s.Job(j).Ready(nil) {
				return nil
			}
		}
		return errNotReady
	})
	if ready {
		s.keep(&Decision{Action: Allocate, Job: j, Tasks: slices.Clone(s.tentative), Nodes: slices.Clone(s.nodes)})
	}
	return ready
}

// bestNode is the node with the highest score that has room for a task, the first by name of equal ones; None if none has room.
func (s *State) bestNode(t model.TaskID) model.NodeID {
	if s.full(t) {
		return model.None
	}
	nodes := s.View().NodeOrder
	fits := s.fits[:0]
	for _, n := range nodes {
		if s.Nodes().Fits(t, n, nil) && s.Nodes().HasRoom(t, n, nil) {
			fits = append(fits, n)
		}
	}
	s.fits = fits
	if len(fits) == 0 {
		if len(s.tentative) == 0 {
			s.fill(t)
		}
		return model.None
	}
	scorers := s.Nodes().Scorers()
	if len(scorers) == 0 {
		return fits[0]
	}
	if cap(s.scores) < len(fits) {
		s.scores, s.total = make([]float64, len(nodes)), make([]float64, len(nodes))
	}
	total := s.total[:len(fits)]
	clear(total)
	for _, scorer := range scorers {
		scores := s.scores[:len(fits)]
		scorer.ScoreNodes(t, fits, scores)
		for i, score := range scores {
			total[i] += score
		}
	}
	best := 0
	for i, score := range total {
		if score > total[best] {
			best = i
		}
	}
	return fits[best]
}

// evictFor carries out the plan by which a job gets its place, if there is one. A plan that waits for what is being released is none: who
// is placed runs after the cycle.
func (s *State) evictFor(j model.JobID, action Action) (bool, error) {
	means := plan.ByReclaim
	if action == Preempt {
		means = plan.ByPreempt
	}
	made, err := plan.For(s.Session, &plan.Question{Job: j, Means: means, Quick: true})
	if err != nil || made.Outcome != plan.Made || slices.Contains(made.Released, true) {
		return false, err
	}
	d := &Decision{Action: action, Job: j, Tasks: made.Tasks, Nodes: made.Nodes}
	if err := s.Try(func() error { return s.carryOut(d, made) }); err != nil {
		return false, err
	}
	s.keep(d)
	return true, nil
}

// carryOut evicts a plan's victims, and what cannot run without them, and places its tasks.
func (s *State) carryOut(d *Decision, made *plan.Plan) error {
	var stopped []model.JobID
	for i := range made.Victims {
		v := &made.Victims[i]
		j := s.View().Tasks.At(v.Task).Job
		had := s.minimum(j)
		if err := s.Deallocate(v.Task, model.Pending); err != nil {
			return err
		}
		d.Victims = append(d.Victims, Victim{Task: v.Task, Own: v.Own})
		if s.Gangs && had && !s.minimum(j) {
			stopped = append(stopped, j)
		}
	}
	for _, j := range stopped {
		job := s.View().Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			if !s.View().Status(t).Holds() {
				continue
			}
			if err := s.Deallocate(t, model.Pending); err != nil {
				return err
			}
			d.Victims = append(d.Victims, Victim{Task: t, Gang: true})
		}
	}
	for i, t := range made.Tasks {
		if err := s.Allocate(t, made.Nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

// minimum reports whether as many tasks of a job hold resources as it needs.
func (s *State) minimum(j model.JobID) bool {
	return s.View().Account(j).Holding() >= s.View().Jobs.At(j).MinAvailable
}
