// Package hierarchy builds a tree of nodes that name their parents. It finds ancestors, children and common ancestors, and reports the
// faults of names that form no tree.
package hierarchy

const (
	// Root is the name of the node that everything hangs under, and the parent of nodes that name none. Its own parent is ignored.
	Root = "root"
	// MaxDepth is the maximum depth of a node below the root. A question about a node walks its ancestors, and an answer may list them for
	// every node, so the bound keeps both a small multiple of the snapshot; charts of organisations have some ten levels.
	MaxDepth = 256
	// none is no node.
	none = -1
)

// Kind says why names form no tree.
type Kind uint8

// The kinds of fault.
const (
	// MissingRoot: no node is named Root. The fault names no node.
	MissingRoot Kind = iota + 1
	// UnknownParent: the node names a parent that does not exist.
	UnknownParent
	// Cycle: the node is its own ancestor.
	Cycle
	// TooDeep: the node is MaxDepth + 1 below the root.
	TooDeep
	// NotLeaf: the node has children, and members that only a leaf may have. New does not report this fault, because it does not see
	// members.
	NotLeaf
)

// Fault is one reason why names form no tree. Each cycle is one fault.
type Fault[ID ~int32] struct {
	Kind Kind
	// Node is none (-1) for MissingRoot.
	Node ID
}

// Tree is a tree over some of the nodes 0 … n-1. It never changes.
type Tree[ID ~int32] struct {
	parent   []ID
	depth    []int32
	topDown  []ID
	children []ID
	first    []int32
}

// New returns the tree of the nodes in order, or its faults. order contains distinct numbers of 0 … n-1 and determines the order of all
// lists. parent returns the name of a node's parent, empty for Root; index returns the node of a name. Time and memory are linear in n.
func New[ID ~int32](n int, order []ID, parent func(ID) string, index func(string) (ID, bool)) (*Tree[ID], []Fault[ID]) {
	t := &Tree[ID]{parent: make([]ID, n), depth: make([]int32, n)}
	for i := range t.parent {
		t.parent[i] = none
	}
	root, faults := t.link(order, parent, index)
	faults = append(faults, t.cycles(order)...)
	if len(faults) == 0 {
		t.adopt(order)
		faults = t.descend(root)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return t, nil
}

// link finds every node's parent; none for the root, and where there is a fault.
func (t *Tree[ID]) link(order []ID, parent func(ID) string, index func(string) (ID, bool)) (ID, []Fault[ID]) {
	var faults []Fault[ID]
	root, found := index(Root)
	if !found {
		root = none
		faults = append(faults, Fault[ID]{MissingRoot, none})
	}
	for _, i := range order {
		name := parent(i)
		switch {
		case i == root:
			t.parent[i] = none
		case name == "" || name == Root:
			t.parent[i] = root
		default:
			p, ok := index(name)
			if !ok {
				p = none
				faults = append(faults, Fault[ID]{UnknownParent, i})
			}
			t.parent[i] = p
		}
	}
	return root, faults
}

// cycles walks up from every node to one that has been visited; if the same walk has visited it, it closes a cycle.
func (t *Tree[ID]) cycles(order []ID) []Fault[ID] {
	var faults []Fault[ID]
	walk := make([]int32, len(t.parent))
	for n, start := range order {
		this := int32(n + 1)
		i := start
		for i != none && walk[i] == 0 {
			walk[i] = this
			i = t.parent[i]
		}
		if i != none && walk[i] == this {
			faults = append(faults, Fault[ID]{Cycle, i})
		}
	}
	return faults
}

// adopt lists every node's children, in order.
func (t *Tree[ID]) adopt(order []ID) {
	n := len(t.parent)
	t.first = make([]int32, n+1)
	t.children = make([]ID, n)
	for _, p := range t.parent {
		if p != none {
			t.first[p+1]++
		}
	}
	for i := range n {
		t.first[i+1] += t.first[i]
	}
	next := append([]int32(nil), t.first...)
	for _, i := range order {
		if p := t.parent[i]; p != none {
			t.children[next[p]] = i
			next[p]++
		}
	}
}

// descend lists the nodes level by level, which are all nodes if there are no faults and cycles.
func (t *Tree[ID]) descend(root ID) []Fault[ID] {
	t.topDown = append(make([]ID, 0, len(t.parent)), root)
	for at := 0; at < len(t.topDown); at++ {
		i := t.topDown[at]
		if t.depth[i] > MaxDepth {
			return []Fault[ID]{{TooDeep, i}}
		}
		for _, c := range t.Children(i) {
			t.depth[c] = t.depth[i] + 1
			t.topDown = append(t.topDown, c)
		}
	}
	return nil
}

// Root returns the root.
func (t *Tree[ID]) Root() ID { return t.topDown[0] }

// TopDown lists all nodes, each after its parent; callers only read it.
func (t *Tree[ID]) TopDown() []ID { return t.topDown }

// Parent returns the parent of a node, -1 for the root.
func (t *Tree[ID]) Parent(i ID) ID { return t.parent[i] }

// Depth returns how far below the root a node is.
func (t *Tree[ID]) Depth(i ID) int { return int(t.depth[i]) }

// Children lists the children of a node; callers only read it.
func (t *Tree[ID]) Children(i ID) []ID { return t.children[t.first[i]:t.first[i+1]:t.first[i+1]] }

// IsLeaf reports whether a node has no children.
func (t *Tree[ID]) IsLeaf(i ID) bool { return t.first[i] == t.first[i+1] }

// Ancestors appends the ancestors of a node to dst, the root first; the node itself is not among them.
func (t *Tree[ID]) Ancestors(i ID, dst []ID) []ID {
	from, n := len(dst), int(t.depth[i])
	for range n {
		dst = append(dst, none)
	}
	for at := from + n - 1; at >= from; at-- {
		i = t.parent[i]
		dst[at] = i
	}
	return dst
}

// Common returns the lowest node that both nodes are, or are below.
func (t *Tree[ID]) Common(l, r ID) ID {
	l, r = t.Branches(l, r)
	if t.depth[l] < t.depth[r] {
		return l
	}
	if t.depth[r] < t.depth[l] || l == r {
		return r
	}
	return t.parent[l]
}

// Branches returns the nodes just below the lowest common node that lead to l and to r. If l or r is that common node, it is its own
// branch.
func (t *Tree[ID]) Branches(l, r ID) (ID, ID) {
	for t.depth[l] > t.depth[r]+1 {
		l = t.parent[l]
	}
	for t.depth[r] > t.depth[l]+1 {
		r = t.parent[r]
	}
	switch {
	case t.depth[l] > t.depth[r]:
		if t.parent[l] == r {
			return l, r
		}
		l = t.parent[l]
	case t.depth[r] > t.depth[l]:
		if t.parent[r] == l {
			return l, r
		}
		r = t.parent[r]
	}
	for t.parent[l] != t.parent[r] {
		l, r = t.parent[l], t.parent[r]
	}
	return l, r
}
