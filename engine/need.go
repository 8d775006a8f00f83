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

// alike are tasks of one role and kind, in order of service: which of them are chosen makes no difference.
type alike struct {
	role  int
	tasks []model.TaskID
	// most is the number of them that may be chosen.
	most int
}

// maxClasses bounds the classes of alike tasks among which one job may choose.
const maxClasses = 256

// options are the ways to choose the tasks that a gang needs.
type options struct {
	session *Session
	waiting *waiting
	classes []alike
	// bounded: there are tasks of more classes.
	bounded bool
	// after says of each class how many may be chosen of it and the later ones, and afterOf how many of each role.
	after   []int
	afterOf [][]int
}

// options returns the ways to choose, nil if there is only one.
func (s *Session) options(w *waiting) *options {
	if len(w.needed) == len(w.tasks) || len(w.kinds) == 1 && !slices.ContainsFunc(w.lacks, func(n int) bool { return n > 0 }) {
		return nil
	}
	type class struct {
		role int
		kind kindKey
	}
	at := make(map[class]int)
	o := &options{session: s, waiting: w}
	first := s.view.Jobs.At(s.view.Tasks.At(w.tasks[0]).Job).FirstGroup
	for _, t := range s.inService(w.tasks) {
		c := class{int(s.view.Tasks.At(t).Group - first), s.kindOf(t)}
		i, known := at[c]
		if !known {
			if i = len(o.classes); i == maxClasses {
				o.bounded = true
				continue
			}
			at[c] = i
			o.classes = append(o.classes, alike{role: c.role})
		}
		o.classes[i].tasks = append(o.classes[i].tasks, t)
	}
	if len(o.classes) == 1 {
		return nil
	}
	for i := range o.classes {
		o.classes[i].most = min(len(o.classes[i].tasks), len(w.needed))
	}
	return o
}

// sum finds out how many may be chosen from each class on.
func (o *options) sum() {
	n := len(o.classes)
	o.after, o.afterOf = make([]int, n+1), make([][]int, n+1)
	o.afterOf[n] = make([]int, len(o.waiting.lacks))
	for i := n - 1; i >= 0; i-- {
		c := &o.classes[i]
		o.after[i] = o.after[i+1] + c.most
		o.afterOf[i] = slices.Clone(o.afterOf[i+1])
		o.afterOf[i][c.role] += c.most
	}
}

// each calls try for one choice after the other until it returns false: those first that have most of the classes that are served first.
func (o *options) each(try func([]model.TaskID) bool) {
	o.sum()
	o.from(0, len(o.waiting.needed), slices.Clone(o.waiting.lacks), nil, func(chosen []model.TaskID) bool {
		return try(o.session.inService(chosen))
	})
}

// from chooses so many tasks from class i on, of which roles lack some.
func (o *options) from(i, wanted int, lacks []int, chosen []model.TaskID, try func([]model.TaskID) bool) bool {
	if !o.possible(i, wanted, lacks) {
		return true
	}
	if i == len(o.classes) {
		return try(chosen)
	}
	c := &o.classes[i]
	for n := min(c.most, wanted); n >= 0; n-- {
		lacks[c.role] -= n
		goes := o.from(i+1, wanted-n, lacks, append(slices.Clip(chosen), c.tasks[:n]...), try)
		lacks[c.role] += n
		if !goes {
			return false
		}
	}
	return true
}

// possible reports whether so many tasks can be chosen from class i on, as many of each role as it lacks.
func (o *options) possible(i, wanted int, lacks []int) bool {
	reserved := 0
	for g, n := range lacks {
		if n > o.afterOf[i][g] {
			return false
		}
		reserved += max(n, 0)
	}
	return reserved <= wanted && wanted <= o.after[i]
}
