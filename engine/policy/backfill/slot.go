package backfill

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// group are the equal tasks of a job.
type group struct {
	request resource.Row
	tasks   []model.TaskID
}

// change is a change of how many tasks of a group have room on the nodes that start at a time.
type change struct {
	at    int64
	group int
	more  int
}

// maxTries bounds at how many times it is tried to place tasks of several kinds, of which each alone has room.
const maxTries = 64

// runtime returns how long a job that began now would run; policy.Endless if that is not known.
func (p *profile) runtime(j model.JobID) int64 {
	// A difference that cannot be expressed is negative.
	if end := p.view.EndOf(j); end != policy.Endless && end-p.view.AsOf > 0 {
		return end - p.view.AsOf
	}
	return policy.Endless
}

// earliest reserves room for tasks of a job from the earliest time on at which it may enter its queue, the queue may use what they ask for
// beside the jobs that were planned before, and all have room as long as it runs; false if there is no such time. Tasks are placed by first
// fit: tasks that are equal always have room then, others perhaps only later.
func (p *profile) earliest(j model.JobID, tasks []model.TaskID, kept []policy.Reservation) (policy.Reservation, bool, error) {
	runtime, groups := p.runtime(j), p.groups(tasks)
	if err := p.view.Work.Spend((p.spans+len(p.nodes))*len(groups), p.width+8); err != nil {
		return policy.Reservation{}, false, err
	}
	changes, err := p.changes(groups, runtime)
	if err != nil {
		return policy.Reservation{}, false, err
	}
	permission := p.permission(j, tasks, runtime, kept)
	room, next := make([]int, len(groups)), 0
	at, ok := permission.from(p.view.AsOf)
	for tries := 0; ok && tries < maxTries; {
		for ; next < len(changes) && changes[next].at <= at; next++ {
			room[changes[next].group] += changes[next].more
		}
		if covers(room, groups) {
			tries++
			if err := p.view.Work.Spend(p.spans+len(p.nodes)*len(groups)+len(tasks), p.width); err != nil {
				return policy.Reservation{}, false, err
			}
			if nodes := p.place(tasks, groups, at, policy.After(at, runtime)); nodes != nil {
				entry, enters, err := permission.entry(at)
				if err != nil || !enters {
					return policy.Reservation{}, false, err
				}
				if entry > at {
					at, ok = permission.from(entry)
					continue
				}
				one := policy.Reservation{Job: j, Tasks: tasks, Nodes: nodes, From: at, Until: policy.After(at, runtime)}
				err = p.take(&one)
				return one, true, err
			}
		}
		// The next time at which all may have room.
		for begun := false; !begun || !covers(room, groups); begun = true {
			if next == len(changes) {
				return policy.Reservation{}, false, p.view.Work.Exceeded()
			}
			for at = changes[next].at; next < len(changes) && changes[next].at == at; next++ {
				room[changes[next].group] += changes[next].more
			}
		}
		at, ok = permission.from(at)
	}
	return policy.Reservation{}, false, p.view.Work.Exceeded()
}

func covers(room []int, groups []group) bool {
	for i := range groups {
		if room[i] < len(groups[i].tasks) {
			return false
		}
	}
	return true
}

// groups sorts tasks of a job into those that are equal.
func (p *profile) groups(tasks []model.TaskID) []group {
	var groups []group
	at := map[kind]int{}
	for _, t := range tasks {
		k := kindOf(p.view, t)
		i, known := at[k]
		if !known {
			i = len(groups)
			at[k] = i
			groups = append(groups, group{request: p.view.Request(t)})
		}
		groups[i].tasks = append(groups[i].tasks, t)
	}
	return groups
}

// changes lists, in order of time, how the number of tasks of each group for which there is room changes with the time at which they start,
// from now to the end of the window. Of one time, those that make it less come first.
func (p *profile) changes(groups []group, runtime int64) ([]change, error) {
	var list []change
	for g := range groups {
		for i := range p.nodes {
			p.view.Yield(i)
			l := &p.nodes[i]
			// Each span and each begin of a period that ends with one.
			if !l.rises {
				if err := p.view.Work.Spend(2*len(l.at), len(l.at)); err != nil {
					return nil, err
				}
			}
			if p.line.Takes(groups[g].tasks[0], l.node) {
				list = l.changes(list, g, &groups[g], runtime)
			}
		}
	}
	list = slices.DeleteFunc(list, func(c change) bool { return c.at > p.horizon })
	slices.SortFunc(list, func(l, r change) int {
		return cmp.Or(cmp.Compare(l.at, r.at), cmp.Compare(l.more, r.more), cmp.Compare(l.group, r.group))
	})
	return list, nil
}

// changes appends those of a node.
func (l *timeline) changes(list []change, g int, of *group, runtime int64) []change {
	rooms := make([]int, len(l.at))
	for i := range l.at {
		rooms[i] = l.fits(i, of.request, len(of.tasks))
	}
	starts := l.at
	if !l.rises {
		starts = l.starts(runtime)
	}
	before := 0
	for _, at := range starts {
		i, found := slices.BinarySearch(l.at, at)
		if !found {
			i--
		}
		room, until := rooms[i], policy.After(at, runtime)
		for i++; !l.rises && room > 0 && i < len(l.at) && l.at[i] < until; i++ {
			room = min(room, rooms[i])
		}
		if room != before {
			list = append(list, change{at, g, room - before})
		}
		before = room
	}
	return list
}

// starts lists the times at which what is free for a period of such a length changes: the begins of spans, and the times from which on a
// period reaches into the next span.
func (l *timeline) starts(runtime int64) []int64 {
	starts := slices.Clone(l.at)
	for _, at := range l.at[1:] {
		// It reaches into the span if it starts later than this.
		if runtime != policy.Endless && at-runtime >= l.at[0] {
			starts = append(starts, at-runtime+1)
		}
	}
	slices.Sort(starts)
	return slices.Compact(starts)
}

// place returns nodes for tasks that start at a time and run until another one, by first fit in the order of the nodes; nil if not all have
// room.
func (p *profile) place(tasks []model.TaskID, groups []group, at, until int64) []model.NodeID {
	of, placed := make(map[model.TaskID]model.NodeID, len(tasks)), make([]int, len(groups))
	row := resource.NewAccount(p.width)
	for i := range p.nodes {
		p.view.Yield(i)
		l, least := &p.nodes[i], false
		for g := range groups {
			left := groups[g].tasks[placed[g]:]
			if len(left) == 0 || !p.line.Takes(left[0], l.node) {
				continue
			}
			if !least {
				l.least(at, until, row.V)
				least = true
			}
			for len(left) > 0 && resource.Covers(row, groups[g].request) {
				row.Sub(groups[g].request)
				of[left[0]] = l.node
				placed[g]++
				left = left[1:]
			}
		}
	}
	if len(of) < len(tasks) {
		return nil
	}
	nodes := make([]model.NodeID, len(tasks))
	for i, t := range tasks {
		nodes[i] = of[t]
	}
	return nodes
}

// take takes the room of a reservation.
func (p *profile) take(one *policy.Reservation) error {
	on := map[model.NodeID][]model.TaskID{}
	for i, t := range one.Tasks {
		on[one.Nodes[i]] = append(on[one.Nodes[i]], t)
	}
	if err := p.view.Work.Hold(2 * len(on) * (p.width + 1) * 8); err != nil {
		return err
	}
	for i := range p.nodes {
		l := &p.nodes[i]
		spans := len(l.at)
		for _, t := range on[l.node] {
			l.take(one.From, one.Until, p.view.Request(t), 1)
		}
		p.spans += len(l.at) - spans
	}
	for _, at := range []int64{one.From, one.Until} {
		if i, found := slices.BinarySearch(p.times, at); !found && at > p.view.AsOf && at <= p.horizon {
			p.times = slices.Insert(p.times, i, at)
		}
	}
	return nil
}
