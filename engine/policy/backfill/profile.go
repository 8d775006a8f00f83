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
		if kept, tasks := len(v.Nodes[n].Reservations()), len(ends[n]); kept > 0 {
			if err := v.Work.Spend((tasks+2*kept+1)*(tasks+kept), p.width); err != nil {
				return nil, err
			}
		}
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

// end is a task on a node with the time at which it is likely to end, and the one by which it is known to have ended, which differ for jobs
// that have run longer than expected.
type end struct {
	at, latest int64
	task       model.TaskID
}

// ends lists for each node the tasks on it that end within the window, and as ending now those that are being released.
func (p *profile) ends(resolution int64) [][]end {
	v := p.view
	ends := make([][]end, len(v.Nodes))
	passed := 0
	for _, j := range v.JobOrder {
		job := v.Jobs.At(j)
		at, latest := roundedUp(v.LikelyEnd(j), resolution), roundedUp(v.EndOf(j), resolution)
		for t := job.FirstTask; t < job.EndTask; t++ {
			v.Yield(passed)
			passed++
			n, status := v.NodeOf(t), v.Status(t)
			switch {
			case n == model.None:
			case status == model.Releasing:
				ends[n] = append(ends[n], end{v.AsOf, v.AsOf, t})
			case status.Stays():
				ends[n] = append(ends[n], end{at, latest, t})
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
	p.reserve(&l, tasks)
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

// reserve takes what the reservations of the snapshot keep of a node with some tasks: all that there is, or parts beyond what the tasks of
// their holders use as long as they run. While a part is kept, what has run longer than expected runs on, as in policy.NodeReservations.
func (p *profile) reserve(l *timeline, tasks []end) {
	now, partly := p.view.AsOf, false
	list := p.view.Nodes[l.node].Reservations()
	for i := range list {
		one := &list[i]
		if one.Over(now) {
			continue
		}
		from, until := max(one.From, now), policy.Endless
		if one.Until != 0 {
			until = one.Until
		}
		l.rises = l.rises && from == now
		if one.Whole() {
			// Twice what the node offers is more than it has free at any time, whatever ends meanwhile.
			l.take(from, until, p.view.Nodes[l.node].Allocatable, 2)
			continue
		}
		partly = true
		l.split(from)
		if until != policy.Endless {
			l.split(until)
		}
	}
	for span := 0; partly && span < len(l.at); span++ {
		p.reserveParts(l, span, list, tasks)
	}
}

// reserveParts takes from a span what reservations keep of a part of the node.
func (p *profile) reserveParts(l *timeline, span int, list []model.Reservation, tasks []end) {
	at := l.at[span]
	var holders []model.JobID
	var kept []resource.Row
	for i := range list {
		one := &list[i]
		if !one.KeepsPart(at) {
			continue
		}
		holder := model.JobID(model.None)
		if j, known := p.view.Job(one.Holder); known && one.Holder != "" {
			holder = j
		}
		k := slices.Index(holders, holder)
		if k < 0 {
			k = len(holders)
			holders, kept = append(holders, holder), append(kept, resource.NewRow(p.width))
		}
		kept[k].Add(one.Request)
	}
	if len(holders) == 0 {
		return
	}
	for _, e := range tasks {
		ended := e.at <= at && e.at <= p.horizon
		if ended && e.latest <= at {
			continue
		}
		if ended {
			l.add(span, p.view.Request(e.task), -1)
		}
		if k := slices.Index(holders, p.view.Tasks.At(e.task).Job); k >= 0 {
			kept[k].Sub(p.view.Request(e.task))
		}
	}
	for _, row := range kept {
		row.FloorAtZero()
		l.add(span, row, -1)
	}
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
