package engine

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
)

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
