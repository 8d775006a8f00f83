package plan

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/judge"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// A draft proposes nodes and victims; nothing in it is believed. Here it is carried out by events on the session, as a scheduler would
// carry it out: each eviction is asked of the policy, each task is placed only where the policy and the node take it. What cannot be
// carried out is no plan. Before that, victims are put back as long as the rest is enough, so that a plan has none that it can do without.
// The session is as before at the end of each trial.

// carried is a draft that was carried out by events.
type carried struct {
	victims  []Evicted
	released []bool
	ready    bool
	plan     *policy.Plan
}

// checked puts back the victims that a draft can do without and returns it, or nil if the policy does not allow it.
func (p *planner) checked(d *draft) (*draft, error) {
	if err := p.fillBack(d); err != nil {
		return nil, err
	}
	if !p.place && len(d.victims) == 0 {
		return nil, nil //nolint:nilnil // No plan, no error.
	}
	// A planner of the policy may do with fewer victims still, since it counts in other units.
	for range 2 {
		c, err := p.carryOut(d, nil)
		switch {
		case err != nil:
			return nil, err
		case c == nil:
			return nil, nil //nolint:nilnil // No plan, no error.
		case c.plan == nil || len(c.plan.Victims) == len(p.others(d.victims)):
			return d, nil
		}
		d.victims = slices.DeleteFunc(d.victims, func(t model.TaskID) bool {
			return p.View().QueueOf(t) != p.queue && !slices.Contains(c.plan.Victims, t)
		})
	}
	return nil, nil //nolint:nilnil // As above.
}

// others lists the victims that belong to other queues.
func (p *planner) others(victims []model.TaskID) []model.TaskID {
	return slices.DeleteFunc(slices.Clone(victims), func(t model.TaskID) bool { return p.View().QueueOf(t) == p.queue })
}

// fillBack removes the victims that a draft does not need on the nodes of its tasks, the last in eviction order first.
func (p *planner) fillBack(d *draft) error {
	if len(d.victims) == 0 {
		return nil
	}
	on, at := p.tasksOn(d), make([]model.NodeID, len(d.victims))
	return p.Tried(func() error {
		p.enter()
		for i, t := range d.victims {
			at[i] = p.View().NodeOf(t)
			p.Unbook(t, model.Pending)
		}
		for i, t := range slices.Backward(d.victims) {
			n := at[i]
			p.Book(t, model.Running, n)
			if p.roomy(n, on[n]) && p.fitTogether(d) && p.Allocatable(p.tasks, policy.InSession, nil, nil) {
				d.victims = slices.Delete(d.victims, i, i+1)
				continue
			}
			p.Unbook(t, model.Pending)
		}
		return nil
	})
}

// tasksOn lists the tasks of a draft by node.
func (p *planner) tasksOn(d *draft) map[model.NodeID][]model.TaskID {
	on := make(map[model.NodeID][]model.TaskID)
	for i, n := range d.nodes {
		on[n] = append(on[n], p.tasks[i])
	}
	return on
}

// roomy reports whether a node has room for tasks, one after the other.
func (p *planner) roomy(n model.NodeID, tasks []model.TaskID) bool {
	if len(tasks) == 0 {
		return true
	}
	row := resource.NewAccount(p.View().Dims.Len())
	p.Future(n, &row)
	for _, t := range tasks {
		if !resource.Covers(row, p.View().Request(t)) {
			return false
		}
		row.SubWithin(p.View().Request(t))
	}
	return true
}

// victimsOf returns the victims that each task needs on its node, in the order in which they are taken. Victims that only a limit needs
// come first, with the first task; limits counts them.
func (p *planner) victimsOf(d *draft) (groups [][]model.TaskID, limits int) {
	v := p.View()
	waiting := make(map[model.NodeID][]model.TaskID)
	for _, t := range d.victims {
		waiting[v.NodeOf(t)] = append(waiting[v.NodeOf(t)], t)
	}
	rows := make(map[model.NodeID]*resource.Row)
	groups = make([][]model.TaskID, len(p.tasks))
	for i, n := range d.nodes {
		row := rows[n]
		if row == nil {
			made := resource.NewAccount(v.Dims.Len())
			p.Future(n, &made)
			row, rows[n] = &made, &made
		}
		request := v.Request(p.tasks[i])
		if p.keptOffWith(d, i) {
			// A part of the node is kept, and all victims there make room beside it.
			for _, t := range waiting[n] {
				row.Add(v.Request(t))
			}
			groups[i], waiting[n] = waiting[n], nil
		}
		if v.PodKind(p.tasks[i]) != 0 {
			// Other pods may keep the task off the node.
			waiting[n] = slices.DeleteFunc(waiting[n], func(t model.TaskID) bool {
				if v.PodKind(t) == 0 {
					return false
				}
				row.Add(v.Request(t))
				groups[i] = append(groups[i], t)
				return true
			})
		}
		for list := waiting[n]; len(list) > 0 && !resource.Covers(*row, request); list = waiting[n] {
			row.Add(v.Request(list[0]))
			groups[i] = append(groups[i], list[0])
			waiting[n] = list[1:]
		}
		row.SubWithin(request)
	}
	var rest []model.TaskID
	for _, t := range d.victims {
		if list := waiting[v.NodeOf(t)]; slices.Contains(list, t) {
			rest = append(rest, t)
		}
	}
	groups[0] = append(rest, groups[0]...)
	return groups, len(rest)
}

// atOnce gives the first task on each node the victims of all tasks on it.
func (d *draft) atOnce(groups [][]model.TaskID) [][]model.TaskID {
	first, joined := make(map[model.NodeID]int), make([][]model.TaskID, len(groups))
	for i, n := range d.nodes {
		at, known := first[n]
		if !known {
			at, first[n] = i, i
		}
		joined[at] = append(joined[at], groups[i]...)
	}
	return joined
}

// carryOut carries a draft out by events of the session, asks the policy on the way whether it lets each victim go and each task be placed,
// and undoes it. It returns nil if the policy does not allow it. then, if not nil, is called before all is undone.
//
// Policies may let tasks go together that they do not let go one after the other, or in one order and not in another; both are tried.
func (p *planner) carryOut(d *draft, then func(*carried)) (*carried, error) {
	groups, limits := p.victimsOf(d)
	c, err := p.carryOutAs(d, groups, limits, then)
	if c == nil && err == nil && !p.Reclaim().Plans() && len(d.victims)+len(d.nodes) > 2 {
		return p.carryOutAs(d, d.atOnce(groups), limits, then)
	}
	return c, err
}

// carryOutAs carries out a draft whose victims are given for each task; the first victims of all keep queues within limits.
func (p *planner) carryOutAs(d *draft, groups [][]model.TaskID, limits int, then func(*carried)) (*carried, error) {
	c := &carried{released: judge.AfterRelease(p.Host, p.tasks, d.nodes, d.victims)}
	allowed := false
	err := p.Tried(func() error {
		if !p.enter() {
			return nil
		}
		before := p.potential(d)
		switch {
		case p.Reclaim().Plans():
			allowed = p.evictAll(d, groups, c)
		default:
			allowed = true
		}
		var err error
		if allowed, err = p.putAll(d, groups, c, allowed); err != nil || !allowed {
			return err
		}
		c.ready = p.Settled(p.question.Job, nil)
		allowed = (c.ready || p.question.Tasks != nil) && p.calm(d, before)
		if allowed && then != nil {
			then(c)
		}
		return nil
	})
	if err != nil || !allowed {
		return nil, err
	}
	for i := range limits {
		c.victims[i].Limit = true
	}
	return c, nil
}

// putAll evicts the victims of each task, unless a planner did so, and places it. Tasks that other pods keep off their nodes until others
// are placed, or gone, come last.
func (p *planner) putAll(d *draft, groups [][]model.TaskID, c *carried, allowed bool) (bool, error) {
	var later []int
	for i, at := range evictingFirst(groups) {
		allowed = allowed && (p.Reclaim().Plans() || p.evictVictims(p.tasks[at], groups[at], c))
		if allowed && p.View().PodKind(p.tasks[at]) != 0 && !p.FitsWhen(p.tasks[at], d.nodes[at], true, nil) {
			later = append(later, at)
			continue
		}
		allowed = allowed && p.put(p.tasks[at], d.nodes[at])
		if i&63 == 63 && p.View().Stop != nil && p.View().Stop() {
			return false, policy.ErrStopped
		}
	}
	return allowed && p.putLater(later, d.nodes), nil
}

// evictingFirst lists the positions of tasks, those first that have victims: a queue may take from others while it has less than it
// deserves.
func evictingFirst(groups [][]model.TaskID) []int {
	order := make([]int, 0, len(groups))
	for _, evicting := range []bool{true, false} {
		for i, group := range groups {
			if len(group) > 0 == evicting {
				order = append(order, i)
			}
		}
	}
	return order
}

// put places a task if the policy and the node allow it.
func (p *planner) put(t model.TaskID, n model.NodeID) bool {
	if !p.Allocatable([]model.TaskID{t}, policy.InSession, nil, nil) || !p.FitsWhen(t, n, true, nil) || !p.roomy(n, []model.TaskID{t}) {
		return false
	}
	p.Book(t, model.Allocated, n)
	return true
}

// evictVictims evicts the victims of one task if the policy permits it, those of its own queue first.
func (p *planner) evictVictims(t model.TaskID, group []model.TaskID, c *carried) bool {
	if len(group) == 0 {
		return true
	}
	for _, own := range []bool{true, false} {
		part := slices.DeleteFunc(slices.Clone(group), func(v model.TaskID) bool { return (p.View().QueueOf(v) == p.queue) != own })
		if len(part) == 0 {
			continue
		}
		if !own && !p.Preemptive([]model.TaskID{t}, nil, nil) {
			return false
		}
		if !p.evictFor(t, part, own, c) {
			return false
		}
	}
	return true
}

// evictFor evicts tasks of the own queue, or of others, if the policy lets them go in some order of a few: a queue above its share may give
// a large task last, but not first.
func (p *planner) evictFor(t model.TaskID, part []model.TaskID, own bool, c *carried) bool {
	claim := &policy.Claim{Tasks: []model.TaskID{t}, Candidates: part}
	choice := p.VictimsOf(own).Choose(claim, false)
	for order := 1; order < 4 && len(part) > 1 && len(choice.Victims) < len(part); order++ {
		claim.Candidates = slices.Clone(part)
		if order < 3 {
			slices.SortStableFunc(claim.Candidates, func(l, r model.TaskID) int { return cmp.Compare(p.size(l), p.size(r)) })
		}
		if order > 1 {
			slices.Reverse(claim.Candidates)
		}
		choice = p.VictimsOf(own).Choose(claim, false)
	}
	return p.evict(t, claim.Candidates, &choice, own, c)
}

// size is the largest part of the cluster that a task asks for.
func (p *planner) size(t model.TaskID) float64 {
	size, _ := resource.DominantShare(p.View().Request(t), p.View().Total, p.View().Total.Positive())
	return size
}

// evict takes victims off if a choice lets all of them go.
func (p *planner) evict(t model.TaskID, victims []model.TaskID, choice *engine.Choice, own bool, c *carried) bool {
	for _, victim := range victims {
		if !slices.Contains(choice.Victims, victim) {
			return false
		}
	}
	for _, victim := range victims {
		e := Evicted{Task: victim, Node: p.View().NodeOf(victim), For: t, Own: own, Tier: choice.Tier, Returns: NoReturn}
		for i := range choice.Ballots {
			b := &choice.Ballots[i]
			if b.Tier == choice.Tier && b.Vote == policy.Permit && slices.Contains(b.Victims, victim) {
				e.Plugins = append(e.Plugins, b.Plugin)
			}
		}
		c.victims = append(c.victims, e)
	}
	for _, victim := range victims {
		p.Unbook(victim, model.Pending)
	}
	return true
}

// evictAll evicts all victims under a policy that plans: those of the own queue for their tasks, the others as one plan of the policy on
// the nodes of the draft.
func (p *planner) evictAll(d *draft, groups [][]model.TaskID, c *carried) bool {
	var order []model.TaskID
	for i, group := range groups {
		order = append(order, group...)
		own := slices.DeleteFunc(slices.Clone(group), func(v model.TaskID) bool { return p.View().QueueOf(v) != p.queue })
		if slices.ContainsFunc(own, func(v model.TaskID) bool { return !p.lower(v) }) || !p.evictVictims(p.tasks[i], own, c) {
			return false
		}
	}
	if others := p.others(d.victims); len(others) > 0 {
		claim := &policy.Claim{Tasks: p.tasks, Candidates: others, Room: policy.Room{Kind: policy.GivenNodes, Nodes: d.nodes}}
		choice := p.Reclaim().Choose(claim, false)
		if c.plan = choice.Plan; c.plan != nil {
			if !c.plan.Made {
				p.refused, p.refusedBy = []policy.Reason{c.plan.Refusal}, judge.CheckEviction
				return false
			}
			others = c.plan.Victims
		}
		if !p.evict(p.tasks[0], others, &choice, false, c) {
			return false
		}
	}
	for i := range c.victims {
		if at := slices.IndexFunc(groups, func(g []model.TaskID) bool { return slices.Contains(g, c.victims[i].Task) }); at >= 0 {
			c.victims[i].For = p.tasks[at]
		}
	}
	slices.SortStableFunc(c.victims, func(l, r Evicted) int { return slices.Index(order, l.Task) - slices.Index(order, r.Task) })
	return p.Allocatable(p.tasks, policy.InSession, nil, nil)
}
