package fair

import (
	"cmp"
	"slices"

	"github.com/apportion/apportion/engine/hierarchy"
	"github.com/apportion/apportion/engine/model"
	"github.com/apportion/apportion/engine/policy"
	"github.com/apportion/apportion/engine/policy/division"
)

// place is a position in the tree.
type place = division.Place

// none is no place.
const none place = model.None

// tree lists the queues that take part, each after its parent, siblings side by side in order of rank. Place 0 is the root.
type tree struct {
	// queue is model.None for a root that is no queue.
	queue  []model.QueueID
	parent []place
	// The children of p are first[p] … end[p]-1.
	first, end []place
	depth      []int32
	// open reports whether the queue and all its ancestors are open.
	open []bool
	// at is the place of a queue, none if it is set aside; refused says why.
	at      []place
	refused []hierarchy.Kind
	// leaves are the places without children, in order.
	leaves []place
	// weight is that of the queue.
	weight []int64
}

// shape is the tree without queues.
func (t *tree) shape() division.Tree { return division.Tree{First: t.first, End: t.end} }

func (t *tree) len() int { return len(t.queue) }

func (t *tree) isLeaf(p place) bool { return t.first[p] == t.end[p] }

// grow builds the tree and sets those queues aside whose way up does not reach the root.
func (t *tree) grow(v *policy.View) {
	root, found := v.Queue(hierarchy.Root)
	if !found {
		root = model.None
	}
	t.refused = hierarchy.Unreachable(len(v.Queues), v.QueueOrder, func(q model.QueueID) string { return v.Queues[q].Parent }, v.Queue)
	t.at = make([]place, len(v.Queues))
	children := t.siblings(v, root)
	n := len(children) + 1
	t.queue, t.parent = append(make([]model.QueueID, 0, n), root), append(make([]place, 0, n), none)
	t.first, t.end = make([]place, n), make([]place, n)
	t.depth, t.open = make([]int32, n), make([]bool, n)
	for q := range t.at {
		t.at[q] = none
	}
	for p := place(0); int(p) < n; p++ {
		t.open[p] = p == 0 || t.open[t.parent[p]]
		q := t.queue[p]
		if q != model.None {
			t.at[q] = p
			t.open[p] = t.open[p] && v.Queues[q].State == model.Open
		}
		t.first[p] = place(len(t.queue))
		for i := firstChild(children, q); i < len(children) && children[i].parent == q; i++ {
			t.queue, t.parent = append(t.queue, children[i].queue), append(t.parent, p)
			t.depth[len(t.queue)-1] = t.depth[p] + 1
		}
		t.end[p] = place(len(t.queue))
		if t.isLeaf(p) {
			t.leaves = append(t.leaves, p)
		}
	}
}

// SetAside reports whether a job takes no part: its queue is set aside, or has children.
func (s *State) SetAside(j model.JobID) bool { return s.leafOf(j) == none }

// sibling is a queue below its parent; model.None is a root that is no queue.
type sibling struct{ parent, queue model.QueueID }

// siblings lists the queues that take part, but for the root, by parent, those of one parent in order of rank.
func (t *tree) siblings(v *policy.View, root model.QueueID) []sibling {
	list := make([]sibling, 0, len(v.Queues))
	for _, q := range v.QueueOrder {
		if t.refused[q] != 0 || q == root {
			continue
		}
		parent := root
		if above := v.Queues[q].Parent; above != "" && above != hierarchy.Root {
			parent, _ = v.Queue(above)
		}
		list = append(list, sibling{parent, q})
	}
	slices.SortStableFunc(list, func(l, r sibling) int {
		lq, rq := &v.Queues[l.queue], &v.Queues[r.queue]
		return cmp.Or(cmp.Compare(l.parent, r.parent), cmp.Compare(rq.Priority, lq.Priority),
			compareAge(lq.CreateTime, rq.CreateTime))
	})
	return list
}

// compareAge puts the older first, and what was created at a time that is not known, which is 0, last.
func compareAge(l, r int64) int {
	switch {
	case l == r:
		return 0
	case l == 0:
		return 1
	case r == 0:
		return -1
	}
	return cmp.Compare(l, r)
}

func firstChild(list []sibling, parent model.QueueID) int {
	i, _ := slices.BinarySearchFunc(list, parent, func(s sibling, q model.QueueID) int { return cmp.Compare(s.parent, q) })
	return i
}

// branches returns the ancestors just below the lowest common ancestor of two places that lead to them, each possibly the place itself. The
// places differ and neither is above the other.
func (t *tree) branches(l, r place) (place, place) {
	for t.depth[l] > t.depth[r] {
		l = t.parent[l]
	}
	for t.depth[r] > t.depth[l] {
		r = t.parent[r]
	}
	for t.parent[l] != t.parent[r] {
		l, r = t.parent[l], t.parent[r]
	}
	return l, r
}

// isBelow reports whether p is a or below it.
func (t *tree) isBelow(p, a place) bool {
	for t.depth[p] > t.depth[a] {
		p = t.parent[p]
	}
	return p == a
}
