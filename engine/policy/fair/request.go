package fair

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// request is the request of one task, in whole amounts.
type request struct {
	amount []int64
	// positive are the dimensions with an amount above 0.
	positive resource.Mask
	// fits reports whether some node that takes new tasks could hold it if empty or, where there are no nodes, the cluster.
	fits bool
}

func (r *request) bestEffort() bool { return r.positive == 0 }

// readRequests reads the requests of the model. It spends a unit of work for each node that it looks at, and returns a *policy.WorkError
// once there is none left.
func (s *State) readRequests() ([]request, error) {
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
		var looked int
		r.fits, looked = s.fitsEmpty(r, model.AllNodes)
		if err := v.Work.Spend(1+looked, 1); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// readRestricted finds out which requests fit into the node sets of their tasks, spending work as readRequests does.
func (s *State) readRestricted() error {
	v := s.v
	s.fitting = map[restricted]bool{}
	if len(v.NodeSets) == 0 {
		return nil
	}
	passed := 0
	for _, j := range v.Present() {
		job := v.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			v.Yield(passed)
			passed++
			key := restricted{v.Tasks.At(t).Request, v.NodeSetOf(t)}
			if _, known := s.fitting[key]; known || key.set == model.AllNodes {
				continue
			}
			fits, looked := s.fitsEmpty(&s.requests[key.request], key.set)
			s.fitting[key] = fits
			if err := v.Work.Spend(1+looked, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// fitsEmpty reports whether a request is within the allocatable of some node of a set that takes new tasks of the set or, where there are
// no nodes, within the total, and at how many nodes it looked.
func (s *State) fitsEmpty(r *request, set model.NodeSetID) (fits bool, looked int) {
	within := func(offer resource.Row) bool {
		for m := r.positive; m != 0; m = m.Rest() {
			if d := m.First(); r.amount[d] > atMost(offer.V[d]) {
				return false
			}
		}
		return true
	}
	v := s.v
	nodes := v.NodeOrder
	if set != model.AllNodes {
		nodes = v.NodeSets[set].Nodes
	}
	for i, n := range nodes {
		v.Yield(i)
		if v.Takes(n, set) && within(v.Nodes[n].Allocatable) {
			return true, i + 1
		}
	}
	return set == model.AllNodes && len(nodes) == 0 && within(v.Total), len(nodes)
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
		fits, _ = s.fitsEmpty(&s.requests[request], set)
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
