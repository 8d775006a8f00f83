package place

import (
	"container/heap"

	"github.com/apportion/apportion/engine"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/resource"
)

// bestFit places kind after kind, each on the nodes with the least remaining room. It returns the number of tasks placed, and whether every
// kind has room without the others.
func (p *Placer) bestFit() (most int, alone bool, err error) {
	v := p.View()
	free := resource.NewTable(len(p.Nodes), v.Dims.Len())
	for i := range free {
		free[i].CopyFrom(p.idle[i])
	}
	defer clear(p.filling)
	for k := range p.Kinds {
		if v.Stop != nil && v.Stop() {
			return 0, false, policy.ErrStopped
		}
		kind := &p.Kinds[k]
		placed := p.fill(kind, free)
		most += placed
		if placed < len(kind.Tasks) && !p.hasRoomAlone(kind) {
			return most, false, nil
		}
	}
	return most, true, nil
}

// bound returns what limits tasks of a kind together on the node at a position.
func (p *Placer) bound(k *TaskKind, i int) Bound {
	return BoundOf(p.Host, p.Tasks[k.Tasks[0]], p.Nodes[i])
}

// hasRoomAlone reports whether the tasks of a kind have room if no other kind is placed. The room of a node does not depend on the other
// nodes but by a bound, to which equal tasks count alike, so that no choice of nodes has room for more.
func (p *Placer) hasRoomAlone(k *TaskKind) bool {
	left := resource.NewAccount(p.View().Dims.Len())
	room, alone := 0, Filling{}
	for i := range p.Nodes {
		if !k.Fits[i] {
			continue
		}
		left.CopyFrom(p.idle[i])
		b := p.bound(k, i)
		for ; room < len(k.Tasks) && resource.Covers(left, k.Request) && alone.Takes(b, k.Request); room++ {
			left.SubWithin(k.Request)
			alone.Put(b, k.Request)
		}
	}
	return room == len(k.Tasks)
}

// tightness is a heap of nodes: on top is the one that has least left, among equals the first.
type tightness struct {
	order []int32
	left  []float64
}

func (h *tightness) Len() int { return len(h.order) }

func (h *tightness) Less(i, j int) bool {
	l, r := h.order[i], h.order[j]
	return Tighter(h.left[l], l, h.left[r], r)
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
func (p *Placer) tightest(k *TaskKind, free []resource.Row) *tightness {
	order := make([]int32, 0, len(p.Nodes))
	left := make([]float64, len(p.Nodes))
	for i := range p.Nodes {
		if !k.Fits[i] || !resource.Covers(free[i], k.Request) {
			continue
		}
		order = append(order, int32(i))
		left[i] = LeftOf(free[i], k.Request)
	}
	h := &tightness{order, left}
	heap.Init(h)
	return h
}

// fill places as many tasks of a kind as have room and returns how many.
func (p *Placer) fill(k *TaskKind, free []resource.Row) int {
	next := 0
	for h := p.tightest(k, free); h.Len() > 0 && next < len(k.Tasks); heap.Pop(h) {
		i := h.order[0]
		b := p.bound(k, int(i))
		for ; next < len(k.Tasks) && resource.Covers(free[i], k.Request) && p.filling.Takes(b, k.Request); next++ {
			free[i].SubWithin(k.Request)
			p.filling.Put(b, k.Request)
			p.At[k.Tasks[next]] = i
		}
	}
	return next
}

// Bound is what limits the tasks of a job on a node together; the zero value limits nothing.
type Bound struct {
	// group is the policy's bound to which they count, nil if there is none.
	group *policy.NodeBound
	// reserved are the reservations of the node, nil if it has none.
	reserved *policy.NodeReservations
	task     model.TaskID
	node     model.NodeID
}

// BoundOf returns what limits tasks like one on a node.
func BoundOf(h engine.Host, t model.TaskID, n model.NodeID) (b Bound) {
	if bounder, ok := h.NodeBounder(); ok {
		b.group = bounder.NodeBound(h.View().QueueOf(t), n)
	}
	if r := h.View().Reservations(); r.Reserved(n) {
		b.reserved, b.task, b.node = r, t, n
	}
	return b
}

// ExceededBy reports whether the bound leaves no room for an amount on the node, or a part that is kept of the node none beside another
// amount.
func (b Bound) ExceededBy(amount, beside resource.Row) bool {
	kept := b.reserved.Against(b.task, b.node, beside)
	return kept != nil && !kept.Whole() || b.group != nil && b.group.Exceeded(b.group.Used, amount) >= 0
}

// Filling has what is used of bounds with the tasks that are to be placed; a bound that it does not have is used as at present.
type Filling map[filled]resource.Row

// filled is a policy's bound, or a node of which room is kept.
type filled struct {
	group *policy.NodeBound
	node  model.NodeID
}

// Takes reports whether bounds leave room for one more request.
func (f Filling) Takes(b Bound, request resource.Row) bool {
	if b.group != nil && b.group.Exceeded(f.used(b.group), request) >= 0 {
		return false
	}
	return b.reserved == nil || b.reserved.Fits(b.task, b.node, f[filled{node: b.node}], nil)
}

func (f Filling) used(b *policy.NodeBound) resource.Row {
	if used, ok := f[filled{b, model.None}]; ok {
		return used
	}
	return b.Used
}

// Put adds a request to what is used of bounds. undo restores what was used before.
func (f Filling) Put(b Bound, request resource.Row) (undo func()) {
	if b.group == nil && b.reserved == nil {
		return func() {}
	}
	undo = func() {}
	if b.group != nil {
		undo = f.add(filled{b.group, model.None}, f.used(b.group), request)
	}
	if b.reserved != nil {
		key, first := filled{node: b.node}, undo
		second := f.add(key, f[key], request)
		undo = func() { second(); first() }
	}
	return undo
}

func (f Filling) add(key filled, before, request resource.Row) (undo func()) {
	after := resource.NewRow(len(request.V))
	if !before.Absent() {
		after.CopyFrom(before)
	}
	after.Add(request)
	f[key] = after
	return func() { f[key] = before }
}
