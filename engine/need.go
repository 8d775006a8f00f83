package engine

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// Need lists the waiting tasks of a job, and the number of them that its gang needs.
type Need struct {
	// Tasks are pending and not held back by a gate.
	Tasks []model.TaskID
	// Needed is the first choice of those that the gang needs: what its roles lack, then others up to the minimum, in order of service; at
	// least one. Any other choice with as many tasks of each role that lacks some is as good.
	Needed []model.TaskID
	// Kinds has the first task of each kind, at most maxKinds.
	Kinds    []model.TaskID
	Counted  int
	Gated    int
	Unjudged model.Constraints
	// Lacks says of each role how many tasks the gang needs at least. Short: the gang lacks more than all tasks.
	Lacks []int
	Short bool
}

// maxKinds bounds for how many kinds of tasks of one job shares, nodes and victims are asked.
const maxKinds = 8

// NeedOf finds what of a job waits.
func (h Host) NeedOf(j model.JobID) *Need {
	v := h.view
	w := &Need{}
	job := v.Jobs.At(j)
	for t := job.FirstTask; t < job.EndTask; t++ {
		switch {
		case v.Status(t) != model.Pending:
			continue
		case v.Tasks.At(t).Gate == model.GateOther:
			w.Gated++
			continue
		}
		w.Tasks = append(w.Tasks, t)
		w.Unjudged |= v.Unjudged(t)
	}
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		group := v.Groups.At(g)
		for c := group.FirstCount; c < group.EndCount; c++ {
			count := v.Counts.At(c)
			switch {
			case count.Status != model.Pending:
			case count.Gate == model.GateOther:
				w.Gated += int(count.N)
			default:
				w.Counted += int(count.N)
				w.Unjudged |= group.Unjudged
			}
		}
	}
	h.findNeeded(j, w)
	h.findKinds(w)
	return w
}

// NeedFor returns the waiting tasks of a job all of whose given tasks are to be placed.
func (h Host) NeedFor(j model.JobID, tasks []model.TaskID) *Need {
	job := h.view.Jobs.At(j)
	w := &Need{Tasks: tasks, Needed: tasks, Lacks: make([]int, job.EndGroup-job.FirstGroup)}
	for _, t := range tasks {
		w.Unjudged |= h.view.Unjudged(t)
	}
	h.findKinds(w)
	return w
}

func (h Host) findKinds(w *Need) {
	seen := make(map[Kind]bool)
	for _, t := range w.Tasks {
		if key := h.KindOf(t); !seen[key] && len(w.Kinds) < maxKinds {
			seen[key] = true
			w.Kinds = append(w.Kinds, t)
		}
	}
}

// Settled reports whether a gang has its minimum, or will have it once tasks that wait for resources being released are placed.
func (h Host) Settled(j model.JobID, why *policy.Reasons) bool {
	return h.Job(j).Ready(why) || h.view.Account(j).Tasks[model.Pipelined] > 0 && h.Job(j).Pipelined(nil)
}

// SettledWith books tasks of a job as placed, and reports whether its gang is settled then.
func (h Host) SettledWith(j model.JobID, tasks []model.TaskID, why *policy.Reasons) bool {
	for _, t := range tasks {
		h.book(t, model.Allocated, model.None)
	}
	return h.Settled(j, why)
}

// findNeeded finds how many of the waiting tasks a gang needs at least, and the first choice of them.
func (h Host) findNeeded(j model.JobID, w *Need) {
	v := h.view
	job, account := v.Jobs.At(j), v.Account(j)
	ofRoles, minimum := 0, int64(0)
	w.Lacks = make([]int, job.EndGroup-job.FirstGroup)
	for g := range w.Lacks {
		least := v.Groups.At(job.FirstGroup + model.GroupID(g)).MinAvailable
		minimum += int64(max(least, 0))
		w.Lacks[g] = int(max(least-account.GroupReady(g)-account.GroupTasks[g][model.Pipelined], 0))
		ofRoles += w.Lacks[g]
	}
	if minimum > int64(job.MinAvailable) {
		// Such minima of roles are void in Volcano.
		clear(w.Lacks)
		ofRoles = 0
	}
	wanted := max(int(job.MinAvailable-account.Ready()-account.Tasks[model.Pipelined]), ofRoles)
	w.Short = wanted > len(w.Tasks)
	wanted = min(max(wanted, 1), len(w.Tasks))
	if wanted == len(w.Tasks) {
		for _, t := range w.Tasks {
			w.Lacks[v.Tasks.At(t).Group-job.FirstGroup]--
		}
		w.Short = w.Short || slices.ContainsFunc(w.Lacks, func(n int) bool { return n > 0 })
		w.Needed = w.Tasks
		return
	}
	lacks := slices.Clone(w.Lacks)
	order := h.InService(w.Tasks)
	var rest []model.TaskID
	for _, t := range order {
		if g := v.Tasks.At(t).Group - job.FirstGroup; lacks[g] > 0 && len(w.Needed) < wanted {
			lacks[g]--
			w.Needed = append(w.Needed, t)
		} else {
			rest = append(rest, t)
		}
	}
	w.Short = w.Short || slices.ContainsFunc(lacks, func(n int) bool { return n > 0 })
	w.Needed = append(w.Needed, rest[:wanted-len(w.Needed)]...)
}

// InService returns tasks in order of service.
func (h Host) InService(tasks []model.TaskID) []model.TaskID {
	order := slices.Clone(tasks)
	slices.SortStableFunc(order, func(l, r model.TaskID) int {
		if h.Order().CompareTasks(l, r).Less {
			return -1
		}
		return 1
	})
	return order
}

// Kind identifies a kind of tasks: all properties that Fits and HasRoom depend on.
type Kind struct {
	Queue   model.QueueID
	NodeSet model.NodeSetID
	Request int32
	Pods    int32
	// Reserved is what reservations of nodes depend on, and Fit what plugins do that keep tasks off nodes.
	Reserved, Fit int64
}

// KindOf returns the kind of a task.
func (h Host) KindOf(t model.TaskID) Kind {
	v := h.view
	j := v.Tasks.At(t).Job
	key := Kind{v.QueueOf(t), v.NodeSetOf(t), v.Tasks.At(t).Request, v.PodKind(t), v.Reservations().Class(j), 0}
	// Of all plugins fair alone has classes.
	for _, p := range h.by.fitClass {
		key.Fit = p.FitClass(j)
	}
	return key
}
