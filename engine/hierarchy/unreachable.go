package hierarchy

import "slices"

// Unreachable returns for each node of order, which contains distinct numbers of 0 … n-1, the fault on its path to the root, or 0. The root
// need not be a node; nodes without a parent are below it. Time and memory are linear in n.
func Unreachable[ID ~int32](n int, order []ID, parent func(ID) string, index func(string) (ID, bool)) []Kind {
	root, found := index(Root)
	if !found {
		root = none
	}
	w := walker[ID]{root: root, parent: parent, index: index, why: make([]Kind, n), depth: make([]int32, n)}
	for _, i := range order {
		w.walk(i)
	}
	return w.why
}

// walker walks up from nodes and caches the results.
type walker[ID ~int32] struct {
	root   ID
	parent func(ID) string
	index  func(string) (ID, bool)
	why    []Kind
	// depth is 0 for unvisited nodes and for the root.
	depth []int32
	way   []ID
}

// walking marks a node that the current walk has visited.
const walking = -1

// walk walks up from a node to the root, to a node that an earlier walk has visited, or to a fault, and records the result for all nodes on
// its way.
func (w *walker[ID]) walk(i ID) {
	w.way = w.way[:0]
	end := Kind(0)
	for i != none && i != w.root && w.depth[i] == 0 {
		w.depth[i] = walking
		w.way = append(w.way, i)
		i, end = w.above(i)
	}
	depth := int32(0)
	switch {
	case i == none || i == w.root:
	case w.depth[i] == walking:
		end = Cycle
	default:
		end, depth = w.why[i], w.depth[i]
	}
	for _, v := range slices.Backward(w.way) {
		if depth++; end == 0 && depth > MaxDepth {
			end = TooDeep
		}
		w.why[v], w.depth[v] = end, depth
	}
}

// above returns a node's parent; none below a root that is no node, and where there is a fault.
func (w *walker[ID]) above(i ID) (ID, Kind) {
	name := w.parent(i)
	if name == "" || name == Root {
		return w.root, 0
	}
	p, ok := w.index(name)
	if !ok {
		return none, UnknownParent
	}
	return p, 0
}
