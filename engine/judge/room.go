package judge

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/place"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// leastOrders and maxOrders bound the requests for which the nodes are kept in order, the larger number for few nodes. Tasks with other
// requests are placed by place.Tasks.
const (
	leastOrders = 64
	maxOrders   = 128
)

// ordersOf returns for how many requests so many nodes are kept in order.
func ordersOf(nodes int) int { return max(leastOrders, min(maxOrders, place.Cells/max(nodes, 1))) }

// OrderBytes returns about what explanations of many jobs take at most to keep so many nodes in the orders of so many requests, now and
// later.
func OrderBytes(nodes, requests int64) int64 {
	const perNode = 4 + 8
	return 2 * perNode * nodes * min(requests, int64(ordersOf(int(nodes))))
}

// freeNodes is what the nodes have left before anything is tried, and for each request the order in which best fit takes them. Placing a
// few tasks then looks at a few nodes: those that it takes, and those that bookings have changed since.
type freeNodes struct {
	session engine.Host
	nodes   []model.NodeID
	// room sets a row to what a node has left.
	room func(model.NodeID, *resource.Row)
	// position of each node in nodes.
	position []int32
	idle     []resource.Row
	offered  resource.Row
	orders   map[int32]*nodeOrder
	// changed lists the nodes whose rest has changed, with the new rest; marks holds for each node its position in changed, plus one.
	changed []changedNode
	marks   []int32
	// later: what nodes have left includes what is being released. bucketsOf holds in how many buckets the nodes are, by kind of pod.
	later     bool
	bucketsOf map[int32]int
}

type changedNode struct {
	at   int32
	left float64
	idle resource.Row
}

// nodeOrder lists the nodes that have room for one request, the one that has least left first, among equals the first.
type nodeOrder struct {
	order []int32
	left  []float64
}

// newFreeNodes returns nil if placing tasks on these nodes goes beyond Cells.
func newFreeNodes(h engine.Host, nodes []model.NodeID, room func(model.NodeID, *resource.Row)) (*freeNodes, error) {
	v := h.View()
	width := v.Dims.Len()
	if len(nodes)*width > place.Cells {
		return nil, nil //nolint:nilnil // There is no such index, which is no error.
	}
	f := &freeNodes{
		session: h, nodes: nodes, room: room, position: make([]int32, len(v.Nodes)), idle: resource.NewAccounts(len(nodes), width),
		offered: resource.NewAccount(width), orders: make(map[int32]*nodeOrder), marks: make([]int32, len(nodes)),
		bucketsOf: make(map[int32]int),
	}
	for i, n := range nodes {
		if v.Stopped(i) {
			return nil, policy.ErrStopped
		}
		f.position[n] = int32(i)
		room(n, &f.idle[i])
		f.offered.Add(v.Nodes[n].Allocatable)
	}
	return f, nil
}

// place places tasks on all nodes, later also where room is being released. Nothing has changed since the judge was made but what is used
// of the booked nodes.
func (g *Judge) place(tasks []model.TaskID, later bool) (place.Placement, error) {
	// One job asks too few times for an index.
	if !g.Once {
		free, err := g.index(later)
		if err != nil {
			return place.Placement{}, err
		}
		if free != nil {
			placement, known, err := free.place(tasks, g.Booked)
			if known || err != nil {
				return placement, err
			}
		}
	}
	p := place.Placer{Host: g.Host, Tasks: tasks, Nodes: g.View().NodeOrder, Room: g.left(later), Trials: place.Trials, Later: later}
	return p.Place()
}

// left returns what sets a row to what a node has left, now or later.
func (g *Judge) left(later bool) func(model.NodeID, *resource.Row) {
	if later {
		return g.Future
	}
	return g.View().Idle
}

// index returns what the nodes have left, now or later, without what was booked; nil if there is no index.
func (g *Judge) index(later bool) (*freeNodes, error) {
	free := &g.free[0]
	if later {
		free = &g.free[1]
	}
	if *free != nil || len(g.Booked) > 0 {
		return *free, nil
	}
	made, err := newFreeNodes(g.Host, g.View().NodeOrder, g.left(later))
	if made != nil {
		made.later = later
	}
	*free = made
	return made, err
}

// LookAhead finds what the nodes will have left once what is being released is gone, before anything is booked.
func (g *Judge) LookAhead() error {
	if len(g.beingReleased()) == 0 {
		return nil
	}
	_, err := g.index(true)
	return err
}

// Future sets row to what a node will have left once what is being released is gone.
func (g *Judge) Future(n model.NodeID, row *resource.Row) {
	g.View().Idle(n, row)
	if more := g.beingReleased()[n]; more != nil {
		row.Add(*more)
	}
}

// beingReleased sums by node what is being released and not promised to tasks that wait for it.
func (g *Judge) beingReleased() map[model.NodeID]*resource.Row {
	if g.released == nil {
		g.released = g.Released()
		for _, n := range g.View().NodeOrder {
			if len(g.released) > 0 && g.released[n] != nil {
				g.releasing = append(g.releasing, n)
			}
		}
	}
	return g.released
}

// AfterRelease returns which tasks may be on their nodes only after tasks that are being released are gone: for their room, or for a rule
// on other pods. gone are tasks that are evicted.
func AfterRelease(h engine.Host, tasks []model.TaskID, nodes []model.NodeID, gone []model.TaskID) []bool {
	after := afterRoom(h, tasks, nodes, gone)
	for i, n := range nodes {
		after[i] = after[i] || keptByReleased(h, tasks[i], n)
	}
	return after
}

// afterRoom is AfterRelease without rules on other pods.
func afterRoom(h engine.Host, tasks []model.TaskID, nodes []model.NodeID, gone []model.TaskID) []bool {
	after := make([]bool, len(tasks))
	rows := make(map[model.NodeID]*resource.Row)
	for i, n := range nodes {
		row := rows[n]
		if row == nil {
			made := resource.NewAccount(h.View().Dims.Len())
			h.View().Idle(n, &made)
			for _, t := range gone {
				if h.View().NodeOf(t) == n {
					made.Add(h.View().Request(t))
				}
			}
			row, rows[n] = &made, &made
		}
		request := h.View().Request(tasks[i])
		after[i] = !resource.Covers(*row, request)
		row.SubWithin(request)
	}
	return after
}

// place returns what place.Tasks does if best fit finds room for all tasks, or if a kind has no room without the others: what a node
// takes of one kind does not depend on the other nodes, so that best fit places as many as there is room for. known is false for all else.
func (f *freeNodes) place(tasks []model.TaskID, booked []model.NodeID) (_ place.Placement, known bool, _ error) {
	p := place.Placer{Host: f.session, Tasks: tasks, Nodes: f.nodes, At: make([]int32, len(tasks))}
	p.Sort(f.offered)
	if slices.ContainsFunc(tasks, func(t model.TaskID) bool { return f.session.Bounded(f.session.View().QueueOf(t)) }) {
		return place.Placement{}, false, nil
	}
	if len(p.Kinds)*len(f.nodes) > place.Cells {
		return place.Placement{}, false, nil
	}
	if p.Related() {
		return f.placeRelated(&p, booked)
	}
	defer f.forget()
	f.book(booked)
	most := 0
	for k := range p.Kinds {
		kind := &p.Kinds[k]
		placed, done, err := f.fill(&p, kind)
		if err != nil || !done {
			return place.Placement{}, false, err
		}
		if most += placed; placed == len(kind.Tasks) {
			continue
		}
		if len(p.Kinds) > 1 {
			// Has the kind room without the others?
			f.forget()
			f.book(booked)
			if placed, done, err = f.fill(&p, kind); err != nil {
				return place.Placement{}, false, err
			}
		}
		return place.Placement{Outcome: place.NoPlacement, Most: most}, done && placed < len(kind.Tasks), nil
	}
	return place.Placement{Outcome: place.Placed, Nodes: p.Placed(), Most: most}, true, nil
}

// book records the rest of the nodes on which something was booked.
func (f *freeNodes) book(booked []model.NodeID) {
	for _, n := range booked {
		if i := f.position[n]; f.marks[i] == 0 {
			f.room(n, f.change(i))
		}
	}
}

// change notes that a node has something else left, and returns the row for that.
func (f *freeNodes) change(i int32) *resource.Row {
	f.changed = append(f.changed, changedNode{at: i, idle: resource.NewAccount(f.session.View().Dims.Len())})
	f.marks[i] = int32(len(f.changed))
	return &f.changed[len(f.changed)-1].idle
}

// forget takes back all changes.
func (f *freeNodes) forget() {
	for i := range f.changed {
		f.marks[f.changed[i].at] = 0
	}
	f.changed = f.changed[:0]
}

// fill places as many tasks of a kind as have room, as Placer.fill does, and returns how many. This is skipped if the nodes have no order.
func (f *freeNodes) fill(p *place.Placer, k *place.TaskKind) (placed int, done bool, _ error) {
	first := p.Tasks[k.Tasks[0]]
	order, err := f.order(f.session.View().Tasks.At(first).Request, k.Request)
	if order == nil || err != nil {
		return 0, false, err
	}
	changed := f.tightest(k.Request)
	for i := 0; placed < len(k.Tasks) && (i < len(order.order) || len(changed) > 0); {
		if f.session.View().Stopped(i) {
			return 0, false, policy.ErrStopped
		}
		var at int32
		if c := changed; len(c) > 0 && (i == len(order.order) || place.Tighter(c[0].left, c[0].at, order.left[i], order.order[i])) {
			at, changed = c[0].at, c[1:]
		} else {
			at = order.order[i]
			if i++; f.marks[at] != 0 {
				continue
			}
		}
		if f.session.Admits(first, f.nodes[at], nil) {
			placed = f.take(p, k, at, placed)
		}
	}
	return placed, true, nil
}

// take places the tasks of a kind from a position on a node, as many as have room, and returns the next position.
func (f *freeNodes) take(p *place.Placer, k *place.TaskKind, at int32, next int) int {
	if f.marks[at] == 0 {
		f.change(at).CopyFrom(f.idle[at])
	}
	idle := &f.changed[f.marks[at]-1].idle
	for ; next < len(k.Tasks) && resource.Covers(*idle, k.Request); next++ {
		idle.SubWithin(k.Request)
		p.At[k.Tasks[next]] = at
	}
	return next
}

// tightest lists the changed nodes that have room for a request, in order.
func (f *freeNodes) tightest(request resource.Row) []changedNode {
	var list []changedNode
	for _, c := range f.changed {
		if resource.Covers(c.idle, request) {
			c.left = place.LeftOf(c.idle, request)
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(l, r changedNode) int { return cmp.Or(cmp.Compare(l.left, r.left), cmp.Compare(l.at, r.at)) })
	return list
}

// order returns the order of the nodes for a request, or nil if enough others are kept.
func (f *freeNodes) order(id int32, request resource.Row) (*nodeOrder, error) {
	if o := f.orders[id]; o != nil || len(f.orders) >= ordersOf(len(f.nodes)) {
		return o, nil
	}
	o := &nodeOrder{}
	left := make([]float64, len(f.nodes))
	for i := range f.nodes {
		if f.session.View().Stopped(i) {
			return nil, policy.ErrStopped
		}
		if resource.Covers(f.idle[i], request) {
			left[i] = place.LeftOf(f.idle[i], request)
			o.order = append(o.order, int32(i))
		}
	}
	slices.SortFunc(o.order, func(l, r int32) int { return cmp.Or(cmp.Compare(left[l], left[r]), cmp.Compare(l, r)) })
	o.left = make([]float64, len(o.order))
	for k, i := range o.order {
		o.left[k] = left[i]
	}
	f.orders[id] = o
	return o, nil
}
