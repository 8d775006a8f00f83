package engine

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// waiting lists the waiting tasks of a job, and the number of them that its gang needs.
type waiting struct {
	// tasks are pending and not held back by a gate.
	tasks []model.TaskID
	// needed is the first choice of those that the gang needs: what its roles lack, then others up to the minimum, in order of service; at
	// least one. Any other choice with as many tasks of each role that lacks some is as good.
	needed []model.TaskID
	// kinds has the first task of each kind, at most maxKinds.
	kinds    []model.TaskID
	counted  int
	gated    int
	unjudged model.Constraints
	// lacks says of each role how many tasks the gang needs at least. short: the gang lacks more than all tasks.
	lacks []int
	short bool
}

// maxKinds bounds for how many kinds of tasks of one job shares, nodes and victims are asked.
const maxKinds = 8

// waiting finds what of a job waits.
func (s *Session) waiting(j model.JobID) *waiting {
	v := s.view
	w := &waiting{}
	job := v.Jobs.At(j)
	for t := job.FirstTask; t < job.EndTask; t++ {
		switch {
		case v.Status(t) != model.Pending:
			continue
		case v.Tasks.At(t).Gate == model.GateOther:
			w.gated++
			continue
		}
		w.tasks = append(w.tasks, t)
		w.unjudged |= v.Unjudged(t)
	}
	for g := job.FirstGroup; g < job.EndGroup; g++ {
		group := v.Groups.At(g)
		for c := group.FirstCount; c < group.EndCount; c++ {
			count := v.Counts.At(c)
			switch {
			case count.Status != model.Pending:
			case count.Gate == model.GateOther:
				w.gated += int(count.N)
			default:
				w.counted += int(count.N)
				w.unjudged |= group.Unjudged
			}
		}
	}
	s.findNeeded(j, w)
	s.findKinds(w)
	return w
}

// waitingWith returns the waiting tasks of a job all of whose given tasks are to be placed.
func (s *Session) waitingWith(j model.JobID, tasks []model.TaskID) *waiting {
	job := s.view.Jobs.At(j)
	w := &waiting{tasks: tasks, needed: tasks, lacks: make([]int, job.EndGroup-job.FirstGroup)}
	for _, t := range tasks {
		w.unjudged |= s.view.Unjudged(t)
	}
	s.findKinds(w)
	return w
}

func (s *Session) findKinds(w *waiting) {
	seen := make(map[kindKey]bool)
	for _, t := range w.tasks {
		if key := s.kindOf(t); !seen[key] && len(w.kinds) < maxKinds {
			seen[key] = true
			w.kinds = append(w.kinds, t)
		}
	}
}

// settled reports whether a gang has its minimum, or will have it once tasks that wait for resources being released are placed.
func (s *Session) settled(j model.JobID, why *policy.Reasons) bool {
	return s.Job(j).Ready(why) || s.view.Account(j).Tasks[model.Pipelined] > 0 && s.Job(j).Pipelined(nil)
}

// settledWith books tasks of a job as placed, and reports whether its gang is settled then.
func (s *Session) settledWith(j model.JobID, tasks []model.TaskID, why *policy.Reasons) bool {
	for _, t := range tasks {
		s.book(t, model.Allocated, model.None)
	}
	return s.settled(j, why)
}

// findNeeded finds how many of the waiting tasks a gang needs at least, and the first choice of them.
func (s *Session) findNeeded(j model.JobID, w *waiting) {
	v := s.view
	job, account := v.Jobs.At(j), v.Account(j)
	ofRoles, minimum := 0, int64(0)
	w.lacks = make([]int, job.EndGroup-job.FirstGroup)
	for g := range w.lacks {
		least := v.Groups.At(job.FirstGroup + model.GroupID(g)).MinAvailable
		minimum += int64(max(least, 0))
		w.lacks[g] = int(max(least-account.GroupReady(g)-account.GroupTasks[g][model.Pipelined], 0))
		ofRoles += w.lacks[g]
	}
	if minimum > int64(job.MinAvailable) {
		// Such minima of roles are void in Volcano.
		clear(w.lacks)
		ofRoles = 0
	}
	wanted := max(int(job.MinAvailable-account.Ready()-account.Tasks[model.Pipelined]), ofRoles)
	w.short = wanted > len(w.tasks)
	wanted = min(max(wanted, 1), len(w.tasks))
	if wanted == len(w.tasks) {
		for _, t := range w.tasks {
			w.lacks[v.Tasks.At(t).Group-job.FirstGroup]--
		}
		w.short = w.short || slices.ContainsFunc(w.lacks, func(n int) bool { return n > 0 })
		w.needed = w.tasks
		return
	}
	lacks := slices.Clone(w.lacks)
	order := s.inService(w.tasks)
	var rest []model.TaskID
	for _, t := range order {
		if g := v.Tasks.At(t).Group - job.FirstGroup; lacks[g] > 0 && len(w.needed) < wanted {
			lacks[g]--
			w.needed = append(w.needed, t)
		} else {
			rest = append(rest, t)
		}
	}
	w.short = w.short || slices.ContainsFunc(lacks, func(n int) bool { return n > 0 })
	w.needed = append(w.needed, rest[:wanted-len(w.needed)]...)
}

// inService returns tasks in order of service.
func (s *Session) inService(tasks []model.TaskID) []model.TaskID {
	order := slices.Clone(tasks)
	slices.SortStableFunc(order, func(l, r model.TaskID) int {
		if s.Order().CompareTasks(l, r).Less {
			return -1
		}
		return 1
	})
	return order
}

// kindKey identifies a kind of tasks: all properties that Fits and HasRoom depend on.
type kindKey struct {
	queue   model.QueueID
	nodeSet model.NodeSetID
	request int32
	pods    int32
	// reserved is what reservations of nodes depend on, and fit what plugins do that keep tasks off nodes.
	reserved, fit int64
}

func (s *Session) kindOf(t model.TaskID) kindKey {
	v := s.view
	j := v.Tasks.At(t).Job
	key := kindKey{v.QueueOf(t), v.NodeSetOf(t), v.Tasks.At(t).Request, v.PodKind(t), v.Reservations().Class(j), 0}
	// Of all plugins fair alone has classes.
	for _, p := range s.by.fitClass {
		key.fit = p.FitClass(j)
	}
	return key
}
