package fair

import (
	"slices"

	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/resource"
)

// clearNear is clear for one of many nodes: it looks at the candidates on the node and on none that hold some of all dimensions of a mask,
// but at no others.
func (t *trial) clearNear(n model.NodeID, amount []int64, positive, of resource.Mask) bool {
	if !t.near.known {
		t.sortNear()
	}
	short := t.short(n, amount, positive)
	if t.brief && t.hopeless(n, amount, short) {
		return false
	}
	here, elsewhere := t.near.list[t.near.end[n]:t.near.end[n+1]], t.near.elsewhere
	for short != 0 && len(here)+len(elsewhere) > 0 && !t.halted() {
		list := &here
		if len(here) == 0 || len(elsewhere) > 0 && elsewhere[0] < here[0] {
			list = &elsewhere
		}
		i := int((*list)[0])
		*list = (*list)[1:]
		if of&^t.s.requestOf(t.claim.Candidates[i]).positive == 0 && t.consider(i, short) {
			short = t.short(n, amount, positive)
		}
	}
	return short == 0
}

// hopeless reports whether an amount has no room on a node even without all candidates there. Without reasons, evicting them and putting
// them back would change nothing.
func (t *trial) hopeless(n model.NodeID, amount []int64, short resource.Mask) bool {
	room := t.s.roomOf(t.near.room, n)
	for m := short; m != 0; m = m.Rest() {
		if d := m.First(); t.leftOn(n, d)+room[d] < amount[d] {
			return true
		}
	}
	return false
}

// near lists the positions of candidates by node, in order. Only plans on any nodes need it.
type near struct {
	known bool
	// list[end[n]:end[n+1]] are those on node n, elsewhere those on no node.
	list, end, elsewhere []int32
	// room is what those on each node hold together, those that are taken included; set only for brief plans.
	room []int64
}

// sortNear lists the candidates by node. Those that can never be victims are on no list: looking at them changes nothing.
func (t *trial) sortNear() {
	c, v := &t.near, t.s.v
	c.known, c.elsewhere = true, c.elsewhere[:0]
	if c.end == nil {
		c.end, c.room = make([]int32, len(v.Nodes)+2), make([]int64, len(v.Nodes)*t.s.width)
	}
	clear(c.end)
	clear(c.room)
	// The two places after that of a node: once the list is filled, each end has moved to where the next node begins.
	for i, task := range t.claim.Candidates {
		if n := v.NodeOf(task); n != model.None && !t.states[i].spared {
			c.end[n+2]++
		}
	}
	for n := range len(c.end) - 1 {
		c.end[n+1] += c.end[n]
	}
	c.list = slices.Grow(c.list[:0], int(c.end[len(c.end)-1]))[:c.end[len(c.end)-1]]
	for i, task := range t.claim.Candidates {
		n := v.NodeOf(task)
		switch {
		case t.states[i].spared:
		case n == model.None:
			c.elsewhere = append(c.elsewhere, int32(i))
		default:
			c.list[c.end[n+1]] = int32(i)
			c.end[n+1]++
			if t.brief {
				addTimes(t.s.roomOf(c.room, n), t.s.requestOf(task), 1)
			}
		}
	}
}
