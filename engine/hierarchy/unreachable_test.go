package hierarchy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/apportion/apportion/engine/hierarchy"
)

// unreachable asks about all nodes, in the order in which they are listed.
func unreachable(nodes []node) []hierarchy.Kind {
	order := make([]id, len(nodes))
	index := map[string]id{}
	for i, n := range nodes {
		order[i] = id(i)
		index[n.name] = id(i)
	}
	return hierarchy.Unreachable(len(order), order, func(i id) string { return nodes[i].parent }, func(name string) (id, bool) {
		i, ok := index[name]
		return i, ok
	})
}

func TestNodesWhoseWayUpDoesNotEndAtTheRoot(t *testing.T) {
	const unknown, cycle = hierarchy.UnknownParent, hierarchy.Cycle
	for name, tt := range map[string]struct {
		nodes []node
		want  []hierarchy.Kind
	}{
		"without a root all hang under it":      {[]node{{"a", ""}, {"b", "root"}, {"c", "b"}}, []hierarchy.Kind{0, 0, 0}},
		"the root's own parent is ignored":      {[]node{{"root", "nowhere"}, {"a", ""}}, []hierarchy.Kind{0, 0}},
		"what is below a fault shares it":       {[]node{{"b", "a"}, {"a", "nowhere"}, {"c", "b"}, {"d", ""}}, []hierarchy.Kind{unknown, unknown, unknown, 0}},
		"a cycle, and what hangs under it":      {[]node{{"a", "b"}, {"b", "a"}, {"c", "b"}, {"d", "d"}}, []hierarchy.Kind{cycle, cycle, cycle, cycle}},
		"two walks that meet below a fine node": {[]node{{"c", "b"}, {"d", "b"}, {"b", "a"}, {"a", ""}}, []hierarchy.Kind{0, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, unreachable(tt.nodes)) })
	}
}

func TestNodesThatAreTooDeep(t *testing.T) {
	chain := []node{{"0", ""}}
	for i := 1; i < hierarchy.MaxDepth+2; i++ {
		chain = append(chain, node{fmt.Sprint(i), fmt.Sprint(i - 1)})
	}
	want := make([]hierarchy.Kind, len(chain))
	want[hierarchy.MaxDepth], want[hierarchy.MaxDepth+1] = hierarchy.TooDeep, hierarchy.TooDeep
	require.Equal(t, want, unreachable(chain))
}

func TestATreeIsOneWhoseNodesAllReachTheRoot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := []node{{"root", ""}}
		for i := range rapid.IntRange(0, 8).Draw(t, "nodes") {
			nodes = append(nodes, node{fmt.Sprint(i), rapid.SampledFrom([]string{"", "0", "1", "2", "5", "root", "nowhere"}).Draw(t, "parent")})
		}
		_, faults := grow(nodes)
		reached := true
		for _, kind := range unreachable(nodes) {
			reached = reached && kind == 0
		}
		require.Equal(t, len(faults) == 0, reached)
	})
}
