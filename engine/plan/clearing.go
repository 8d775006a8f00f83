package plan

import (
	"container/heap"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/resource"
)

// A plan may also evict tasks because rules on other pods keep a task off their node. Tasks elsewhere that do are found by the search for
// smaller sets of victims.

// clearing returns an offer of a node off which other pods keep a task: its victims are those whose leaving lets it in, and those that make
// room then; false if there are none that the policy permits.
func (s *stall) clearing(t model.TaskID, rest []model.TaskID, o offer) (offer, bool) {
	s.list = s.candidates(o.node, s.list[:0])
	must := s.keepingOff(t, o.node)
	if must == nil {
		return offer{}, false
	}
	let := s.consented(t, rest, s.list, o.node)
	if slices.ContainsFunc(must, func(c model.TaskID) bool { return !slices.Contains(let, c) }) {
		return offer{}, false
	}
	for _, c := range must {
		s.row.Add(s.View().Request(c))
	}
	o.victims = slices.Clone(must)
	if !resource.Covers(s.row, s.request) {
		others := slices.DeleteFunc(slices.Clone(let), func(c model.TaskID) bool { return slices.Contains(must, c) })
		more := s.fewest(others)
		if more == nil {
			return offer{}, false
		}
		o.victims = append(o.victims, more...)
	}
	slices.SortFunc(o.victims, s.compareByStay)
	if len(o.victims) < len(let) && len(s.consented(t, rest, o.victims, o.node)) < len(o.victims) {
		return offer{}, false
	}
	o.count, o.last = len(o.victims), s.stayOf(o.victims[len(o.victims)-1])
	return o, true
}

// keepingOff returns few of the tasks in the list without which a task fits on their node, nil if it does not without all of them: one if
// one is enough, else those that are left when as many as possible are put back, the one that stays longest first.
func (s *stall) keepingOff(t model.TaskID, n model.NodeID) []model.TaskID {
	pods := s.View().CountPods()
	if pods == nil {
		return nil
	}
	var list []model.TaskID
	for _, c := range s.list {
		if s.View().PodKind(c) != 0 {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, s.compareByStay)
	for _, c := range list {
		pods.Remove(c, n)
		alone := pods.Fits(t, n, true, nil)
		if pods.Place(c, n); alone {
			return []model.TaskID{c}
		}
	}
	for _, c := range list {
		pods.Remove(c, n)
	}
	gone := slices.Clone(list)
	if !pods.Fits(t, n, true, nil) {
		gone = nil
	}
	for i, c := range slices.Backward(gone) {
		if pods.Place(c, n); pods.Fits(t, n, true, nil) {
			gone = slices.Delete(gone, i, i+1)
		} else {
			pods.Remove(c, n)
		}
	}
	for _, c := range list {
		if gone == nil || slices.Contains(gone, c) {
			pods.Place(c, n)
		}
	}
	return gone
}

// fitsBeside reports whether the rules on other pods let a task on the node of an offer once its victims are gone.
func (s *stall) fitsBeside(t model.TaskID, o *offer) bool {
	pods := s.View().CountPods()
	if pods == nil {
		return true
	}
	for _, c := range o.victims {
		pods.Remove(c, o.node)
	}
	fits := pods.Fits(t, o.node, true, nil)
	for _, c := range o.victims {
		pods.Place(c, o.node)
	}
	return fits
}

// reopen puts back offers of nodes off which other pods kept the task before the newest one was placed.
func (s *stall) reopen(o *offers) {
	for _, a := range s.aside {
		// It is no longer known.
		if bound, some := s.bound(a.node, a.rank); some {
			heap.Push(o, bound)
		}
	}
	s.aside = s.aside[:0]
}

// fitTogether reports whether bounds and the rules on other pods let the tasks of a draft on their nodes, in some order.
func (p *planner) fitTogether(d *draft) bool {
	together := place.Filling{}
	for i, t := range p.tasks {
		b := place.BoundOf(p.Host, t, d.nodes[i])
		if !together.Takes(b, p.View().Request(t)) {
			return false
		}
		together.Put(b, p.View().Request(t))
	}
	pods := p.View().CountPods()
	if pods == nil {
		return true
	}
	left := make([]int, len(p.tasks))
	for i := range left {
		left[i] = i
	}
	var placed []int
	for progress := true; progress; {
		progress = false
		left = slices.DeleteFunc(left, func(i int) bool {
			fits := pods.Fits(p.tasks[i], d.nodes[i], true, nil)
			if fits {
				pods.Place(p.tasks[i], d.nodes[i])
				placed, progress = append(placed, i), true
			}
			return fits
		})
	}
	for _, i := range placed {
		pods.Remove(p.tasks[i], d.nodes[i])
	}
	return len(left) == 0
}

// putLater places tasks that did not fit beside other pods when their turn came, in an order in which they do.
func (p *planner) putLater(later []int, nodes []model.NodeID) bool {
	for len(later) > 0 {
		before := len(later)
		later = slices.DeleteFunc(later, func(at int) bool {
			return p.FitsWhen(p.tasks[at], nodes[at], true, nil) && p.put(p.tasks[at], nodes[at])
		})
		if len(later) == before {
			return false
		}
	}
	return true
}

// A plan may also evict tasks because a part of their node is kept for another job: the node has room now, but not beside that part. What a
// victim leaves then depends on when it would end and on what is kept for its job, so each one is taken off to see.

// yields reports whether nothing but a part that is kept of a node keeps a task off it: evictions there may let it in.
func (p *planner) yields(t model.TaskID, n model.NodeID) bool {
	return p.keptOff(t, n) && p.Opens(t, n, nil) && p.PolicyFits(t, n, nil)
}

// keptOff reports whether a part that is kept of a node, but no whole one, leaves no room for a task.
func (p *planner) keptOff(t model.TaskID, n model.NodeID) bool {
	kept := p.View().Reservations().Against(t, n, resource.Row{})
	return kept != nil && !kept.Whole()
}

// keptOffWith is keptOff of a task of a draft beside the others on its node.
func (p *planner) keptOffWith(d *draft, task int) bool {
	n := d.nodes[task]
	if !p.View().Reservations().Reserved(n) {
		return false
	}
	beside := resource.NewAccount(p.View().Dims.Len())
	for i, on := range d.nodes {
		if on == n && i != task {
			beside.Add(p.View().Request(p.tasks[i]))
		}
	}
	kept := p.View().Reservations().Against(p.tasks[task], n, beside)
	return kept != nil && !kept.Whole()
}

// boundBeside returns an offer of a node that has room but not beside what is kept of it, at most as good as the best one; false if nothing
// may be evicted there.
func (s *stall) boundBeside(o offer) (offer, bool) {
	s.list = s.candidates(o.node, s.list[:0])
	if len(s.list) == 0 {
		return offer{}, false
	}
	first := slices.MinFunc(s.list, s.compareByStay)
	o.count, o.last = 1, s.stayOf(first)
	if s.hosting {
		o.hosts = s.wanted
	}
	return o, true
}

// exactBeside returns an offer of a node off which a part that is kept keeps a task: its victims are taken in order until the task has room
// beside that part, and those put back that are not needed, the one that stays longest first. It is false if the policy does not permit
// them.
func (s *stall) exactBeside(t model.TaskID, rest []model.TaskID, o offer) (offer, bool) {
	s.list = s.candidates(o.node, s.list[:0])
	let := s.consented(t, rest, s.list, o.node)
	slices.SortFunc(let, s.compareByStay)
	err := s.Tried(func() error {
		enough := false
		for _, c := range let {
			s.Unbook(c, model.Pending)
			o.victims = append(o.victims, c)
			if enough = s.hasRoomBeside(t, o.node); enough {
				break
			}
		}
		if !enough {
			o.victims = nil
			return nil
		}
		for i, c := range slices.Backward(o.victims) {
			s.Book(c, model.Running, o.node)
			if s.hasRoomBeside(t, o.node) {
				o.victims = slices.Delete(o.victims, i, i+1)
				continue
			}
			s.Unbook(c, model.Pending)
		}
		return nil
	})
	if err != nil || len(o.victims) == 0 || len(o.victims) < len(let) && len(s.consented(t, rest, o.victims, o.node)) < len(o.victims) {
		return offer{}, false
	}
	o.count, o.last = len(o.victims), s.stayOf(o.victims[len(o.victims)-1])
	return o, true
}

// hasRoomBeside reports whether a task fits a node in the present state, and has room there.
func (s *stall) hasRoomBeside(t model.TaskID, n model.NodeID) bool {
	return s.FitsWhen(t, n, true, nil) && s.roomy(n, []model.TaskID{t})
}
