package place

import (
	"container/heap"

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
