package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// hosting is a bound on the cost of a node: it may host at most so many tasks, each of which costs at least so many victims.
type hosting struct {
	each  float64
	tasks int
}

// leastByRoom returns a lower bound of the number of victims of any plan, from the room on the nodes alone: to free what a node lacks takes
// at least as many victims as if all were as large as the largest. The bound is above zero only if all tasks are alike.
func (p *planner) leastByRoom() (int, error) {
	v := p.View()
	if len(p.kinds()) > 1 {
		return 0, nil
	}
	s := stall{planner: p, request: v.Request(p.tasks[0]), row: resource.NewAccount(v.Dims.Len())}
	var costs []hosting
	for i, n := range v.NodeOrder {
		if v.Stopped(i) {
			return 0, policy.ErrStopped
		}
		if p.Admits(p.tasks[0], n, nil) {
			costs = s.hostings(n, costs)
		}
	}
	slices.SortFunc(costs, func(l, r hosting) int { return cmp.Compare(l.each, r.each) })
	left, victims := len(p.tasks), 0.0
	for _, c := range costs {
		tasks := min(left, c.tasks)
		victims += float64(tasks) * c.each
		left -= tasks
	}
	// Sums of fractions such as 1/3 are rounded.
	return int(math.Ceil(victims - 1e-6)), nil
}

// hostings appends what a node costs: nothing for tasks that have room, and for each further task the smallest average number of victims
// over any number of them.
func (s *stall) hostings(n model.NodeID, costs []hosting) []hosting {
	s.Future(n, &s.row)
	s.list = s.candidates(n, s.list[:0])
	var gain, most [resource.MaxDimensions]float64
	for _, c := range s.list {
		for d, x := range s.View().Request(c).V {
			gain[d] += x
			most[d] = max(most[d], x)
		}
	}
	free, further, each := 0, 0, math.Inf(1)
	for hosts := 1; hosts <= len(s.tasks); hosts++ {
		count := 0.0
		for m := s.request.AtLeastThreshold(); m != 0; m = m.Rest() {
			d := m.First()
			lacks := float64(hosts)*s.request.V[d] - s.row.V[d] - resource.Threshold
			switch {
			case lacks <= 0:
			case lacks > gain[d]:
				count = math.Inf(1)
			default:
				count = max(count, math.Ceil(lacks/most[d]))
			}
		}
		if math.IsInf(count, 1) {
			break
		}
		if count == 0 {
			free = hosts
			continue
		}
		further, each = hosts-free, min(each, count/float64(hosts-free))
	}
	if free > 0 {
		costs = append(costs, hosting{0, free})
	}
	if further > 0 {
		costs = append(costs, hosting{each, further})
	}
	return costs
}

// roomless reports whether the nodes provably have no room for the tasks even without all evictable tasks. Then no answer of the policy to
// evictions matters, and there is no plan for these tasks. The judge proves the same without evictions.
func (p *planner) roomless() (bool, error) {
	placement, err := p.placeIn(p.tasks, func(n model.NodeID, row *resource.Row) {
		p.Future(n, row)
		for _, i := range p.pool.on[p.pool.first[n]:p.pool.first[n+1]] {
			row.Add(p.View().Request(p.pool.tasks[i]))
		}
	})
	return placement.Outcome == place.NoPlacement, err
}

// onlyPlaceable limits the chosen tasks of each class to the number that the empty nodes have room for, and reports whether that leaves
// fewer choices. The choices that it removes have no plan.
func (p *planner) onlyPlaceable(o *place.Options) bool {
	v := p.View()
	running := make(map[model.NodeID]*resource.Row)
	for _, j := range v.Present() {
		job := v.Jobs.At(j)
		if j == p.question.Job || v.Account(j).Tasks[model.Running] == 0 {
			continue
		}
		for t := job.FirstTask; t < job.EndTask; t++ {
			if n := v.NodeOf(t); v.Status(t) == model.Running && n != model.None {
				row := running[n]
				if row == nil {
					made := resource.NewRow(v.Dims.Len())
					row, running[n] = &made, &made
				}
				row.Add(v.Request(t))
			}
		}
	}
	fewer := false
	for i := range o.Classes {
		c := &o.Classes[i]
		placement, err := p.placeIn(c.Tasks[:c.Most], func(n model.NodeID, row *resource.Row) {
			if p.Future(n, row); running[n] != nil {
				row.Add(*running[n])
			}
		})
		if err == nil && placement.Outcome == place.NoPlacement {
			c.Most, fewer = placement.Most, true
		}
	}
	return fewer
}

// placeIn places tasks where nodes have so much room.
func (p *planner) placeIn(tasks []model.TaskID, room func(model.NodeID, *resource.Row)) (place.Placement, error) {
	place := place.Placer{Host: p.Host, Tasks: tasks, Nodes: p.View().NodeOrder, Room: room, Trials: place.Trials, Bare: true}
	return place.Place()
}
