package hierarchy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/hierarchy"
)

type id int32

// node is a name and the name of its parent.
type node struct{ name, parent string }

func grow(nodes []node) (*hierarchy.Tree[id], []hierarchy.Fault[id]) {
	order := make([]id, len(nodes))
	index := map[string]id{}
	for i, n := range nodes {
		order[i] = id(i)
		index[n.name] = id(i)
	}
	return hierarchy.New(len(order), order, func(i id) string { return nodes[i].parent }, func(name string) (id, bool) {
		i, ok := index[name]
		return i, ok
	})
}

func TestNamesThatFormNoTree(t *testing.T) {
	type fault = hierarchy.Fault[id]
	for name, tt := range map[string]struct {
		nodes []node
		want  []fault
	}{
		"nothing at all has no root": {want: []fault{{hierarchy.MissingRoot, -1}}},
		"root missing, though all would hang under it": {
			nodes: []node{{"a", ""}, {"b", "root"}, {"c", "a"}},
			want:  []fault{{hierarchy.MissingRoot, -1}},
		},
		"every unknown parent is named": {
			nodes: []node{{"a", "x"}, {"b", "a"}, {"c", "y"}, {"root", ""}},
			want:  []fault{{hierarchy.UnknownParent, 0}, {hierarchy.UnknownParent, 2}},
		},
		"a node is its own parent": {
			nodes: []node{{"root", ""}, {"a", "a"}},
			want:  []fault{{hierarchy.Cycle, 1}},
		},
		"each cycle is one fault, whatever hangs under it": {
			nodes: []node{{"root", ""}, {"a", "b"}, {"b", "a"}, {"c", "a"}, {"d", "e"}, {"e", "f"}, {"f", "e"}},
			want:  []fault{{hierarchy.Cycle, 1}, {hierarchy.Cycle, 5}},
		},
		"a cycle and an unknown parent are both named": {
			nodes: []node{{"root", ""}, {"a", "a"}, {"b", "x"}},
			want:  []fault{{hierarchy.UnknownParent, 2}, {hierarchy.Cycle, 1}},
		},
		"the root's own parent is ignored":      {nodes: []node{{"root", "root"}, {"a", ""}}},
		"the root's parent may even be unknown": {nodes: []node{{"a", ""}, {"root", "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			tree, faults := grow(tt.nodes)
			require.Equal(t, tt.want, faults)
			require.Equal(t, len(tt.want) == 0, tree != nil)
		})
	}
}

// chain returns a root and n nodes below each other, the deepest first.
func chain(n int) []node {
	nodes := []node{}
	for i := n; i > 1; i-- {
		nodes = append(nodes, node{fmt.Sprint(i), fmt.Sprint(i - 1)})
	}
	return append(nodes, node{"1", "root"}, node{"root", ""})
}

func TestDepthIsBounded(t *testing.T) {
	tree, faults := grow(chain(hierarchy.MaxDepth))
	require.Empty(t, faults)
	require.Equal(t, hierarchy.MaxDepth, tree.Depth(0))
	require.Len(t, tree.Ancestors(0, nil), hierarchy.MaxDepth)

	for _, n := range []int{hierarchy.MaxDepth + 1, 200_000} {
		_, faults = grow(chain(n))
		require.Equal(t, []hierarchy.Fault[id]{{Kind: hierarchy.TooDeep, Node: id(n - hierarchy.MaxDepth - 1)}}, faults)
	}
}

func TestALongCycleEnds(t *testing.T) {
	nodes := chain(200_000)
	nodes[len(nodes)-2].parent = nodes[0].name
	_, faults := grow(nodes)
	require.Equal(t, []hierarchy.Fault[id]{{Kind: hierarchy.Cycle, Node: 0}}, faults)
}

// forest draws a root in any place and nodes that hang under earlier drawn ones.
func forest() *rapid.Generator[[]node] {
	return rapid.Custom(func(t *rapid.T) []node {
		n := rapid.IntRange(0, 30).Draw(t, "nodes")
		nodes := []node{{hierarchy.Root, ""}}
		for i := range n {
			parent := nodes[rapid.IntRange(0, i).Draw(t, "parent")].name
			if parent == hierarchy.Root && rapid.Bool().Draw(t, "unnamed") {
				parent = ""
			}
			nodes = append(nodes, node{fmt.Sprintf("n%02d", i), parent})
		}
		return rapid.Permutation(nodes).Draw(t, "order")
	})
}

// plain finds ancestors, root first, by following names.
func plain(nodes []node, i id) []id {
	if nodes[i].name == hierarchy.Root {
		return nil
	}
	parent := nodes[i].parent
	if parent == "" {
		parent = hierarchy.Root
	}
	p := id(slices.IndexFunc(nodes, func(n node) bool { return n.name == parent }))
	return append(plain(nodes, p), p)
}

func TestTreeAgreesWithAncestorLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := forest().Draw(t, "forest")
		tree, faults := grow(nodes)
		require.Empty(t, faults)
		seen := map[id]bool{}
		for _, i := range tree.TopDown() {
			require.True(t, i == tree.Root() || seen[tree.Parent(i)], "a node is listed before its parent")
			seen[i] = true
		}
		require.Len(t, seen, len(nodes))
		for i := range id(len(nodes)) {
			ancestors := plain(nodes, i)
			require.Equal(t, append([]id{7}, ancestors...), tree.Ancestors(i, []id{7}))
			require.Equal(t, len(ancestors), tree.Depth(i))
			var children []id
			for c := range id(len(nodes)) {
				if above := plain(nodes, c); len(above) > 0 && above[len(above)-1] == i {
					children = append(children, c)
				}
			}
			require.Equal(t, len(children) == 0, tree.IsLeaf(i))
			require.True(t, slices.Equal(children, tree.Children(i)))
		}
	})
}

func TestCommonAndBranchesAgreeWithPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := forest().Draw(t, "forest")
		tree, _ := grow(nodes)
		for l := range id(len(nodes)) {
			for r := range id(len(nodes)) {
				lp, rp := append(plain(nodes, l), l), append(plain(nodes, r), r)
				k := 0
				for k < len(lp) && k < len(rp) && lp[k] == rp[k] {
					k++
				}
				require.Equal(t, lp[k-1], tree.Common(l, r))
				branch := func(path []id) id {
					if k < len(path) {
						return path[k]
					}
					return path[k-1]
				}
				lb, rb := tree.Branches(l, r)
				require.Equal(t, branch(lp), lb)
				require.Equal(t, branch(rp), rb)
			}
		}
	})
}

func BenchmarkNew(b *testing.B) {
	const n = 10_000
	nodes := []node{{hierarchy.Root, ""}}
	for i := 1; i < n; i++ {
		nodes = append(nodes, node{fmt.Sprint(i), nodes[(i-1)/10].name})
	}
	order := make([]id, n)
	index := map[string]id{}
	for i, n := range nodes {
		order[i], index[n.name] = id(i), id(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		hierarchy.New(len(order), order, func(i id) string { return nodes[i].parent }, func(name string) (id, bool) {
			i, ok := index[name]
			return i, ok
		})
	}
}
