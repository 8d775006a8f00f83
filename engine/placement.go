package engine

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// PlacementOutcome says whether tasks have room on nodes together. The values are those of the contract's PlacementOutcome.
type PlacementOutcome uint8

// The outcomes of a placement.
const (
	// Placed: Placement.Nodes has a node for every task.
	Placed PlacementOutcome = 1
	// NoPlacement: it is proven that no choice of nodes has room for all tasks.
	NoPlacement PlacementOutcome = 2
	// PlacementUnknown: best fit found no placement, and the search for another one reached its bound.
	PlacementUnknown PlacementOutcome = 3
)

const (
	// placementTrials bounds the search for a placement, in comparisons with one node. It is enough to try everything for six tasks on
	// seven nodes; equal tasks and nodes are tried once, so that the bound often suffices for many more.
	placementTrials = 1 << 20
	// PlacementWork bounds the cost of the search for a placement.
	PlacementWork = 1 << 21
	// placementCells bounds the amounts of all nodes and of all tasks, and the pairs of a kind of task and a node.
	placementCells = 1 << 22
)

// Placement says whether tasks have room on nodes together.
type Placement struct {
	Outcome PlacementOutcome
	// Nodes has the node of each task, in the given order; nil unless all are placed.
	Nodes []model.NodeID
	// Most is the largest number of the tasks for which room was found.
	Most int
}

// Place reports whether tasks have room on the given nodes together, by Fits and HasRoom for each task. Nothing is booked. Tasks that rules
// on other pods concern are placed one after the other, each with the earlier ones on their nodes. Tasks count together to bounds of the
// policy (policy.NodeBounder).
//
// It is exact for equal tasks that no such rule concerns, and if one kind of task alone, or one dimension alone, has no room. Otherwise it
// tries best fit, then every placement up to placementTrials comparisons: it is exact for six tasks on seven nodes with any requests. The
// outcome is PlacementUnknown beyond that, and for clusters beyond placementCells. The error is policy.ErrStopped.
func (m Nodes) Place(tasks []model.TaskID, nodes []model.NodeID) (Placement, error) {
	p := placer{session: m.s, tasks: tasks, nodes: nodes, room: m.s.view.Idle, trials: placementTrials}
	return p.place()
}

func (p *placer) place() (Placement, error) {
	tasks := p.tasks
	if err := p.prepare(); err != nil {
		return Placement{}, err
	}
	if p.kinds == nil && len(tasks) > 0 {
		return Placement{Outcome: PlacementUnknown}, nil
	}
	if p.related() {
		return p.placeRelated()
	}
	most, alone, err := p.bestFit()
	switch {
	case err != nil:
		return Placement{}, err
	case most == len(tasks):
		return Placement{Outcome: Placed, Nodes: p.placed(), Most: most}, nil
	case !alone || p.exceedsTotal():
		return Placement{Outcome: NoPlacement, Most: most}, nil
	}
	if len(tasks)*p.session.view.Dims.Len() > placementCells {
		return Placement{Outcome: PlacementUnknown, Most: most}, nil
	}
	p.start()
	switch {
	case p.search(0, 0, 0):
		return Placement{Outcome: Placed, Nodes: p.placed(), Most: len(tasks)}, nil
	case p.stopped:
		return Placement{}, policy.ErrStopped
	case p.trials >= 0:
		return Placement{Outcome: NoPlacement, Most: most}, nil
	}
	return Placement{Outcome: PlacementUnknown, Most: most}, nil
}

// placer looks for a placement.
type placer struct {
	session *Session
	tasks   []model.TaskID
	nodes   []model.NodeID
	// room sets a row to what a node has left.
	room func(model.NodeID, *resource.Row)
	// kinds of tasks that all rules treat alike, the largest first.
	kinds []taskKind
	// idle is the free room of each node.
	idle []resource.Row
	// at has the node of each task as a position in nodes, -1 for none.
	at []int32
	// trials counts the tests that the search may still make; below 0 it was ended.
	trials  int
	stopped bool
	saved   []resource.Row
	// filling is what the placed tasks use of the policy's bounds.
	filling filling
	// later: room is what nodes have once what is being released is gone. bare: the rules on other pods are left aside.
	later, bare bool
}

// taskKind is a number of tasks with one request that may use the same nodes.
type taskKind struct {
	request resource.Row
	size    float64
	// tasks are positions in the question.
	tasks []int32
	// fits says for each node whether the rules admit the tasks, regardless of room.
	fits []bool
}

// prepare sorts the tasks into kinds and looks at every node. It leaves kinds nil if there are too many.
func (p *placer) prepare() error {
	v := p.session.view
	width := v.Dims.Len()
	if len(p.nodes)*width > placementCells {
		return nil
	}
	p.narrow()
	p.idle, p.filling = resource.NewAccounts(len(p.nodes), width), filling{}
	offered := resource.NewAccount(width)
	for i, n := range p.nodes {
		if v.Stopped(i) {
			return policy.ErrStopped
		}
		p.room(n, &p.idle[i])
		offered.Add(v.Nodes[n].Allocatable)
	}
	p.at = make([]int32, len(p.tasks))
	for i := range p.at {
		p.at[i] = -1
	}
	p.sort(offered)
	if len(p.kinds)*len(p.nodes) > placementCells {
		p.kinds = nil
		return nil
	}
	for k := range p.kinds {
		if v.Stop != nil && v.Stop() {
			return policy.ErrStopped
		}
		kind := &p.kinds[k]
		kind.fits = make([]bool, len(p.nodes))
		for i, n := range p.nodes {
			v.Yield(i)
			kind.fits[i] = p.session.admits(p.tasks[kind.tasks[0]], n, nil)
		}
	}
	return nil
}

// narrow leaves out the nodes that are not in the node set of the tasks, if these are of one kind that no rule on other pods concerns:
// nothing depends on those nodes then. With several kinds their sizes do.
func (p *placer) narrow() {
	v := p.session.view
	if len(p.tasks) == 0 || v.NodeSetOf(p.tasks[0]) == model.AllNodes || !p.bare && v.PodKind(p.tasks[0]) != 0 {
		return
	}
	first := p.session.kindOf(p.tasks[0])
	if slices.ContainsFunc(p.tasks, func(t model.TaskID) bool { return p.session.kindOf(t) != first }) {
		return
	}
	var in []model.NodeID
	for _, n := range p.nodes {
		if v.InSet(first.nodeSet, n) {
			in = append(in, n)
		}
	}
	p.nodes = in
}

// sort sorts the tasks into kinds, the largest first in proportion to what is offered.
func (p *placer) sort(offered resource.Row) {
	v := p.session.view
	of := make(map[kindKey]int)
	for i, t := range p.tasks {
		key := p.session.kindOf(t)
		k, known := of[key]
		if !known {
			k = len(p.kinds)
			of[key] = k
			request := v.Request(t)
			size, _ := resource.DominantShare(request, offered, offered.Positive())
			p.kinds = append(p.kinds, taskKind{request: request, size: size})
		}
		p.kinds[k].tasks = append(p.kinds[k].tasks, int32(i))
	}
	slices.SortStableFunc(p.kinds, func(l, r taskKind) int { return cmp.Compare(r.size, l.size) })
}

// bestFit places kind after kind, each on the nodes with the least remaining room. It returns the number of tasks placed, and whether every
// kind has room without the others.
func (p *placer) bestFit() (most int, alone bool, err error) {
	v := p.session.view
	free := resource.NewTable(len(p.nodes), v.Dims.Len())
	for i := range free {
		free[i].CopyFrom(p.idle[i])
	}
	defer clear(p.filling)
	for k := range p.kinds {
		if v.Stop != nil && v.Stop() {
			return 0, false, policy.ErrStopped
		}
		kind := &p.kinds[k]
		placed := p.fill(kind, free)
		most += placed
		if placed < len(kind.tasks) && !p.hasRoomAlone(kind) {
			return most, false, nil
		}
	}
	return most, true, nil
}

// bound returns what limits tasks of a kind together on the node at a position.
func (p *placer) bound(k *taskKind, i int) bound {
	return p.session.nodeBound(p.tasks[k.tasks[0]], p.nodes[i])
}

// hasRoomAlone reports whether the tasks of a kind have room if no other kind is placed. The room of a node does not depend on the other
// nodes but by a bound, to which equal tasks count alike, so that no choice of nodes has room for more.
func (p *placer) hasRoomAlone(k *taskKind) bool {
	left := resource.NewAccount(p.session.view.Dims.Len())
	room, alone := 0, filling{}
	for i := range p.nodes {
		if !k.fits[i] {
			continue
		}
		left.CopyFrom(p.idle[i])
		b := p.bound(k, i)
		for ; room < len(k.tasks) && resource.Covers(left, k.request) && alone.takes(b, k.request); room++ {
			left.SubWithin(k.request)
			alone.put(b, k.request)
		}
	}
	return room == len(k.tasks)
}

// tightness is a heap of nodes: on top is the one that has least left, among equals the first.
type tightness struct {
	order []int32
	left  []float64
}

func (h *tightness) Len() int { return len(h.order) }

func (h *tightness) Less(i, j int) bool {
	l, r := h.order[i], h.order[j]
	return tighter(h.left[l], l, h.left[r], r)
}

func (h *tightness) Swap(i, j int) { h.order[i], h.order[j] = h.order[j], h.order[i] }

// Push is never called: a heap is made whole.
func (h *tightness) Push(any) {}

// Pop drops the last node.
func (h *tightness) Pop() any {
	h.order = h.order[:len(h.order)-1]
	return nil
}

// tightest is a heap of the nodes with room for a task of a kind: most kinds need few of them, and none is sorted for nothing.
func (p *placer) tightest(k *taskKind, free []resource.Row) *tightness {
	order := make([]int32, 0, len(p.nodes))
	left := make([]float64, len(p.nodes))
	for i := range p.nodes {
		if !k.fits[i] || !resource.Covers(free[i], k.request) {
			continue
		}
		order = append(order, int32(i))
		left[i] = leftOf(free[i], k.request)
	}
	h := &tightness{order, left}
	heap.Init(h)
	return h
}

// fill places as many tasks of a kind as have room and returns how many.
func (p *placer) fill(k *taskKind, free []resource.Row) int {
	next := 0
	for h := p.tightest(k, free); h.Len() > 0 && next < len(k.tasks); heap.Pop(h) {
		i := h.order[0]
		b := p.bound(k, int(i))
		for ; next < len(k.tasks) && resource.Covers(free[i], k.request) && p.filling.takes(b, k.request); next++ {
			free[i].SubWithin(k.request)
			p.filling.put(b, k.request)
			p.at[k.tasks[next]] = i
		}
	}
	return next
}

// exceedsTotal reports whether the tasks ask for more of some dimension than all nodes have left that admit any of them: then there is no
// placement. A node takes less than the tolerance above what it has, and requests below the tolerance are not looked at there.
func (p *placer) exceedsTotal() bool {
	width := p.session.view.Dims.Len()
	asked, left := make([]float64, width), make([]float64, width)
	for k := range p.kinds {
		kind := &p.kinds[k]
		for m := kind.request.AtLeastThreshold(); m != 0; m = m.Rest() {
			d := m.First()
			asked[d] += float64(kind.request.V[d] * float64(len(kind.tasks)))
		}
	}
	for i := range p.nodes {
		if !slices.ContainsFunc(p.kinds, func(k taskKind) bool { return k.fits[i] }) {
			continue
		}
		for d, x := range p.idle[i].V {
			left[d] += max(x, 0) + resource.Threshold
		}
	}
	for d := range asked {
		// Sums are rounded; a part in a million is far more than that.
		if asked[d] > left[d]*(1+1e-6) {
			return true
		}
	}
	return false
}

// start prepares the search: nothing is placed yet.
func (p *placer) start() {
	p.saved = resource.NewTable(len(p.tasks), p.session.view.Dims.Len())
	for i := range p.at {
		p.at[i] = -1
	}
}

// search places the tasks of kinds from position n of kind k on, those of one kind on nodes from position from on: exchanging two of them
// makes no difference. It tries one of several nodes that are alike.
func (p *placer) search(k, n, from int) bool {
	for k < len(p.kinds) && n == len(p.kinds[k].tasks) {
		k, n, from = k+1, 0, 0
	}
	if k == len(p.kinds) {
		return true
	}
	kind := &p.kinds[k]
	saved := &p.saved[kind.tasks[n]]
	for i := from; i < len(p.nodes); i++ {
		if !p.try() {
			return false
		}
		b := p.bound(kind, i)
		if !kind.fits[i] || !resource.Covers(p.idle[i], kind.request) || !p.filling.takes(b, kind.request) || p.tried(from, i) {
			continue
		}
		saved.CopyFrom(p.idle[i])
		p.idle[i].SubWithin(kind.request)
		undo := p.filling.put(b, kind.request)
		p.at[kind.tasks[n]] = int32(i)
		if p.search(k, n+1, i) {
			return true
		}
		p.idle[i].CopyFrom(*saved)
		undo()
		if p.trials < 0 {
			return false
		}
	}
	p.at[kind.tasks[n]] = -1
	return false
}

// try counts a comparison and reports whether the search goes on.
func (p *placer) try() bool {
	p.trials--
	if p.trials >= 0 && p.session.view.Stopped(p.trials) {
		p.stopped, p.trials = true, -1
	}
	return p.trials >= 0
}

// tried reports whether a node at a position between from and i-1 is equivalent to the one at i for all tasks.
func (p *placer) tried(from, i int) bool {
	for j := from; j < i; j++ {
		if !p.try() || resource.Equal(p.idle[j], p.idle[i]) && p.alike(i, j) {
			return true
		}
	}
	return false
}

func (p *placer) alike(i, j int) bool {
	for k := range p.kinds {
		kind := &p.kinds[k]
		if kind.fits[i] != kind.fits[j] || p.bound(kind, i) != p.bound(kind, j) {
			return false
		}
	}
	return true
}

// placed returns the nodes of the tasks.
func (p *placer) placed() []model.NodeID {
	nodes := make([]model.NodeID, len(p.at))
	for i, at := range p.at {
		nodes[i] = p.nodes[at]
	}
	return nodes
}

// tighter reports whether a node comes before another one in the order of best fit.
func tighter(left float64, at int32, otherLeft float64, other int32) bool {
	c := cmp.Compare(left, otherLeft)
	return c < 0 || c == 0 && at < other
}

// leftOf says how many times a request is left of a node, added up over its dimensions.
func leftOf(idle, request resource.Row) float64 {
	left := 0.0
	for m := request.Positive(); m != 0; m = m.Rest() {
		d := m.First()
		left += idle.V[d] / request.V[d]
	}
	return left
}
