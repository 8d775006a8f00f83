package engine

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
)

// waiting are the tasks of a job that wait to be placed.
type waiting struct {
	// tasks are pending and not held back by a gate.
	tasks []model.TaskID
	// needed are those of them that the gang needs: what its roles lack, then others up to the minimum; at least one.
	needed []model.TaskID
	// kinds has the first task of each kind, at most maxKinds.
	kinds    []model.TaskID
	counted  int
	gated    int
	unjudged model.Constraints
}

// maxKinds bounds for how many kinds of tasks of one job shares, nodes and victims are asked.
const maxKinds = 8

// waiting finds what of a job waits.
func (s *Session) waiting(j model.JobID) *waiting {
	v := s.view
	w := &waiting{}
	job := v.Jobs.At(j)
	seen := make(map[kindKey]bool)
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
		if key := s.kindOf(t); !seen[key] && len(w.kinds) < maxKinds {
			seen[key] = true
			w.kinds = append(w.kinds, t)
		}
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
	w.needed = s.needed(j, w.tasks)
	return w
}

// readyWith books tasks of a job as placed, and reports whether its gang has its minimum then.
func (s *Session) readyWith(j model.JobID, tasks []model.TaskID, why *policy.Reasons) bool {
	for _, t := range tasks {
		s.book(t, model.Allocated, model.None)
	}
	return s.Job(j).Ready(why)
}

// needed are the waiting tasks that a gang needs at least.
func (s *Session) needed(j model.JobID, tasks []model.TaskID) []model.TaskID {
	v := s.view
	job, account := v.Jobs.At(j), v.Account(j)
	wanted := int(job.MinAvailable - account.Ready() - account.Tasks[model.Pipelined])
	wanted = min(max(wanted, 1), len(tasks))
	if wanted == len(tasks) {
		return tasks
	}
	lacks := make([]int32, job.EndGroup-job.FirstGroup)
	for g := range lacks {
		least := v.Groups.At(job.FirstGroup + model.GroupID(g)).MinAvailable
		lacks[g] = least - account.GroupReady(g) - account.GroupTasks[g][model.Pipelined]
	}
	order := slices.Clone(tasks)
	slices.SortStableFunc(order, func(l, r model.TaskID) int {
		if s.Order().CompareTasks(l, r).Less {
			return -1
		}
		return 1
	})
	var needed, rest []model.TaskID
	for _, t := range order {
		if g := v.Tasks.At(t).Group - job.FirstGroup; lacks[g] > 0 && len(needed) < wanted {
			lacks[g]--
			needed = append(needed, t)
		} else {
			rest = append(rest, t)
		}
	}
	return append(needed, rest[:wanted-len(needed)]...)
}
