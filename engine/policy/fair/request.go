package fair

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// request is what one task asks for, in whole amounts.
type request struct {
	amount []int64
	// positive are the dimensions with an amount above 0.
	positive resource.Mask
	// fits reports whether some node that takes new tasks could hold it if empty or, where there are no nodes, the cluster.
	fits bool
}

func (r *request) bestEffort() bool { return r.positive == 0 }

func (s *State) readRequests() []request {
	v := s.v
	list, cells := make([]request, len(v.Requests)), make([]int64, len(v.Requests)*s.width)
	for i := range list {
		r := &list[i]
		r.amount = cells[i*s.width : (i+1)*s.width : (i+1)*s.width]
		for m := v.Requests[i].Positive(); m != 0; m = m.Rest() {
			d := m.First()
			r.amount[d] = atLeast(v.Requests[i].V[d])
		}
		r.positive = v.Requests[i].Positive()
		r.fits = s.fitsEmpty(r, model.AllNodes)
	}
	return list
}

// fitsEmpty reports whether a request is within the allocatable of some node of a set that takes new tasks or, where there are no nodes,
// within the total.
func (s *State) fitsEmpty(r *request, set model.NodeSetID) bool {
	within := func(offer resource.Row) bool {
		for m := r.positive; m != 0; m = m.Rest() {
			if d := m.First(); r.amount[d] > atMost(offer.V[d]) {
				return false
			}
		}
		return true
	}
	v := s.v
	if set != model.AllNodes {
		return slices.ContainsFunc(v.NodeSets[set].Nodes, func(n model.NodeID) bool {
			return v.Takes(n, model.AllNodes) && within(v.Nodes[n].Allocatable)
		})
	}
	for _, n := range v.NodeOrder {
		if v.Nodes[n].Unschedulable == nil && within(v.Nodes[n].Allocatable) {
			return true
		}
	}
	return len(v.NodeOrder) == 0 && within(v.Total)
}

// restricted is a request of tasks that may use the nodes of a set only.
type restricted struct {
	request int32
	set     model.NodeSetID
}

// fits reports whether a request of tasks that are restricted to a set could be placed if the cluster were empty.
func (s *State) fits(request int32, set model.NodeSetID) bool {
	if set == model.AllNodes {
		return s.requests[request].fits
	}
	key := restricted{request, set}
	fits, known := s.fitting[key]
	if !known {
		fits = s.fitsEmpty(&s.requests[request], set)
		s.fitting[key] = fits
	}
	return fits
}

// fitsTask reports whether a task could be placed if the cluster were empty.
func (s *State) fitsTask(t model.TaskID) bool {
	return s.fits(s.v.Tasks.At(t).Request, s.setOf(t))
}

// setOf returns the node set that a task may use.
func (s *State) setOf(t model.TaskID) model.NodeSetID {
	if len(s.v.NodeSets) == 0 {
		return model.AllNodes
	}
	return s.v.NodeSetOf(t)
}

// sum sets dst to what tasks ask for together and returns the dimensions with an amount above 0.
func (s *State) sum(tasks []model.TaskID, dst []int64) resource.Mask {
	clear(dst)
	positive := resource.Mask(0)
	for _, t := range tasks {
		r := s.requestOf(t)
		positive |= r.positive
		for m := r.positive; m != 0; m = m.Rest() {
			d := m.First()
			dst[d] += r.amount[d]
		}
	}
	return positive
}

func (s *State) requestOf(t model.TaskID) *request { return &s.requests[s.v.Tasks.At(t).Request] }
