package plan

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

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
