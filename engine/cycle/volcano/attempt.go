package volcano

import (
	"github.com/apportion/apportion/engine/cycle"
	"github.com/apportion/apportion/engine/model"
)

// operation is a step of an attempt: a task was evicted, or placed on a node, now or once there is room.
type operation struct {
	task model.TaskID
	kind kind
}

type kind uint8

const (
	evicted kind = iota
	allocated
	pipelined
)

// evict takes a task off its node: what it uses is being released. Its queue and job no longer hold it.
func (r *run) evict(t model.TaskID) {
	n := r.view.NodeOf(t)
	r.Unbook(t, model.Releasing)
	r.nodes[n].future.Add(r.view.Request(t))
	r.book.remove(t)
	r.attempt = append(r.attempt, operation{t, evicted})
}

// place gives a task room on a node: now, or once what is being released there is gone. emptied says that somebody was evicted for it,
// which nominates the node even if the attempt fails. It does nothing if a filter of the scheduler that cannot run fails each placing.
func (r *run) place(t model.TaskID, n model.NodeID, as kind, emptied bool) {
	if delete(r.promised, t); as == pipelined && emptied {
		r.promised[t] = n
	}
	if !r.PlacesNothing() {
		r.put(t, n, as)
	}
}

// put is place that does not fail.
func (r *run) put(t model.TaskID, n model.NodeID, as kind) {
	at, request := &r.nodes[n], r.view.Request(t)
	status := model.Pipelined
	if as == allocated {
		status = model.Allocated
		at.idle.Sub(request)
	}
	at.future.Sub(request)
	r.Book(t, status, n)
	r.book.place(t, n)
	r.attempt = append(r.attempt, operation{t, as})
}

// undo takes the operations back that followed the first few, the last first. An evicted task runs again, also if it was only bound before.
func (r *run) undo(few int) {
	for i := len(r.attempt) - 1; i >= few; i-- {
		switch o := r.attempt[i]; o.kind {
		case evicted:
			r.Book(o.task, model.Running, model.None)
			r.nodes[r.view.NodeOf(o.task)].future.Sub(r.view.Request(o.task))
		case allocated, pipelined:
			r.unplace(o.task)
		}
	}
	r.attempt = r.attempt[:few]
}

// unplace takes the room back that a task was given.
func (r *run) unplace(t model.TaskID) {
	at, request := &r.nodes[r.view.NodeOf(t)], r.view.Request(t)
	if r.view.Status(t) == model.Allocated {
		at.idle.Add(request)
	}
	at.future.Add(request)
	r.Unbook(t, model.Pending)
	r.book.remove(t)
}

// commit makes the attempt final: evicted tasks go, allocated ones are bound. It tells the decision.
func (r *run) commit(j model.JobID) {
	d := &cycle.Decision{Action: r.action, Job: j}
	for _, o := range r.attempt {
		switch o.kind {
		case evicted:
			d.Victims = append(d.Victims, cycle.Victim{Task: o.task, Own: r.view.QueueOf(o.task) == r.queueOf(j)})
		case allocated:
			r.bind(o.task, d)
		case pipelined:
			r.promise(o.task, d)
		}
	}
	r.attempt = r.attempt[:0]
	if len(d.Victims)+len(d.Tasks)+len(d.Promised) > 0 {
		r.tell(d)
	}
}

// bind binds an allocated task to its node.
func (r *run) bind(t model.TaskID, d *cycle.Decision) {
	r.SetStatus(t, model.Binding)
	delete(r.promised, t)
	d.Tasks, d.Nodes = append(d.Tasks, t), append(d.Nodes, r.view.NodeOf(t))
}

// promise notes that a task has a node, on which there will be room.
func (r *run) promise(t model.TaskID, d *cycle.Decision) {
	d.Promised, d.Rooms = append(d.Promised, t), append(d.Rooms, r.view.NodeOf(t))
}

func (r *run) tell(d *cycle.Decision) {
	if r.state.Told != nil {
		r.state.Told(d)
	}
}

// keep is the end of an attempt for a job: it is final if the job has, or will have, what it needs.
func (r *run) keep(j model.JobID) bool {
	if r.Job(j).Pipelined(nil) {
		r.commit(j)
		return true
	}
	r.undo(0)
	return false
}
