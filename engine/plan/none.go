package plan

import (
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/resource"
)

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
