package place

import (
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
)

// Alike are tasks of one role and kind, in order of service: which of them are chosen makes no difference.
type Alike struct {
	Role  int
	Tasks []model.TaskID
	// Most is the number of them that may be chosen.
	Most int
}

// maxClasses bounds the classes of alike tasks among which one job may choose.
const maxClasses = 256

// Options are the ways to choose the tasks that a gang needs.
type Options struct {
	session engine.Host
	waiting *engine.Need
	Classes []Alike
	// Bounded: there are tasks of more classes.
	Bounded bool
	// after says of each class how many may be chosen of it and the later ones, and afterOf how many of each role.
	after   []int
	afterOf [][]int
}

// OptionsOf returns the ways to choose, nil if there is only one.
func OptionsOf(h engine.Host, w *engine.Need) *Options {
	if len(w.Needed) == len(w.Tasks) || len(w.Kinds) == 1 && !slices.ContainsFunc(w.Lacks, func(n int) bool { return n > 0 }) {
		return nil
	}
	type class struct {
		role int
		kind engine.Kind
	}
	at := make(map[class]int)
	o := &Options{session: h, waiting: w}
	first := h.View().Jobs.At(h.View().Tasks.At(w.Tasks[0]).Job).FirstGroup
	for _, t := range h.InService(w.Tasks) {
		c := class{int(h.View().Tasks.At(t).Group - first), h.KindOf(t)}
		i, known := at[c]
		if !known {
			if i = len(o.Classes); i == maxClasses {
				o.Bounded = true
				continue
			}
			at[c] = i
			o.Classes = append(o.Classes, Alike{Role: c.role})
		}
		o.Classes[i].Tasks = append(o.Classes[i].Tasks, t)
	}
	if len(o.Classes) == 1 {
		return nil
	}
	for i := range o.Classes {
		o.Classes[i].Most = min(len(o.Classes[i].Tasks), len(w.Needed))
	}
	return o
}

// sum finds out how many may be chosen from each class on.
func (o *Options) sum() {
	n := len(o.Classes)
	o.after, o.afterOf = make([]int, n+1), make([][]int, n+1)
	o.afterOf[n] = make([]int, len(o.waiting.Lacks))
	for i := n - 1; i >= 0; i-- {
		c := &o.Classes[i]
		o.after[i] = o.after[i+1] + c.Most
		o.afterOf[i] = slices.Clone(o.afterOf[i+1])
		o.afterOf[i][c.Role] += c.Most
	}
}

// Each calls try for one choice after the other until it returns false: those first that have most of the classes that are served first.
func (o *Options) Each(try func([]model.TaskID) bool) {
	o.sum()
	o.from(0, len(o.waiting.Needed), slices.Clone(o.waiting.Lacks), nil, func(chosen []model.TaskID) bool {
		return try(o.session.InService(chosen))
	})
}

// from chooses so many tasks from class i on, of which roles lack some.
func (o *Options) from(i, wanted int, lacks []int, chosen []model.TaskID, try func([]model.TaskID) bool) bool {
	if !o.possible(i, wanted, lacks) {
		return true
	}
	if i == len(o.Classes) {
		return try(chosen)
	}
	c := &o.Classes[i]
	for n := min(c.Most, wanted); n >= 0; n-- {
		lacks[c.Role] -= n
		goes := o.from(i+1, wanted-n, lacks, append(slices.Clip(chosen), c.Tasks[:n]...), try)
		lacks[c.Role] += n
		if !goes {
			return false
		}
	}
	return true
}

// possible reports whether so many tasks can be chosen from class i on, as many of each role as it lacks.
func (o *Options) possible(i, wanted int, lacks []int) bool {
	reserved := 0
	for g, n := range lacks {
		if n > o.afterOf[i][g] {
			return false
		}
		reserved += max(n, 0)
	}
	return reserved <= wanted && wanted <= o.after[i]
}
