package fair

import (
	"math"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

const (
	// maxSum bounds what any kind of amount adds up to over the whole snapshot, so that no sum or difference of a few of them overflows.
	maxSum = 1 << 60
	// unlimited is a capability that limits nothing.
	unlimited = math.MaxInt64
)

// atLeast returns the least integer that is not below x.
func atLeast(x float64) int64 { return int64(math.Ceil(x)) }

// atMost returns the greatest integer that is not above x, which may be unlimited; so is what exceeds every sum.
func atMost(x float64) int64 {
	if x > maxSum {
		return unlimited
	}
	return int64(math.Floor(x))
}

// ceilDiv returns ⌈x / y⌉ for x >= 0.
func ceilDiv(x, y int64) int64 { return (x + y - 1) / y }

// checkAmounts returns a *model.Error for each list of the snapshot whose amounts add up to more than maxSum in some dimension.
func (s *State) checkAmounts() error {
	var faults model.Error
	v := s.v
	sums := make([]float64, s.width)
	within := func(row resource.Row, times float64, path string) {
		for m := row.Has; m != 0; m = m.Rest() {
			d := m.First()
			before := sums[d]
			if sums[d] += math.Ceil(row.V[d]) * times; before <= maxSum && !(sums[d] <= maxSum) {
				faults.Add(path, "amounts of %s add up to more than %d, the most that fair divides", v.Dims.Name(d), int64(maxSum))
			}
		}
	}
	within(v.Total, 1, "total")
	for i := range v.Nodes {
		within(v.Nodes[i].Allocatable, 1, "nodes.allocatable")
		within(v.Nodes[i].UsedByOthers, 1, "nodes.used_by_others")
	}
	for i := range v.Queues {
		within(v.Queues[i].Guarantee, 1, "queues.guarantee")
		within(v.Queues[i].Deserved, 1, "queues.deserved")
	}
	s.checkRequests(within)
	return faults.OrNil()
}

func (s *State) checkRequests(within func(row resource.Row, times float64, path string)) {
	v := s.v
	tasks := make([]float64, len(v.Requests))
	for _, j := range v.Present() {
		job := v.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			tasks[v.Tasks.At(t).Request]++
		}
		for g := job.FirstGroup; g < job.EndGroup; g++ {
			for c := range v.CountsOf(g) {
				tasks[v.Groups.At(g).Request] += float64(c.N)
			}
		}
	}
	for i := range v.Requests {
		within(v.Requests[i], tasks[i], "jobs.groups.request")
	}
	for _, j := range v.Present() {
		within(v.Jobs.At(j).MinResources, 1, "jobs.min_resources")
	}
}
