// Package place finds nodes for tasks: whether given nodes have room for all of them together, by what each node has left, by bounds that
// they share and by rules on other pods. It books nothing, and decides nothing about shares.
package place

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// The search goes from what proves most to what costs most: tasks of one kind, of which best fit is exact; kinds and dimensions that have
// no room alone, which prove that there is no placement; best fit for all kinds, which finds most placements; and last every placement up
// to a bound of trials. Only what was proven is NoPlacement. Between two steps nothing of the session has changed, and idle, filling and At
// are those of nothing placed.

// Outcome says whether tasks have room on nodes together. The values are those of the contract's PlacementOutcome.
type Outcome uint8

// The outcomes of a placement.
const (
	// Placed: Placement.Nodes has a node for every task.
	Placed Outcome = 1
	// NoPlacement: it is proven that no choice of nodes has room for all tasks.
	NoPlacement Outcome = 2
	// Unknown: best fit found no placement, and the search for another one reached its bound.
	Unknown Outcome = 3
)

const (
	// Trials bounds the search for a placement, in comparisons with one node. It is enough to try everything for six tasks on
	// seven nodes; equal tasks and nodes are tried once, so that the bound often suffices for many more.
	Trials = 1 << 20
	// Work bounds the cost of the search for a placement.
	Work = 1 << 21
	// Cells bounds the amounts of all nodes and of all tasks, and the pairs of a kind of task and a node.
	Cells = 1 << 22
)

// Placement says whether tasks have room on nodes together.
type Placement struct {
	Outcome Outcome
	// Nodes has the node of each task, in the given order; nil unless all are placed.
	Nodes []model.NodeID
	// Most is the largest number of the tasks for which room was found.
	Most int
}

// Tasks reports whether tasks have room on the given nodes together, by Fits and HasRoom for each task. Nothing is booked. Tasks that rules
// on other pods concern are placed one after the other, each with the earlier ones on their nodes. Tasks count together to bounds of the
// policy (policy.NodeBounder).
//
// It is exact for equal tasks that no such rule concerns, and if one kind of task alone, or one dimension alone, has no room. Otherwise it
// tries best fit, then every placement up to Trials comparisons: it is exact for six tasks on seven nodes with any requests. The
// outcome is Unknown beyond that, and for clusters beyond Cells. The error is policy.ErrStopped.
func Tasks(s *engine.Session, tasks []model.TaskID, nodes []model.NodeID) (Placement, error) {
	p := Placer{Host: s.Host(), Tasks: tasks, Nodes: nodes, Room: s.View().Idle, Trials: Trials}
	return p.Place()
}

// Place looks for a placement.
func (p *Placer) Place() (Placement, error) {
	tasks := p.Tasks
	if err := p.prepare(); err != nil {
		return Placement{}, err
	}
	if p.Kinds == nil && len(tasks) > 0 {
		return Placement{Outcome: Unknown}, nil
	}
	if p.Related() {
		return p.placeRelated()
	}
	most, alone, err := p.bestFit()
	switch {
	case err != nil:
		return Placement{}, err
	case most == len(tasks):
		return Placement{Outcome: Placed, Nodes: p.Placed(), Most: most}, nil
	case !alone || p.exceedsTotal():
		return Placement{Outcome: NoPlacement, Most: most}, nil
	}
	if len(tasks)*p.View().Dims.Len() > Cells {
		return Placement{Outcome: Unknown, Most: most}, nil
	}
	p.start()
	switch {
	case p.search(0, 0, 0):
		return Placement{Outcome: Placed, Nodes: p.Placed(), Most: len(tasks)}, nil
	case p.stopped:
		return Placement{}, policy.ErrStopped
	case p.Trials >= 0:
		return Placement{Outcome: NoPlacement, Most: most}, nil
	}
	return Placement{Outcome: Unknown, Most: most}, nil
}

// Placer looks for a placement.
type Placer struct {
	engine.Host
	Tasks []model.TaskID
	Nodes []model.NodeID
	// Room sets a row to what a node has left.
	Room func(model.NodeID, *resource.Row)
	// Kinds of tasks that all rules treat alike, the largest first.
	Kinds []TaskKind
	// idle is the free room of each node.
	idle []resource.Row
	// At has the node of each task as a position in nodes, -1 for none.
	At []int32
	// Trials counts the tests that the search may still make; below 0 it was ended.
	Trials  int
	stopped bool
	saved   []resource.Row
	// filling is what the placed tasks use of the policy's bounds.
	filling Filling
	// Later: room is what nodes have once what is being released is gone. Bare: the rules on other pods are left aside.
	Later, Bare bool
}

// TaskKind is a number of tasks with one request that may use the same nodes.
type TaskKind struct {
	Request resource.Row
	size    float64
	// Tasks are positions in the question.
	Tasks []int32
	// Fits says for each node whether the rules admit the tasks, regardless of room.
	Fits []bool
}

// prepare sorts the tasks into kinds and looks at every node. It leaves kinds nil if there are too many.
func (p *Placer) prepare() error {
	v := p.View()
	width := v.Dims.Len()
	if len(p.Nodes)*width > Cells {
		return nil
	}
	p.narrow()
	p.idle, p.filling = resource.NewAccounts(len(p.Nodes), width), Filling{}
	offered := resource.NewAccount(width)
	for i, n := range p.Nodes {
		if v.Stopped(i) {
			return policy.ErrStopped
		}
		p.Room(n, &p.idle[i])
		offered.Add(v.Nodes[n].Allocatable)
	}
	p.At = make([]int32, len(p.Tasks))
	for i := range p.At {
		p.At[i] = -1
	}
	p.Sort(offered)
	if len(p.Kinds)*len(p.Nodes) > Cells {
		p.Kinds = nil
		return nil
	}
	for k := range p.Kinds {
		if v.Stop != nil && v.Stop() {
			return policy.ErrStopped
		}
		kind := &p.Kinds[k]
		kind.Fits = make([]bool, len(p.Nodes))
		for i, n := range p.Nodes {
			v.Yield(i)
			kind.Fits[i] = p.Admits(p.Tasks[kind.Tasks[0]], n, nil)
		}
	}
	return nil
}

// narrow leaves out the nodes that are not in the node set of the tasks, if these are of one kind that no rule on other pods concerns:
// nothing depends on those nodes then. With several kinds their sizes do.
func (p *Placer) narrow() {
	v := p.View()
	if len(p.Tasks) == 0 || v.NodeSetOf(p.Tasks[0]) == model.AllNodes || !p.Bare && v.PodKind(p.Tasks[0]) != 0 {
		return
	}
	first := p.KindOf(p.Tasks[0])
	if slices.ContainsFunc(p.Tasks, func(t model.TaskID) bool { return p.KindOf(t) != first }) {
		return
	}
	var in []model.NodeID
	for _, n := range p.Nodes {
		if v.InSet(first.NodeSet, n) {
			in = append(in, n)
		}
	}
	p.Nodes = in
}

// Sort sorts the tasks into kinds, the largest first in proportion to what is offered.
func (p *Placer) Sort(offered resource.Row) {
	v := p.View()
	of := make(map[engine.Kind]int)
	for i, t := range p.Tasks {
		key := p.KindOf(t)
		k, known := of[key]
		if !known {
			k = len(p.Kinds)
			of[key] = k
			request := v.Request(t)
			size, _ := resource.DominantShare(request, offered, offered.Positive())
			p.Kinds = append(p.Kinds, TaskKind{Request: request, size: size})
		}
		p.Kinds[k].Tasks = append(p.Kinds[k].Tasks, int32(i))
	}
	slices.SortStableFunc(p.Kinds, func(l, r TaskKind) int { return cmp.Compare(r.size, l.size) })
}

// exceedsTotal reports whether the tasks ask for more of some dimension than all nodes have left that admit any of them: then there is no
// placement. A node takes less than the tolerance above what it has, and requests below the tolerance are not looked at there.
func (p *Placer) exceedsTotal() bool {
	width := p.View().Dims.Len()
	asked, left := make([]float64, width), make([]float64, width)
	for k := range p.Kinds {
		kind := &p.Kinds[k]
		for m := kind.Request.AtLeastThreshold(); m != 0; m = m.Rest() {
			d := m.First()
			asked[d] += float64(kind.Request.V[d] * float64(len(kind.Tasks)))
		}
	}
	for i := range p.Nodes {
		if !slices.ContainsFunc(p.Kinds, func(k TaskKind) bool { return k.Fits[i] }) {
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
func (p *Placer) start() {
	p.saved = resource.NewTable(len(p.Tasks), p.View().Dims.Len())
	for i := range p.At {
		p.At[i] = -1
	}
}

// search places the tasks of kinds from position n of kind k on, those of one kind on nodes from position from on: exchanging two of them
// makes no difference. It tries one of several nodes that are alike.
func (p *Placer) search(k, n, from int) bool {
	for k < len(p.Kinds) && n == len(p.Kinds[k].Tasks) {
		k, n, from = k+1, 0, 0
	}
	if k == len(p.Kinds) {
		return true
	}
	kind := &p.Kinds[k]
	saved := &p.saved[kind.Tasks[n]]
	for i := from; i < len(p.Nodes); i++ {
		if !p.try() {
			return false
		}
		b := p.bound(kind, i)
		if !kind.Fits[i] || !resource.Covers(p.idle[i], kind.Request) || !p.filling.Takes(b, kind.Request) || p.tried(from, i) {
			continue
		}
		saved.CopyFrom(p.idle[i])
		p.idle[i].SubWithin(kind.Request)
		undo := p.filling.Put(b, kind.Request)
		p.At[kind.Tasks[n]] = int32(i)
		if p.search(k, n+1, i) {
			return true
		}
		p.idle[i].CopyFrom(*saved)
		undo()
		if p.Trials < 0 {
			return false
		}
	}
	p.At[kind.Tasks[n]] = -1
	return false
}

// try counts a comparison and reports whether the search goes on.
func (p *Placer) try() bool {
	p.Trials--
	if p.Trials >= 0 && p.View().Stopped(p.Trials) {
		p.stopped, p.Trials = true, -1
	}
	return p.Trials >= 0
}

// tried reports whether a node at a position between from and i-1 is equivalent to the one at i for all tasks.
func (p *Placer) tried(from, i int) bool {
	for j := from; j < i; j++ {
		if !p.try() || resource.Equal(p.idle[j], p.idle[i]) && p.alike(i, j) {
			return true
		}
	}
	return false
}

func (p *Placer) alike(i, j int) bool {
	for k := range p.Kinds {
		kind := &p.Kinds[k]
		if kind.Fits[i] != kind.Fits[j] || p.bound(kind, i) != p.bound(kind, j) {
			return false
		}
	}
	return true
}

// Placed returns the nodes of the tasks.
func (p *Placer) Placed() []model.NodeID {
	nodes := make([]model.NodeID, len(p.At))
	for i, at := range p.At {
		nodes[i] = p.Nodes[at]
	}
	return nodes
}

// Tighter reports whether a node comes before another one in the order of best fit.
func Tighter(left float64, at int32, otherLeft float64, other int32) bool {
	c := cmp.Compare(left, otherLeft)
	return c < 0 || c == 0 && at < other
}

// LeftOf says how many times a request is left of a node, added up over its dimensions.
func LeftOf(idle, request resource.Row) float64 {
	left := 0.0
	for m := request.Positive(); m != 0; m = m.Rest() {
		d := m.First()
		left += idle.V[d] / request.V[d]
	}
	return left
}
