package plan

import (
	"container/heap"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// greedy places task after task, the largest kind first, each on the node that costs least; nil if some task finds none.
// A miss, if not nil, gets what that task lacks.
func (p *planner) greedy(hosting bool, miss *Miss) (*draft, error) {
	d := &draft{nodes: make([]model.NodeID, len(p.tasks)), miss: miss}
	p.asked = 0
	placed, whole := 0, true
	err := p.Tried(func() error {
		p.enter()
		for _, kind := range p.kinds() {
			done, err := p.stable(kind, hosting, d)
			placed += done
			if err != nil || done < len(kind) {
				whole = false
				if miss != nil {
					miss.Placed = placed
				}
				return err
			}
		}
		return nil
	})
	if err != nil || !whole {
		return nil, err
	}
	slices.SortFunc(d.victims, p.compareByStay)
	return d, nil
}

// kinds lists the positions of the tasks kind by kind, the largest kind first.
func (p *planner) kinds() [][]int32 {
	place := place.Placer{Host: p.Host, Tasks: p.tasks}
	// Without nodes there is nothing to measure requests by but the total.
	place.Sort(p.View().Total)
	kinds := make([][]int32, len(place.Kinds))
	for k := range place.Kinds {
		kinds[k] = place.Kinds[k].Tasks
	}
	return kinds
}

// offers is a heap of offers, the best first.
type offers struct {
	*planner

	hosting bool
	list    []offer
}

func (o *offers) Len() int { return len(o.list) }

func (o *offers) Less(i, j int) bool { return o.compareOffers(&o.list[i], &o.list[j], o.hosting) < 0 }

func (o *offers) Swap(i, j int) { o.list[i], o.list[j] = o.list[j], o.list[i] }

// Push is for package heap.
func (o *offers) Push(x any) { o.list = append(o.list, x.(offer)) } //nolint:forcetypeassert,errcheck // A heap of offers.

// Pop is for package heap.
func (o *offers) Pop() any {
	last := o.list[len(o.list)-1]
	o.list = o.list[:len(o.list)-1]
	return last
}

// stable places the tasks of one kind and returns how many.
func (p *planner) stable(kind []int32, hosting bool, d *draft) (int, error) {
	v, first := p.View(), p.tasks[kind[0]]
	s := stall{planner: p, request: v.Request(first), first: first, hosting: hosting, wanted: len(kind)}
	s.row = resource.NewAccount(v.Dims.Len())
	o := &offers{planner: p, hosting: hosting}
	for i, n := range v.NodeOrder {
		if v.Stopped(i) {
			return 0, policy.ErrStopped
		}
		if !p.Admits(first, n, nil) && !p.yields(first, n) {
			continue
		}
		if offered, some := s.bound(n, int32(i)); some {
			o.list = append(o.list, offered)
		}
	}
	heap.Init(o)
	state := 1
	for i, at := range kind {
		t := p.tasks[at]
		chosen, some, err := s.choose(o, t, state)
		if err != nil {
			return i, err
		}
		if !some {
			return i, s.miss(t, d.miss)
		}
		for _, victim := range chosen.victims {
			p.Unbook(victim, model.Pending)
		}
		d.victims = append(d.victims, chosen.victims...)
		if within, err := p.withinLimits(t, d); err != nil || !within {
			return i, err
		}
		p.Book(t, model.Allocated, chosen.node)
		d.nodes[at] = chosen.node
		s.wanted--
		state++
		s.reopen(o)
		if offered, some := s.bound(chosen.node, chosen.rank); some {
			heap.Push(o, offered)
		}
	}
	return len(kind), nil
}

// together lists the tasks that claim with one: under a policy that plans, all that are not placed yet.
func (p *planner) together(t model.TaskID) []model.TaskID {
	if !p.Reclaim().Plans() {
		return []model.TaskID{t}
	}
	return slices.DeleteFunc(slices.Clone(p.tasks), func(t model.TaskID) bool { return p.View().Status(t) != model.Pending })
}

// choose takes the best offer off the heap. A bound is made exact when it comes first; whatever is evicted and placed makes offers of other
// nodes only worse, so that an offer that still comes first then is the best.
func (s *stall) choose(o *offers, t model.TaskID, state int) (offer, bool, error) {
	var rest []model.TaskID
	for o.Len() > 0 {
		best := heap.Pop(o).(offer) //nolint:forcetypeassert,errcheck // A heap of offers.
		switch {
		case s.Bounded(s.View().QueueOf(t)) && !s.Admits(t, best.node, nil) && (best.count == 0 || !s.yields(t, best.node)):
			// The tasks that were placed before use up the bound of the node.
			continue
		case best.count > 0 && best.state != state:
		case s.fitsBeside(t, &best):
			return best, true, nil
		case best.state == state:
			s.aside = append(s.aside, best)
			continue
		}
		if s.asked&15 == 15 && s.View().Stop != nil && s.View().Stop() {
			return offer{}, false, policy.ErrStopped
		}
		if s.asked++; s.asked > planEvaluations {
			s.plan.CutShort = true
			return offer{}, false, nil
		}
		if rest == nil {
			rest = s.together(t)
		}
		if exact, some := s.exact(t, rest, best.node, best.rank); some {
			exact.state = state
			heap.Push(o, exact)
		} else if s.View().Ordered(t) {
			s.aside = append(s.aside, best)
		}
	}
	return offer{}, false, nil
}
