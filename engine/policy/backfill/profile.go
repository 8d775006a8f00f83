package backfill

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// profile is what the nodes have free from now on, as running jobs end and room is kept.
type profile struct {
	view  *policy.View
	line  policy.Line
	width int
	// horizon is the last time at which a job may start.
	horizon int64
	// nodes are in the order of the view. spans counts their spans.
	nodes []timeline
	spans int
	// times are the begins of spans within the window, but now, in order.
	times []int64
}

// timeline is what a node has free, span by span.
type timeline struct {
	node model.NodeID
	// at has the begins of the spans, the first of which is now, and free the amounts of each span, one after the other. The last span does
	// not end.
	at   []int64
	free []float64
	// rises is true while no span has less of anything than the one before it.
	rises bool
}

// newProfile returns the profile of now; nil if no node is known.
func newProfile(v *policy.View, l policy.Line, settings Plugin) (*profile, error) {
	if len(v.NodeOrder) == 0 {
		return nil, nil //nolint:nilnil // Without nodes nothing is kept, which is no error.
	}
	p := &profile{view: v, line: l, width: v.Dims.Len(), horizon: v.After(settings.Window)}
	if err := v.Work.Spend(v.Tasks.Len()+len(v.NodeOrder), p.width+1); err != nil {
		return nil, err
	}
	if err := v.Work.Hold((v.Tasks.Len() + len(v.NodeOrder)) * (p.width + 1) * 8); err != nil {
		return nil, err
	}
	p.nodes = make([]timeline, len(v.NodeOrder))
	ends := p.ends(settings.Resolution)
	for i, n := range v.NodeOrder {
		v.Yield(i)
		p.nodes[i] = p.timeline(n, ends[n])
		p.spans += len(p.nodes[i].at)
		for _, at := range p.nodes[i].at[1:] {
			if at <= p.horizon {
				p.times = append(p.times, at)
			}
		}
	}
	slices.Sort(p.times)
	p.times = slices.Compact(p.times)
	return p, nil
}

// end is a task on a node with the time at which it is expected to end.
type end struct {
	at   int64
	task model.TaskID
}

// ends lists for each node the tasks on it that end within the window, and as ending now those that are being released.
func (p *profile) ends(resolution int64) [][]end {
	v := p.view
	ends := make([][]end, len(v.Nodes))
	passed := 0
	for _, j := range v.JobOrder {
		job := v.Jobs.At(j)
		at := roundedUp(v.LikelyEnd(j), resolution)
		for t := job.FirstTask; t < job.EndTask; t++ {
			v.Yield(passed)
			passed++
			n, status := v.NodeOf(t), v.Status(t)
			switch {
			case n == model.None:
			case status == model.Releasing:
				ends[n] = append(ends[n], end{v.AsOf, t})
			case status == model.Pipelined || status.Occupies():
				ends[n] = append(ends[n], end{at, t})
			}
		}
	}
	return ends
}

func roundedUp(at, resolution int64) int64 {
	if rest := at % max(resolution, 1); at < policy.Endless && rest > 0 && at < policy.Endless-resolution {
		return at + resolution - rest
	}
	return at
}

// timeline returns that of a node with the tasks on it.
func (p *profile) timeline(n model.NodeID, tasks []end) timeline {
	node := &p.view.Nodes[n]
	l := timeline{node: n, at: []int64{p.view.AsOf}, free: make([]float64, p.width), rises: true}
	offered := resource.NewAccount(p.width)
	offered.Add(node.Allocatable)
	offered.Sub(node.UsedByOthers)
	copy(l.free, offered.V)
	slices.SortStableFunc(tasks, func(l, r end) int { return cmp.Compare(l.at, r.at) })
	for _, e := range tasks {
		if e.at > p.view.AsOf {
			l.add(0, p.view.Request(e.task), -1)
		}
	}
	for _, e := range tasks {
		if e.at > p.view.AsOf && e.at <= p.horizon {
			l.add(l.split(e.at), p.view.Request(e.task), 1)
		}
	}
	list := node.Reservations()
	for i := range list {
		if one := &list[i]; !one.Over(p.view.AsOf) {
			l.reserve(p.view, one)
		}
	}
	return l
}

// add adds a request so many times to a span.
func (l *timeline) add(span int, request resource.Row, times float64) {
	width := len(request.V)
	for m := request.Has; m != 0; m = m.Rest() {
		d := m.First()
		l.free[span*width+d] += float64(times * request.V[d])
	}
}

// split returns the span that begins at a time, which is now or later.
func (l *timeline) split(at int64) int {
	i, found := slices.BinarySearch(l.at, at)
	if found {
		return i
	}
	width := len(l.free) / len(l.at)
	l.at = slices.Insert(l.at, i, at)
	l.free = slices.Insert(l.free, i*width, l.free[(i-1)*width:i*width]...)
	return i
}

// take takes a request so many times from a period.
func (l *timeline) take(from, until int64, request resource.Row, times float64) {
	begin, finish := l.split(from), len(l.at)
	if until != policy.Endless {
		finish = l.split(until)
	}
	for i := begin; i < finish; i++ {
		l.add(i, request, -times)
	}
	l.rises = l.rises && begin == 0
}

// reserve takes what a reservation of the snapshot keeps: all that there is, or a part beyond what its holder uses.
func (l *timeline) reserve(v *policy.View, one *model.Reservation) {
	from, until := max(one.From, v.AsOf), policy.Endless
	if one.Until != 0 {
		until = one.Until
	}
	if one.Whole() {
		// Twice what the node offers is more than it has free at any time, whatever ends meanwhile.
		l.take(from, until, v.Nodes[l.node].Allocatable, 2)
		return
	}
	rest := resource.NewRow(len(one.Request.V))
	rest.Add(one.Request)
	if j, known := v.Job(one.Holder); known && one.Holder != "" {
		job := v.Jobs.At(j)
		for t := job.FirstTask; t < job.EndTask; t++ {
			if v.NodeOf(t) == l.node && v.Status(t).Occupies() {
				rest.SubWithin(v.Request(t))
			}
		}
	}
	rest.FloorAtZero()
	l.take(from, until, rest, 1)
}

// fits returns how many of up to most equal tasks have room in a span together.
func (l *timeline) fits(span int, request resource.Row, most int) int {
	width := len(request.V)
	for m := request.Has; m != 0; m = m.Rest() {
		d := m.First()
		free, asks := l.free[span*width+d]+resource.Threshold, request.V[d]
		if asks >= free {
			return 0
		}
		for most > 0 && float64(asks*float64(most)) >= free {
			most = min(most-1, int(free/asks))
		}
	}
	return most
}

// least sets row to the least that is free from a time on for as long as a job runs.
func (l *timeline) least(from, until int64, row []float64) {
	i, found := slices.BinarySearch(l.at, from)
	if !found {
		i--
	}
	width := len(row)
	copy(row, l.free[i*width:])
	for i++; i < len(l.at) && l.at[i] < until; i++ {
		for d := range row {
			row[d] = min(row[d], l.free[i*width+d])
		}
	}
}
