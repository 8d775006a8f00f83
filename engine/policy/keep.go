package policy

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// Keeper is a policy that keeps room of nodes for jobs that wait, by what the other plugins say of them. It is asked once, when all plugins
// of a session are open.
type Keeper interface {
	// Keep returns the room that is kept. The line stays valid as long as the session.
	Keep(l Line) ([]Reservation, error)
	// Foresee returns a plan of the jobs that wait up to one for which no room is kept, and which is the last of the list: when each could
	// start after those before it. It is nil if there is no time for that job.
	Foresee(j model.JobID) ([]Reservation, error)
}

// Line is what the other plugins of a session say of the jobs that wait.
type Line interface {
	// Each offers the jobs that have not started, in order of service, with the tasks that each needs to start, until offer returns false.
	// They are admitted, or may be now, or could be if nothing ran and no other job waited; and the snapshot says which nodes take the
	// tasks.
	Each(offer func(j model.JobID, tasks []model.TaskID) (more bool)) error
	// Needs returns the tasks that a job needs to start; none if it lacks some, if the snapshot keeps room for it, or if it is not known
	// which nodes take them.
	Needs(j model.JobID) []model.TaskID
	// Takes reports whether a node takes a task, regardless of its room and of reservations.
	Takes(t model.TaskID, n model.NodeID) bool
	// Permits reports whether the queue of tasks of a job may use what they ask for at a time, regardless of free room: once the jobs of
	// its Kin have ended that are expected to by then, and tasks of some reservations have started that wait now.
	Permits(tasks []model.TaskID, at int64, beside []Reservation) bool
	// Enters reports whether a job that Each offers may enter its queue at a time, if it has not: once the jobs have ended that are
	// expected to by then, beside the jobs of some reservations, which have started. Jobs that hold nothing and are to start later do not
	// count.
	Enters(j model.JobID, at int64, beside []Reservation) (bool, error)
	// Kin returns a number that is the same for queues below the same one at the top of the tree of queues.
	Kin(q model.QueueID) model.QueueID
	// KeptOff returns why no node takes a task although some has room for it: the room is kept.
	KeptOff(t model.TaskID) (Reason, bool)
}

// plannedAt is where room is kept for a task: for the reservation at a position of a node.
type plannedAt struct {
	node *reservedNode
	at   int
}

// Keep keeps room for jobs that wait, as a plugin wants, beside what the snapshot keeps. What is kept for a task is free again while the
// task does not wait.
func (v *View) Keep(plugin string, list []Reservation) error {
	tasks := 0
	for i := range list {
		tasks += len(list[i].Nodes)
	}
	if tasks == 0 {
		return nil
	}
	if err := v.Work.Spend(v.Tasks.Len()+v.Jobs.Len()+4*tasks, v.Dims.Len()); err != nil {
		return err
	}
	if v.reservations == nil {
		v.reservations = newNodeReservations(v)
	}
	r := v.reservations
	r.keeper, r.planned, r.owner = plugin, make(map[model.TaskID]plannedAt, tasks), make(map[*model.Reservation]model.JobID)
	for i := range list {
		if len(list[i].Nodes) > 0 {
			r.keep(&list[i])
		}
	}
	r.finish()
	return nil
}

// keep adds a reservation of a job to its nodes.
func (r *NodeReservations) keep(kept *Reservation) {
	v := r.view
	uid := v.Jobs.At(kept.Job).UID
	r.begins, r.holders[kept.Job] = append(r.begins, kept.From), true
	for i, t := range kept.Tasks {
		n := kept.Nodes[i]
		node := r.nodes[n]
		if node == nil {
			node = &reservedNode{Node: &v.Nodes[n]}
			r.nodes[n] = node
		}
		at := len(node.list) - 1
		if at < 0 || r.owner[node.list[at]] != kept.Job || node.holder[at] != kept.Job {
			at++
			one := &model.Reservation{From: kept.From, Request: resource.NewRow(v.Dims.Len()), Holder: uid}
			if kept.Until != Endless {
				one.Until = kept.Until
			}
			r.owner[one] = kept.Job
			node.add(one, kept.Job, at)
		}
		node.list[at].Request.Add(v.Request(t))
		r.planned[t] = plannedAt{node, at}
	}
}

// follows changes what is kept for a task that begins or ceases to wait.
func (r *NodeReservations) follows(t model.TaskID, waited, waits bool) {
	p, planned := r.planned[t]
	if !planned || waited == waits {
		return
	}
	row := &p.node.list[p.at].Request
	r.view.Journal.Row(row)
	if waits {
		row.Add(r.view.Request(t))
	} else {
		row.Sub(r.view.Request(t))
	}
	for i := range p.node.moments {
		left := &p.node.moments[i].left
		r.view.Journal.Row(left)
		r.settle(p.node, left, i)
	}
}

// becausePlanned is the reason that room that is kept for a job keeps a task off a node.
func (r *NodeReservations) becausePlanned(one *model.Reservation, holder model.JobID) Reason {
	return BecauseKept(r.keeper, r.view, &Reservation{Job: holder, From: one.From})
}

// BecauseKept is the reason that room is kept for a job.
func BecauseKept(plugin string, v *View, kept *Reservation) Reason {
	const second = 1_000_000_000
	job := v.Jobs.At(kept.Job)
	reason := Because(plugin, Reserved, job.Queue)
	reason.Detail, reason.Have = job.UID, float64(max(0, kept.From-v.AsOf)/second)
	return reason
}

// LikelyEnd returns when the tasks of a job are expected to end that run or that start now: EndOf, and of a job that has run longer than
// expected a quarter of its runtime from now.
func (v *View) LikelyEnd(j model.JobID) int64 {
	const more = 4
	job := v.Jobs.At(j)
	if v.Accounts.At(j).Holding() > 0 && job.ExpectedEnd != 0 && job.ExpectedEnd <= v.AsOf {
		return v.After(max(job.ExpectedRuntime/more, 1))
	}
	return v.EndOf(j)
}

// After returns the time that comes so long after that of the snapshot, Endless if it cannot be expressed.
func (v *View) After(time int64) int64 {
	return After(v.AsOf, time)
}

// After returns the time that comes so long after another, Endless if it cannot be expressed.
func After(at, time int64) int64 {
	if time >= Endless-max(at, 0) {
		return Endless
	}
	return at + time
}
