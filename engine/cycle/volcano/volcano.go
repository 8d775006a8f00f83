// Package volcano is Volcano's cycle: one session of its scheduler, action by action (pkg/scheduler/actions of Volcano 1.15).
//
// The policy decides as the session of the engine answers; this package has what Volcano's actions do with the answers: who is asked for,
// in which order, on which nodes, what an attempt that fails takes back, and what is left at the end. Where Volcano draws lots, among equal
// nodes and in the order of maps, it takes the order of the snapshot, so that a cycle has one outcome, which is one of Volcano's.
//
// Before a cycle the state is that of a session that nothing has happened to. While it runs, each task has one status, each node knows what
// is idle, what is being released and what is promised, and every change of these goes through evict, place, undo and commit. After it,
// evicted tasks are Releasing, bound ones are Binding, those that wait for room are Pipelined, and jobs have the phases that Volcano
// writes.
package volcano

import (
	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// Cycle is Volcano's cycle.
type Cycle struct {
	// Actions in their order.
	Actions []cycle.Action
	// Nominated has the nodes that were nominated for tasks in cycles before, in place of those of the model. A cycle adds its own;
	// a nomination is never taken back.
	Nominated map[model.TaskID]model.NodeID
}

// Run carries out the actions and writes the phases of jobs. It returns policy.ErrStopped if the view asks to stop, and a *policy.WorkError
// if it costs more than is left; the state is then that of a cycle that was cut short.
func (c *Cycle) Run(s *cycle.State) error {
	r := c.open(s)
	defer func(before policy.NodeBook) { r.view.Book = before }(r.view.Book)
	r.view.Book = r.book
	for _, name := range c.Actions {
		r.action = name
		act, known := actions[name]
		if !known {
			continue
		}
		if act(r); r.err != nil {
			return r.err
		}
	}
	c.close(r)
	return nil
}

var actions = map[cycle.Action]func(*run){
	cycle.Enqueue: (*run).enqueue, cycle.Allocate: (*run).allocate, cycle.Backfill: (*run).backfill, cycle.Preempt: (*run).preempt,
	cycle.Reclaim: (*run).reclaim, cycle.GangPreempt: (*run).gang, cycle.GangReclaim: (*run).gang, cycle.Shuffle: (*run).shuffle,
}

// run is a cycle under way.
type run struct {
	engine.Host
	view      *policy.View
	state     *cycle.State
	nominated map[model.TaskID]model.NodeID
	action    cycle.Action
	enqueues  bool
	steps     int
	// err ends the cycle.
	err error

	nodes []node
	// order lists the nodes in the order of the snapshot, jobs the jobs.
	order []model.NodeID
	jobs  []model.JobID
	book  *book
	// attempt are the operations since the last commit or undo.
	attempt []operation
	// failed are the roles for which no node was found in this session.
	failed map[model.GroupID]bool
	// prepared are the tasks for which nodes were looked for, promised those whose last place waited for evictions.
	prepared map[model.TaskID]bool
	promised map[model.TaskID]model.NodeID

	fits          []model.NodeID
	scores, total []float64
}

// node is what is free on a node: now, and once what is being released is gone and what was promised is taken. tasks are those on it as the
// session opened.
type node struct {
	idle, future resource.Row
	tasks        []model.TaskID
}

func (c *Cycle) open(s *cycle.State) *run {
	v := s.View()
	r := &run{
		Host: s.Host(), view: v, state: s, nominated: c.Nominated,
		failed: map[model.GroupID]bool{}, prepared: map[model.TaskID]bool{}, promised: map[model.TaskID]model.NodeID{},
	}
	for _, a := range c.Actions {
		r.enqueues = r.enqueues || a == cycle.Enqueue
	}
	r.nodes = make([]node, len(v.Nodes))
	for i := range r.nodes {
		n := model.NodeID(i)
		if !v.HasNode(n) {
			continue
		}
		r.order = append(r.order, n)
		idle, future := resource.NewAccount(v.Dims.Len()), resource.NewAccount(v.Dims.Len())
		v.Idle(n, &idle)
		future.CopyFrom(idle)
		r.nodes[n].idle, r.nodes[n].future = idle, future
	}
	r.book = openBook(r)
	for j := range model.JobID(v.Jobs.Len()) {
		if !v.HasJob(j) {
			continue
		}
		r.jobs = append(r.jobs, j)
		job := v.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			r.openTask(t)
		}
	}
	return r
}

// openTask puts a task on its node.
func (r *run) openTask(t model.TaskID) {
	n, status := r.view.NodeOf(t), r.view.Status(t)
	if n == model.None {
		return
	}
	at := &r.nodes[n]
	switch status {
	case model.Releasing:
		at.future.Add(r.view.Request(t))
	case model.Pipelined:
		at.future.Sub(r.view.Request(t))
		return
	default:
	}
	if status.Counts() {
		at.tasks = append(at.tasks, t)
		r.book.add(t, n)
	}
}

// stop reports whether the cycle is to end; it is asked for each job, task and node that an action looks at.
func (r *run) stop() bool {
	r.steps++
	if r.err == nil && r.view.Stopped(r.steps) {
		if r.err = policy.ErrStopped; r.view.Work.Exceeded() != nil {
			r.err = r.view.Work.Exceeded()
		}
	}
	return r.err != nil
}

// spend spends the work of looking at so many rows.
func (r *run) spend(rows int) {
	if err := r.view.Work.Spend(rows, r.view.Dims.Len()); err != nil && r.err == nil {
		r.err = err
	}
}

// pending lists the tasks of a job that wait and are not gated and that a condition holds for, in the order of the snapshot.
func (r *run) pending(j model.JobID, holds func(t model.TaskID) bool) []model.TaskID {
	job := r.view.Jobs.At(j)
	var tasks []model.TaskID
	if r.view.Account(j).Tasks[model.Pending] == 0 {
		return nil
	}
	for t := job.FirstTask; t < job.EndTask; t++ {
		if r.view.Status(t) == model.Pending && r.view.Tasks.At(t).Gate != model.GateOther && holds(t) {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

func every(model.TaskID) bool { return true }

func (r *run) bestEffort(t model.TaskID) bool { return r.view.BestEffort(r.view.Request(t)) }

func (r *run) asks(t model.TaskID) bool { return !r.bestEffort(t) }

// served reports whether an action serves a job: it has entered its queue, and no plugin holds it for impossible.
func (r *run) served(j model.JobID) bool {
	return r.view.Phase(j) != model.PhasePending && r.Job(j).Valid(nil)
}

func (r *run) queueOf(j model.JobID) model.QueueID { return r.view.Jobs.At(j).Queue }

// role returns the group of a task if it is a role: failures of roles are remembered, those of tasks without one are not.
func (r *run) role(t model.TaskID) (model.GroupID, bool) {
	g := r.view.Tasks.At(t).Group
	return g, r.view.Groups.At(g).Role != ""
}
